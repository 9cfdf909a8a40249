"""What the client keeps: the randomized answer of each token, written before it is sent.

A second draw for the same truth would let the server average the noise away, so a retry sends what is kept, whatever
happened to the first sending. The truth is never written.
"""

from __future__ import annotations

import dataclasses
import hashlib
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sfumato.documents import MOST_BYTES, open_regular, parse_json, plain, typed, write_json
from sfumato.errors import BadInput, SfumatoError
from sfumato.replacing import reason, replacing_file

__all__ = ["Kept", "KeptAnswers", "default_folder"]

_FORMAT = 1


def default_folder() -> Path:
    """Give the folder for kept answers: ``SFUMATO_ANSWERS``, else in the user's state folder."""
    chosen = os.environ.get("SFUMATO_ANSWERS")
    if chosen:
        return Path(chosen)
    state = os.environ.get("XDG_STATE_HOME") or str(Path.home() / ".local" / "state")
    return Path(state) / "sfumato" / "answers"


@dataclass(frozen=True)
class Kept:
    """A randomized answer: address and digest of the survey it was drawn for, and what is sent."""

    url: str
    digest: str
    answers: dict[str, Any]
    accepted: bool = False
    mistyped: bool = False
    """The server said that the token is none; it has seen the answer all the same."""


class KeptAnswers:
    """The kept answers of one person, a file for each token, readable by nobody else.

    Parameters
    ----------
    folder : Path
        Made with mode 700 where it is not there.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def of(self, token: str) -> Kept | None:
        """Give what is kept for a token."""
        return self._read(self._path(token))

    def others(self, token: str, url: str, digest: str) -> int:
        """Count the answers to the same survey under other tokens."""
        mine = self._path(token)
        paths = self._folder.glob("*.json") if self._folder.is_dir() else ()
        found = (self._read(path) for path in paths if path != mine)
        return sum(1 for kept in found if kept is not None and (kept.url, kept.digest) == (url, digest))

    def adopt(self, token: str, url: str, digest: str) -> Kept | None:
        """Take over an answer that was sent under a mistyped token: the server has seen it, so no other is drawn."""
        for path in sorted(self._folder.glob("*.json")) if self._folder.is_dir() else ():
            kept = self._read(path)
            if kept is not None and kept.mistyped and (kept.url, kept.digest) == (url, digest):
                mine = dataclasses.replace(kept, mistyped=False)
                self.keep(token, mine)
                path.unlink()
                return mine
        return None

    def keep(self, token: str, kept: Kept) -> None:
        """Write an answer to disk; at the return it is there."""
        try:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            with replacing_file(self._path(token), private=True) as work:
                work.write_text(write_json({"format": _FORMAT, **plain(kept)}), encoding="utf-8")
        except OSError as error:
            raise SfumatoError(
                f"the randomized answer could not be kept in {str(self._folder)!r} ({reason(error)}), so nothing was "
                "sent; choose another folder with --keep"
            ) from None

    def _path(self, token: str) -> Path:
        return self._folder / f"{hashlib.sha256(token.encode()).hexdigest()[:32]}.json"

    def _read(self, path: Path) -> Kept | None:
        try:
            with open_regular(path) as file:
                document = parse_json(file.read(MOST_BYTES))
            if document.pop("format") == _FORMAT:
                return typed(Kept, document)
        except (FileNotFoundError, NotADirectoryError):
            return None
        except (OSError, ValueError, KeyError, AttributeError, TypeError):
            pass
        raise BadInput(f"the kept answer {str(path)!r} cannot be read; do not draw another one, restore the file")
