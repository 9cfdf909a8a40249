"""The certificate: facts, the claims that follow, and those that must not be made."""

from __future__ import annotations

import dataclasses
import datetime
import json
from dataclasses import dataclass
from typing import Any

from sfumato.errors import BadInput
from sfumato.facts import Fact, Grouped, Maintained, fact_from_json, fact_to_json
from sfumato.privacy.claims import Claim, Refused, draw_claims

__all__ = ["FORMAT", "Certificate", "certify"]

FORMAT = 1


@dataclass(frozen=True, repr=False)
class Certificate:
    """What is guaranteed of a release, and what is not. Holds no measured number, no group membership and no key."""

    sfumato: str
    created: str
    randomness: str
    method: str
    parameters: dict[str, Any]
    rows_in: int
    rows_out: int
    facts: tuple[Fact, ...]
    claims: tuple[Claim, ...]
    refused: tuple[Refused, ...]
    schema_sha256: str
    table_sha256: str | None = None
    files: dict[str, str] = dataclasses.field(default_factory=dict)

    def __repr__(self) -> str:
        return (
            f"Certificate({self.method}, {self.randomness}, {self.rows_out} rows, {len(self.claims)} claims, "
            f"{len(self.refused)} refused)"
        )

    @property
    def levels(self) -> dict[str, int]:
        """Levels asked for and met, where records were grouped."""
        kept = next((fact for fact in self.facts if isinstance(fact, Maintained)), None)
        if kept is not None:
            return {
                "asked_min": kept.k,
                "asked_max": kept.asked_max,
                "smallest_group": kept.smallest,
                "groups": kept.groups,
                "violations": kept.short,
            }
        grouped = next((fact for fact in self.facts if isinstance(fact, Grouped)), None)
        if grouped is None:
            return {}
        return {
            "asked_min": grouped.asked_min,
            "asked_max": grouped.asked_max,
            "smallest_group": grouped.smallest,
            "groups": grouped.groups,
            "violations": grouped.violations,
        }

    def to_document(self) -> dict[str, Any]:
        """Write the certificate as plain values, in the order of the file."""
        return {
            "format": FORMAT,
            "sfumato": self.sfumato,
            "created": self.created,
            "randomness": self.randomness,
            "method": self.method,
            "parameters": self.parameters,
            "rows_in": self.rows_in,
            "rows_out": self.rows_out,
            "table_sha256": self.table_sha256,
            "schema_sha256": self.schema_sha256,
            "files": self.files,
            "facts": [fact_to_json(fact) for fact in self.facts],
            "claims": [dataclasses.asdict(claim) for claim in self.claims],
            "refused": [dataclasses.asdict(claim) for claim in self.refused],
            "levels": self.levels,
        }

    def to_json(self) -> str:
        """Write the certificate as JSON."""
        return json.dumps(self.to_document(), indent=2, ensure_ascii=False) + "\n"

    @classmethod
    def from_json(cls, text: str) -> Certificate:
        """Read a certificate; nothing in it is trusted until `verify` has compared it with the table."""
        try:
            document = json.loads(text)
            if not isinstance(document, dict) or document["format"] != FORMAT:
                raise BadInput(f"the certificate is not of format {FORMAT}; use the version that wrote it")
            return cls(
                **{key: str(document[key]) for key in ("sfumato", "created", "randomness", "method", "schema_sha256")},
                table_sha256=str(document["table_sha256"]),
                parameters=dict(document["parameters"]),
                rows_in=int(document["rows_in"]),
                rows_out=int(document["rows_out"]),
                files={str(name): str(digest) for name, digest in dict(document["files"]).items()},
                facts=tuple(fact_from_json(fact) for fact in document["facts"]),
                claims=tuple(Claim(**claim) for claim in document["claims"]),
                refused=tuple(Refused(**claim) for claim in document["refused"]),
            )
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            if isinstance(error, BadInput):
                raise
            raise BadInput("the certificate cannot be read; it is damaged or was altered") from None


def certify(
    facts: tuple[Fact, ...],
    *,
    version: str,
    randomness: str,
    method: str,
    parameters: dict[str, Any],
    rows_in: int,
    rows_out: int,
    schema_sha256: str,
) -> Certificate:
    """Draw the claims that the facts bear and put them on a certificate."""
    claims, refused = draw_claims(facts)
    return Certificate(
        sfumato=version,
        created=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        randomness=randomness,
        method=method,
        parameters=parameters,
        rows_in=rows_in,
        rows_out=rows_out,
        facts=facts,
        claims=claims,
        refused=refused,
        schema_sha256=schema_sha256,
    )
