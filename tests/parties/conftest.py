"""One body, every engine: what runs a protocol at all parties, in the clear or with real secure computation."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import Protocol, TypeVar

import pytest

from sfumato.core.errors import SfumatoError
from sfumato.parties.channel import LocalChannel, PartyError, local_channels
from sfumato.parties.ledger import Leak
from sfumato.parties.session import Session, computing_parties
from sfumato.parties.spu import SpuEngine
from tests.cli.conftest import run  # noqa: F401 - a fixture
from tests.parties.engines import free_addresses, need_engine
from tests.parties.together import run_together

T = TypeVar("T")
WAIT = 300.0


class Together(Protocol):
    """Run a protocol, a thread a party, and give what each party has in the end."""

    def __call__(
        self,
        function: Callable[[Session, int], T],
        names: tuple[str, ...],
        leaks: Mapping[str, Leak],
        *,
        seed: int | None = None,
        keep: bool = True,
    ) -> list[T]: ...


@pytest.fixture(scope="session")
def together(request: pytest.FixtureRequest) -> Together:
    """In the clear, or with the engine that a test names: ``parametrize("together", ENGINES, indirect=True)``."""
    engine = getattr(request, "param", "plain")
    if engine == "plain":
        return run_together
    need_engine()
    return _with_engine(engine)


def _with_engine(engine: str) -> Together:
    def with_engine(
        function: Callable[[Session, int], T],
        names: tuple[str, ...],
        leaks: Mapping[str, Leak],
        *,
        seed: int | None = None,
        keep: bool = True,
    ) -> list[T]:
        computing = computing_parties(engine, len(names))
        addresses = dict(zip(computing, free_addresses(len(computing)), strict=True))
        results: dict[int, T] = {}
        errors: dict[int, BaseException] = {}

        def play(channel: LocalChannel) -> None:
            rank, own = channel.rank, None
            try:
                if rank in computing:
                    own = SpuEngine(engine, rank, addresses, timeout=WAIT, failed=lambda: bool(errors))
                session = Session(channel, own, computing, leaks, seed=seed, keep=keep)
                results[rank] = function(session, rank)
            except BaseException as error:  # noqa: BLE001 - handed to the caller below
                errors[rank] = error
                channel.abort(str(error) if isinstance(error, SfumatoError) else type(error).__name__)
            finally:
                if own is not None:
                    own.close()

        threads = [threading.Thread(target=play, args=(channel,)) for channel in local_channels(names, timeout=WAIT)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if errors:
            raise min(errors.values(), key=lambda error: isinstance(error, PartyError))
        return [results[rank] for rank in range(len(names))]

    return with_engine
