"""What the page receives: whole numbers of the law, and promises that are never better than they are."""

from __future__ import annotations

import json
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.core.distributions.domains import Integers, Labels, Reals
from sfumato.core.distributions.spec import NoiseSpec
from sfumato.core.errors import OptionError
from sfumato.survey.app import Pages, law_plan, percent, plan_of, question_plan
from sfumato.survey.questions import Question, Survey


def spec(**law: object) -> NoiseSpec:
    return NoiseSpec(Integers(0, 9), law)


def test_chances_are_the_fractions_that_python_draws() -> None:
    keep = law_plan(spec(name="keep-or-replace", keep=0.2).operator)
    assert keep == {"kind": "keep-or-replace", "size": 10, "numerator": "1", "denominator": "5"}
    mixture = law_plan(spec(name="mixture", weight=0.25, of={"name": "shift-modulo", "reach": 3}).operator)
    assert mixture["of"] == {"kind": "shift-modulo", "size": 10, "reach": 3}
    gaussian = law_plan(spec(name="gaussian", sd=1.5).operator)
    assert Fraction(int(gaussian["numerator"]), int(gaussian["denominator"])) == Fraction(9, 4)
    assert gaussian["above"] == "2"


def test_a_response_for_an_epsilon_is_keep_or_replace_with_its_exact_chance() -> None:
    operator = NoiseSpec(Labels(tuple("abcd")), {"name": "response", "epsilon": 1.0}).operator
    plan = law_plan(operator)
    assert plan["kind"] == "keep-or-replace"
    assert int(plan["numerator"]) / int(plan["denominator"]) == operator.probabilities([2])[0, 2]  # type: ignore[arg-type]


def test_a_plan_is_json_and_small_where_the_domain_is_large() -> None:
    wide = NoiseSpec(Integers(0, 999_999), {"name": "interval", "edges": [10, 500_000]})
    plan = question_plan(Question("answer", wide))
    assert plan["law"] == {"kind": "intervals", "size": 1_000_000, "starts": [0, 10, 500_000]}
    assert len(json.dumps(plan)) < 2000


def test_what_a_page_cannot_do_is_refused() -> None:
    labels = Labels(tuple(map(str, range(501))))
    matrix = [[0.5 if y == x else 0.5 if y == (x + 1) % 501 else 0.0 for x in range(501)] for y in range(501)]
    with pytest.raises(OptionError, match="too large for a page"):
        question_plan(Question("answer", NoiseSpec(labels, {"name": "response", "matrix": matrix})))


def test_bounded_noise_names_what_its_ends_prove_and_other_noise_does_not() -> None:
    uniform = NoiseSpec(Integers(0, 100), {"name": "uniform", "reach": 50})
    proof = question_plan(Question("age", uniform))["proof"]
    assert "if 150 is sent, your true answer can only be 100" in proof
    assert "if -50 is sent, it can only be 0" in proof
    assert question_plan(Question("age", spec(name="laplace", scale=2)))["proof"] is None


def test_bounds_are_given_only_where_there_is_one() -> None:
    good, none = spec(name="keep-or-replace", keep=0.5), spec(name="gaussian", sd=2)
    assert question_plan(Question("age", good))["bounds"] == [good.bound(prior) for prior in (0.01, 0.1, 0.5)]
    assert question_plan(Question("age", none))["bounds"] is None
    assert plan_of(Survey((Question("a", good), Question("b", none))))["together"] is None
    both = plan_of(Survey((Question("a", good), Question("b", good))))["together"]
    assert both[0] > good.bound(0.01)


@given(st.floats(0.0, 1.0))
def test_a_bound_in_percent_is_never_rounded_down(share: float) -> None:
    shown = float(percent(share).removesuffix(" %")) / 100.0
    assert shown >= share - 1e-9
    assert shown <= share + 0.0011


def test_pages_escape_what_people_write() -> None:
    question = Question("pay", NoiseSpec(Reals(0.0, 1.0, 0.5), {"name": "laplace", "scale": 1}), "</script><b>")
    page = Pages(Survey((question,), "<i>")).open["/"].text
    assert "<i>" not in page
    assert "<b>" not in page
    assert page.count("</script>") == 2
