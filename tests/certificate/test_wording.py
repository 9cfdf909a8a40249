"""Every claim is one short sentence, and every word of a certificate is of the vocabulary, whatever the facts are."""

from __future__ import annotations

import pytest
from hypothesis import given

from sfumato.core.facts import ColumnsDropped, Fact, RandomnessSource, draw_claims
from sfumato.core.groups.facts import Grouped
from sfumato.methods.chain.facts import ChainSynthesis
from sfumato.methods.condense.facts import GroupSynthesis, PersonsInDistinctGroups, PersonsLinked
from sfumato.methods.modify.facts import Swapped
from sfumato.tables.facts import ColumnRulesKept, DatesCoarsened, FormulaTexts, RareValues, WeightsScaled
from tests.certificate.drawn_facts import Facts, engine_facts
from tests.certificate.test_golden import METHODS
from tests.vocabulary import NOT_USED, phrases_not_used, sentences, words

MOST_OF_CLAIM, MOST_OF_SENTENCE, MOST_OF_ASSUMPTION = 30, 35, 30
MANY = tuple(f"a column, number {place}" for place in range(40))


def check(facts: Facts) -> None:
    claims, refused = draw_claims(facts)
    for text in [*(claim.claim for claim in claims), *(each.claim for each in refused)]:
        assert words(text) <= MOST_OF_CLAIM, text
    for text in [*(claim.basis for claim in claims), *(each.reason for each in refused)]:
        assert text[0].isupper() or text[0].isdigit(), text
        assert text.endswith("."), text
        for sentence in sentences(text):
            assert words(sentence) <= MOST_OF_SENTENCE, sentence
    for claim in claims:
        assert words(claim.assumes) <= MOST_OF_ASSUMPTION, claim.assumes
        assert ";" not in claim.assumes, claim.assumes
        assert len(sentences(claim.claim)) <= 2, claim.claim
    texts = [text for claim in claims for text in (claim.claim, claim.basis, claim.assumes)]
    texts += [text for each in refused for text in (each.claim, each.reason)]
    assert [(phrase, text) for text in texts for phrase in phrases_not_used(text)] == []


@given(engine_facts)
def test_claims_of_any_facts_are_short_and_in_the_vocabulary(facts: Facts) -> None:
    check(facts)


@pytest.mark.parametrize("method", METHODS)
def test_claims_of_each_method_are_short_and_in_the_vocabulary(method: str) -> None:
    check(METHODS[method])


@pytest.mark.parametrize(
    "facts",
    [
        (ColumnsDropped(MANY, MANY, MANY),),
        (DatesCoarsened(MANY),),
        (ColumnRulesKept(MANY, True),),
        (FormulaTexts(MANY, 1_000_000, 40, True),),
        (RareValues("pool", 1_000_000, 40, 0, MANY, True),),
        (Swapped("window", MANY, (0,) * 40, 1_000_000, 5.0),),
        (
            Grouped("MDAV", 1_000_000, 9, 10, 0, 0, 0, 0),
            GroupSynthesis("mean and covariance", "uniform along eigenvectors", 1_000_000),
            PersonsInDistinctGroups(500_000),
            PersonsLinked("person", 500_000, 2, MANY),
            ColumnRulesKept(MANY),
            WeightsScaled("a weight of a person", 1.5, 0.5),
        ),
    ],
    ids=lambda facts: facts[0].fact,
)
def test_a_claim_stays_short_if_many_columns_have_long_names(facts: tuple[Fact, ...]) -> None:
    claims, refused = draw_claims((RandomnessSource("release", "ChaCha20"), *facts))
    for text in [*(claim.claim for claim in claims), *(each.claim for each in refused)]:
        assert words(text) <= MOST_OF_CLAIM, text
        assert not any(repr(name) in text for name in MANY), text


def test_the_longest_claim_of_a_chain_has_its_numbers_in_words_of_the_field() -> None:
    chained = ChainSynthesis(("a", "b"), (1, 3), (5000, 201), (0, 0), 5000, 5000, 200, 200, 0, 4000, 0)
    claims, _ = draw_claims((RandomnessSource("release", "ChaCha20"), chained))
    assert claims[0].claim == (
        "Every released value was drawn from a group of at least 200 records with similar values in the preceding "
        "columns. Smallest group: 201."
    )


def test_words_count_a_name_once_and_sentences_do_not_end_in_a_reference() -> None:
    assert words("The column 'age of the mother' of a person's table.") == 7
    assert sentences("It is so [AY05, sec. 2]. So is 'this. That'.") == ["It is so REFERENCE", "So is NAME."]
    phrase = min(NOT_USED)
    assert phrases_not_used(f"It is {phrase.capitalize()}, not '{phrase}'.") == [phrase]
    assert phrases_not_used(f"It is not{phrase}.") == []
