"""No certificate says more than its facts: every sentence follows, and none contradicts a fact or another sentence."""

from __future__ import annotations

from hypothesis import given, target

from sfumato.core.errors import PrivacyRefusal
from sfumato.core.facts import Claim, RandomnessSource, Refused, draw_claims
from tests.certificate.drawn_facts import Facts, any_facts, engine_facts
from tests.certificate.sentences import CLAIMS, CONTRADICTIONS, REFUSED, RIVALS, Sentence, plural, released


def known(text: str, basis: str, sentences: tuple[Sentence, ...]) -> tuple[Sentence, dict[str, str]]:
    """Find the one sentence that a text is, with what stands behind it."""
    found = [(sentence, said) for sentence in sentences if (said := sentence.match(text, basis)) is not None]
    assert len(found) == 1, f"{len(found)} of the sentences that were entered are this one: {text}"
    return found[0]


def check(facts: Facts, claims: tuple[Claim, ...], refused: tuple[Refused, ...]) -> None:
    made = set()
    for claim in claims:
        sentence, said = known(claim.claim, claim.basis, CLAIMS)
        assert sentence.true(facts, said), f"{claim.claim} does not follow"
        proved = (released(facts) or not sentence.by_chance) and not sentence.assumed(facts, said)
        assert claim.kind == ("proved" if proved else "assumed"), claim.claim
        assert plural(claim.claim + claim.basis), claim
        assert claim.basis
        assert claim.assumes
        made.add(sentence.name)
    not_made = set()
    for each in refused:
        sentence, said = known(each.claim, each.reason, REFUSED)
        assert sentence.true(facts, said), f"{each.claim} is refused without a cause"
        assert plural(each.claim + each.reason), each
        not_made.add(sentence.name)
    assert not {(claim, each) for claim in made for each in not_made} & CONTRADICTIONS
    assert all(len(made & rivals) <= 1 for rivals in RIVALS)
    texts = [claim.claim for claim in claims]
    assert len(set(texts)) == len(texts)
    assert not set(texts) & {each.claim for each in refused}
    assert "anonymous" in not_made
    assert ("seed" in not_made) == any(isinstance(fact, RandomnessSource) and fact.mode == "dry-run" for fact in facts)


@given(engine_facts)
def test_what_an_engine_states_bears_sentences_that_all_follow(facts: Facts) -> None:
    claims, refused = draw_claims(facts)
    target(float(len(claims) + len(refused)))
    check(facts, claims, refused)


@given(any_facts())
def test_any_facts_bear_sentences_that_all_follow_or_none(facts: Facts) -> None:
    try:
        claims, refused = draw_claims(facts)
    except PrivacyRefusal:
        return
    check(facts, claims, refused)
