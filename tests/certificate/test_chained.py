"""What a certificate says of a chain: nothing where a level is not met, and of parts where there are several."""

from __future__ import annotations

import pytest

from sfumato.core.errors import PrivacyRefusal
from sfumato.core.facts import Context
from sfumato.core.groups.facts import Partitioned
from sfumato.methods.chain.facts import ChainSynthesis


def chained(violations: int = 0) -> ChainSynthesis:
    return ChainSynthesis(
        ("outcome", "age"), (1, 3), (60, 20), (0, 1), 100, 100, 5, 20, violations, 71, 29, regressed=("age",)
    )


@pytest.mark.parametrize(("violations", "words"), [(1, "^1 record is in leaves"), (2, "^2 records are in leaves")])
def test_nothing_is_said_of_a_chain_that_misses_a_level(violations: int, words: str) -> None:
    with pytest.raises(PrivacyRefusal, match=words):
        list(chained(violations).claims(Context(())))


@pytest.mark.parametrize(("cells", "told"), [(1, False), (2, True)])
def test_parts_are_told_where_there_are_two(cells: int, told: bool) -> None:
    first = next(iter(chained().claims(Context((chained(), Partitioned(cells, 50))))))
    assert ("of the part" in str(first)) == told
