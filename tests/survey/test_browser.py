"""The page in a real browser: what leaves it is the randomized answer, by the law, once, and to nobody else.

Driven by Playwright with the Chromium of this machine (SFUMATO_CHROMIUM names another one); skipped without them. A
browser takes about a second for a story, so some of them run in ``make slow`` only.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import chi2

from sfumato.core.distributions.domains import Integers, Labels, Reals, Universe
from sfumato.core.distributions.spec import NoiseSpec
from sfumato.survey.app import law_plan, question_plan
from sfumato.survey.questions import Question
from sfumato.survey.store import AnswerStore, Submission
from tests.browser import started
from tests.examples import at_length, sized
from tests.survey.process import Running, collector, tokens

axe_api = pytest.importorskip("axe_playwright_python.sync_playwright", reason="axe-playwright-python is not installed")

pytestmark = pytest.mark.pages
LIGHT, DARK = ("light", 1280), ("dark", 360)
PATIENCE = 300_000.0  # milliseconds
FALSE_ALARM = 1e-9

PETS = """
format = 1
domain = { kind = "labels", values = ["cat", "dog", "bird", "zebra"] }
law = { name = "keep-or-replace", keep = 0.4 }
"""
NEVER = PETS.replace("keep = 0.4", "keep = 0")
AGE = 'format = 1\ndomain = { kind = "integers", low = 18, high = 90 }\nlaw = { name = "uniform", reach = 20 }\n'
AGES_REFUSED = sized(("", "91", "44.5"), ("", "17", "91", "44.5", "forty", "1e2", "4 4"))
PAY = (
    'format = 1\ndomain = { kind = "reals", low = -5, high = 5, grid = 0.25 }\nlaw = { name = "laplace", scale = 4 }\n'
)


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with started() as running:
        yield running


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("browser")


@pytest.fixture(scope="module")
def survey(home: Path) -> Iterator[Running]:
    """Three questions of three kinds."""
    options = ["--rate", "0", "--title", "Pets & <people>"]
    for name, spec, text in (
        ("pet", PETS, "Which <animal>?"),
        ("age", AGE, "How old?"),
        ("pay", PAY, "Which balance?"),
    ):
        (home / f"{name}.toml").write_text(spec, encoding="utf-8")
        options += ["--spec", f"{name}={home / f'{name}.toml'}", "--question", f"{name}={text}"]
    with collector(str(home / "survey.db"), home, *options) as running:
        yield running


@pytest.fixture(scope="module")
def given(survey: Running, home: Path) -> Iterator[str]:
    assert survey.url
    return iter(tokens(str(home / "survey.db"), 100))


class Look:
    """One page as it is seen: what it logs and what it asks for is kept."""

    def __init__(self, browser: Any, url: str, *, scheme: str = "light", width: int = 1280, **options: Any) -> None:
        size = {"width": width, "height": 900}
        self.context = browser.new_context(viewport=size, color_scheme=scheme, bypass_csp=options.pop("bypass", False))
        self.context.set_default_timeout(PATIENCE)
        self.page = self.context.new_page()
        self.said: list[str] = []
        self.requests: list[Any] = []
        self.page.on("console", lambda message: self.said.append(message.text))
        self.page.on("pageerror", lambda error: self.said.append(str(error)))
        self.page.on("request", lambda request: self.requests.append(request))
        if "before" in options:
            self.page.add_init_script(options["before"])
        self.page.goto(url)

    def __enter__(self) -> Look:
        return self

    def __exit__(self, *_: object) -> None:
        self.context.close()

    @property
    def bodies(self) -> list[dict[str, Any]]:
        """What was posted as answers."""
        return [json.loads(each.post_data) for each in self.requests if each.url.endswith("/api/answer")]

    def fill(self, pet: str = "zebra", age: str = "44", pay: str = "1.3") -> None:
        self.page.locator(f"input[value='{pet}']").check()
        self.page.locator("#q-age").fill(age)
        self.page.locator("#q-pay").fill(pay)

    def send(self, outcome: str = "good") -> None:
        self.page.locator("#go").click()
        self.page.locator(f"#message.{outcome}").wait_for()

    @property
    def message(self) -> str:
        return str(self.page.locator("#message").inner_text())


@contextmanager
def small_survey(folder: Path, spec: str, number: int) -> Iterator[tuple[Running, list[str]]]:
    db = str(folder / "survey.db")
    with collector(db, folder, "--rate", "0", spec=spec) as running:
        yield running, tokens(db, number)


def fits(drawn: np.ndarray[Any, Any], chances: np.ndarray[Any, Any]) -> bool:
    """Test counts against chances by chi-square; rare cells are put together."""
    expected = chances * drawn.sum()
    rare = expected < 8.0
    observed = np.append(drawn[~rare], drawn[rare].sum())
    wanted = np.append(expected[~rare], max(drawn.sum() - expected[~rare].sum(), 1e-9))
    if wanted[-1] < 8.0:
        observed, wanted = observed[:-1], wanted[:-1]
    statistic = float(((observed - wanted) ** 2 / wanted).sum())
    return statistic <= float(chi2.isf(FALSE_ALARM, len(observed)))


@pytest.mark.parametrize("count", [4, *at_length(45)])
def test_what_is_sent_is_the_randomized_answer_and_follows_the_law(browser: Any, tmp_path: Path, count: int) -> None:
    with small_survey(tmp_path, PETS, count) as (running, given), Look(browser, running.url) as look:
        for token in given:
            look.page.evaluate("token => { location.hash = token }", token)
            look.page.locator("#form:visible").wait_for()
            look.page.locator("input[value='zebra']").check()
            look.send()
            assert "has arrived" in look.message
            assert look.page.locator("#sent dd").inner_text() == look.bodies[-1]["answers"]["answer"]
        bodies = look.bodies
        assert look.said == []
    assert [body["token"] for body in bodies] == given
    assert all(set(body) == {"token", "digest", "answers"} for body in bodies)
    values = ["cat", "dog", "bird", "zebra"]
    drawn = np.array([sum(body["answers"]["answer"] == value for body in bodies) for value in values])
    assert drawn.sum() == count
    assert count < 45 or fits(drawn, np.array([0.2, 0.2, 0.2, 0.4]))  # too few to tell; the samplers are tested below
    store = AnswerStore.open(str(tmp_path / "survey.db"))
    assert store.counts() == (count, {0: {code: int(n) for code, n in enumerate(drawn) if n}})
    store.close()


def test_the_true_answer_is_in_no_request_and_in_no_storage(browser: Any, tmp_path: Path) -> None:
    with small_survey(tmp_path, NEVER, sized(3, 6)) as (running, given), Look(browser, running.url) as look:
        for token in given:  # this law never sends the truth, so it must not be seen anywhere
            look.page.goto(f"{running.url}#{token}")
            look.page.reload()
            look.page.locator("#go:enabled").wait_for()
            look.page.locator("input[value='zebra']").check()
            look.send()
        assert len(look.bodies) == len(given)
        for request in look.requests:
            assert "zebra" not in request.url + (request.post_data or "") + json.dumps(request.all_headers())
        storage = look.page.evaluate("JSON.stringify([{...localStorage}, {...sessionStorage}, document.cookie])")
        assert "zebra" not in storage
        assert given[0] in storage


def test_the_page_speaks_to_its_own_server_only_and_logs_nothing(browser: Any, survey: Running, given: Any) -> None:
    token = next(given)
    with Look(browser, f"{survey.url}#{token}") as look:
        look.fill()
        look.send()
        assert "has arrived" in look.message
        assert look.said == []
        assert all(request.url.startswith(survey.url) for request in look.requests)
        gets = [request.url for request in look.requests if request.method == "GET"]
        assert not any(token in url for url in gets if "#" not in url)
        sent = look.bodies[0]["answers"]
    assert sent["pet"] in ("cat", "dog", "bird", "zebra")
    assert 24 <= sent["age"] <= 64
    assert sent["pay"] * 4 == int(sent["pay"] * 4)


def test_a_retry_sends_the_same_answer(browser: Any, survey: Running, given: Any) -> None:
    with Look(browser, f"{survey.url}#{next(given)}") as look:
        lost = {"times": 2}

        def drop(route: Any) -> None:
            if lost["times"]:
                lost["times"] -= 1
                if lost["times"] == 0:
                    route.fetch()  # it arrives, and its acknowledgement is lost
                route.abort()
            else:
                route.continue_()

        look.page.route("**/api/answer", drop)
        look.fill()
        look.send("bad")
        assert "could not be reached" in look.message
        look.page.locator("#again").click()
        look.page.locator("#again:enabled").wait_for()
        look.page.reload()
        look.page.locator("#message.note").wait_for()
        assert "may not have arrived" in look.message
        assert look.page.locator("#form").is_hidden()
        with look.page.expect_response("**/api/answer") as response:
            look.page.locator("#again").click()
        assert response.value.json() == {"accepted": True, "again": True}
        look.page.locator("#message.good").wait_for()
        assert len(look.bodies) == 3
        assert {json.dumps(body) for body in look.bodies} == {json.dumps(look.bodies[0])}
        look.page.reload()
        assert "You have answered" in look.message
        assert look.page.locator("#again").is_hidden()
        assert len(look.bodies) == 3


@pytest.mark.slow
def test_a_changed_specification_gets_no_second_draw(browser: Any, survey: Running, given: Any) -> None:
    token = next(given)
    old = {"digest": "0" * 64, "answers": {"pet": "cat", "age": 30, "pay": 0}, "accepted": False}
    script = f"localStorage.setItem('sfumato-answer:{token}', JSON.stringify({json.dumps(old)}))"
    with Look(browser, f"{survey.url}#{token}", before=script) as look:
        assert "has changed" in look.message
        assert look.page.locator("#again").is_hidden()
        assert look.page.locator("#form").is_hidden()
        assert look.bodies == []


@pytest.mark.slow
def test_a_second_token_in_the_same_browser_is_pointed_out(browser: Any, survey: Running, given: Any) -> None:
    with Look(browser, f"{survey.url}#{next(given)}") as look:
        assert look.page.locator("#before").is_hidden()
        look.fill()
        look.send()
        look.page.goto(f"{survey.url}#{next(given)}")
        look.page.reload()
        assert look.page.locator("#before").is_visible()


def test_without_storage_nothing_is_sent(browser: Any, survey: Running, given: Any) -> None:
    script = "Object.defineProperty(window, 'localStorage', { get() { throw new Error('none') } })"
    with Look(browser, f"{survey.url}#{next(given)}", before=script) as look:
        assert "keeps nothing" in look.message
        assert look.page.locator("#go").is_disabled()
        assert look.bodies == []


def test_a_wrong_entry_is_marked_and_nothing_is_sent(browser: Any, survey: Running, given: Any) -> None:
    with Look(browser, f"{survey.url}#{next(given)}") as look:
        for age in AGES_REFUSED:
            look.fill(age=age)
            look.page.evaluate("document.getElementById('message').className = ''")
            look.send("bad")
            assert "Nothing was sent" in look.message
            assert look.page.locator("#error-age").is_visible()
            assert look.page.locator("#error-pet").is_hidden()
            assert look.page.evaluate("document.activeElement.id") == "q-age"
        assert look.bodies == []
        assert look.page.evaluate("localStorage.length") == 0


@pytest.mark.slow
def test_a_token_can_be_typed_and_a_wrong_one_is_told(browser: Any, survey: Running, given: Any) -> None:
    with Look(browser, survey.url) as look:
        look.fill()
        look.send("bad")
        assert "enter the token" in look.message
        look.page.locator("#token").fill("x" * 43)
        look.page.locator("#token").press("Enter")
        look.page.locator("#message:has-text('not a token of this survey')").wait_for()
        assert look.page.locator("#q-age").is_hidden()
        look.page.locator("#token").fill(f" {next(given)} ")
        look.page.locator("#go").click()
        look.page.locator("#message.good").wait_for()
        first, second = look.bodies
        assert first["answers"] == second["answers"]  # the server has seen the first: no other is drawn
        assert look.page.evaluate("localStorage.length") == 1


@pytest.mark.slow
def test_a_server_that_denies_a_token_gets_the_same_answer_again_and_again(
    browser: Any, survey: Running, given: Any
) -> None:
    one, two = next(given), next(given)
    with Look(browser, f"{survey.url}#{one}") as look:
        lies = {"times": 3}

        def deny(route: Any) -> None:
            if lies["times"]:
                lies["times"] -= 1
                route.fulfill(status=401, content_type="application/json", body='{"error": "no token"}')
            else:
                route.continue_()

        look.page.route("**/api/answer", deny)
        look.fill()
        look.send("bad")
        for address in (one, one, two):  # the link again, and then another token
            look.page.goto(f"{survey.url}#{address}")
            look.page.reload()
            look.page.locator("#message.note").wait_for()
            assert "no other one is drawn" in look.message
            assert look.page.locator("#q-age").is_hidden()
            with look.page.expect_response("**/api/answer"):
                look.page.locator("#go").click()
        look.page.locator("#message.good").wait_for()
        bodies = look.bodies
    assert [body["token"] for body in bodies] == [one, one, one, two]
    assert len({json.dumps(body["answers"]) for body in bodies}) == 1


@pytest.mark.slow
def test_a_second_tab_sends_what_the_first_has_drawn(browser: Any, survey: Running, given: Any) -> None:
    with Look(browser, f"{survey.url}#{next(given)}") as look:
        other = look.context.new_page()
        posted: list[str] = []
        other.on("request", lambda request: posted.append(request.url) if request.method == "POST" else None)
        other.goto(look.page.url)
        other.locator("#go:enabled").wait_for()
        look.fill()
        look.send()
        sent = look.page.locator("#sent").inner_text()
        other.locator("input[value='cat']").check()
        other.locator("#q-age").fill("20")
        other.locator("#q-pay").fill("1")
        other.locator("#go").click()
        other.locator("#message.good:has-text('You have answered')").wait_for()
        assert other.locator("#sent").inner_text() == sent
        assert posted == []


@pytest.mark.slow
def test_a_reply_that_comes_late_is_not_taken_for_another_tokens(browser: Any, survey: Running, given: Any) -> None:
    one, two = next(given), next(given)
    with Look(browser, f"{survey.url}#{one}") as look:
        held: list[Any] = []
        look.page.route("**/api/answer", lambda route: held.append(route))
        look.fill()
        with look.page.expect_request("**/api/answer"):
            look.page.locator("#go").click()
        look.page.evaluate("token => { location.hash = token }", two)
        look.page.locator("#before:visible").wait_for()
        with look.page.expect_response("**/api/answer"):
            held[0].continue_()
        look.page.wait_for_function("one => JSON.parse(localStorage[`sfumato-answer:${one}`]).accepted", arg=one)
        assert look.page.evaluate("Object.keys(localStorage)") == [f"sfumato-answer:{one}"]
        assert look.page.locator("#form").is_visible()


@pytest.mark.slow
@pytest.mark.parametrize("enabled", [True, False])
def test_without_a_script_nothing_is_sent(enabled: bool, browser: Any, survey: Running, given: Any) -> None:
    context = browser.new_context(java_script_enabled=enabled)
    context.set_default_timeout(PATIENCE)
    page, asked = context.new_page(), []
    page.on("request", lambda request: asked.append((request.method, request.url)))
    page.route("**/law.js", lambda route: route.abort())  # with scripts on, one of them does not come
    page.goto(f"{survey.url}#{next(given)}")
    page.locator("input[value='zebra']").check()
    page.locator("#q-age").fill("44")
    page.locator("#q-age").press("Enter")
    page.locator("#go").click(force=True)
    page.wait_for_timeout(200)
    assert {method for method, _ in asked} == {"GET"}
    assert not any("44" in url.partition("#")[0].removeprefix(survey.url) or "zebra" in url for _, url in asked)
    assert "?" not in page.url
    context.close()


@pytest.mark.slow
def test_labels_arrive_as_they_are_written(browser: Any, tmp_path: Path) -> None:
    odd = ["", " two  spaces ", "<script>alert(1)</script>", "\"quotes'", "&amp;"]
    options = ["--rate", "0"]
    for name, labels in (("buttons", odd), ("list", [*odd, *"abcdefghi"])):
        spec = 'format = 1\nlaw = { name = "keep-or-replace", keep = 1 }\n'
        spec += f'domain = {{ kind = "labels", values = {json.dumps(labels, ensure_ascii=False)} }}\n'
        (tmp_path / f"{name}.toml").write_text(spec, encoding="utf-8")
        options += ["--spec", f"{name}={tmp_path / f'{name}.toml'}"]
    db = str(tmp_path / "survey.db")
    with collector(db, tmp_path, *options) as running, Look(browser, running.url) as look:
        for place, (token, label) in enumerate(zip(tokens(db, len(odd)), odd, strict=True)):
            look.page.goto(f"{running.url}#{token}")
            look.page.locator("#form:visible #go:enabled").click()
            look.page.locator("#message:has-text('Nothing was sent')").wait_for()
            look.page.locator("input[type=radio]").nth(place).check()
            look.page.locator("#q-list").select_option(index=place + 1)
            look.send()
            assert look.bodies[-1]["answers"] == {"buttons": label, "list": label}
        assert not any("alert" in text for text in look.said)


def test_the_page_says_what_the_server_can_learn(browser: Any, survey: Running) -> None:
    with Look(browser, survey.url) as look:
        text = look.page.locator("main").inner_text()
        assert look.page.locator("h1").inner_text() == "Pets & <people>"
    pet = NoiseSpec.from_toml(PETS)
    assert f"at most {100 * pet.bound(0.1):.1f} % sure" in text  # gamma 2: 18.2 %
    assert "There is no bound" in text
    assert "if 110 is sent, your true answer can only be 90" in text
    assert "if -2 is sent, it can only be 18" in text
    assert "For all answers of yours together there is no bound" in text


AGES, TENS = Integers(3, 12), Integers(0, 9)
LAWS: dict[str, tuple[Universe, dict[str, Any]]] = {
    "keep": (AGES, {"name": "keep-or-replace", "keep": 0.3}),
    "keep nothing": (AGES, {"name": "keep-or-replace", "keep": 0}),
    "shift": (AGES, {"name": "shift-modulo", "reach": 2}),
    "shift around": (AGES, {"name": "shift-modulo", "reach": 17}),
    "mixture": (AGES, {"name": "mixture", "weight": 0.7, "of": {"name": "shift-modulo", "reach": 1}}),
    "uniform": (AGES, {"name": "uniform", "reach": 4}),
    "laplace": (AGES, {"name": "laplace", "scale": 2.5}),
    "laplace, narrow": (AGES, {"name": "laplace", "scale": 0.3}),
    "laplace on a grid": (Reals(0.0, 1.0, 0.1), {"name": "laplace", "scale": 0.15}),
    "gaussian": (AGES, {"name": "gaussian", "sd": 2.2}),
    "gaussian, narrow": (AGES, {"name": "gaussian", "sd": 0.6}),
    "response": (Labels(("a", "b", "c")), {"name": "response", "epsilon": 1.2}),
    "response matrix": (
        Labels(("a", "b", "c")),
        {"name": "response", "matrix": [[0.7, 0.2, 0.1], [0.0, 0.5, 0.5], [1 / 3, 1 / 3, 1 / 3]]},
    ),
    "subset": (Labels(tuple(f"v{place}" for place in range(30))), {"name": "subset", "epsilon": 1.0}),
    "interval": (TENS, {"name": "interval", "edges": [2, 7]}),
    "rounding": (TENS, {"name": "rounding", "to": 4}),
    "taxonomy": (
        Labels(("flu", "burn", "cold")),
        {"name": "taxonomy", "parents": {"flu": "i", "burn": "j", "cold": "i"}},
    ),
}


@pytest.fixture(scope="module")
def script(browser: Any, survey: Running) -> Iterator[Any]:
    """Evaluates in a page that has the module of the laws."""
    with Look(browser, survey.url) as look:
        yield look.page.evaluate


@pytest.mark.parametrize("name", list(LAWS))
def test_every_sampler_of_the_page_follows_its_law(name: str, script: Any) -> None:
    spec = NoiseSpec(*LAWS[name])
    size = spec.operator.size
    for x in sorted({0, size // 2, size - 1}):
        found = script(
            """async ([law, x, count]) => {
                const { randomize } = await import("/static/law.js");
                const drawn = {};
                for (let each = 0; each < count; each += 1) {
                    const y = randomize(law, x);
                    drawn[y] = (drawn[y] ?? 0) + 1;
                }
                return drawn;
            }""",
            [law_plan(spec.operator), x, 3000],
        )
        outputs = np.array(sorted(map(int, found)))
        possible = spec.operator.outputs or range(min(-60, outputs[0]), max(size + 60, outputs[-1]) + 1)
        assert possible.start <= outputs[0]
        assert outputs[-1] < possible.stop
        places = np.arange(possible.start, possible.stop)
        drawn = np.array([found.get(str(place), 0) for place in places])
        chances = spec.operator.probabilities(places)[:, x]
        assert drawn[chances == 0.0].sum() == 0
        assert fits(drawn, chances)


@pytest.mark.parametrize("below", [1, 2, 3, 6, 255, 256, 257, 1000, 2**53, 3**70])
def test_whole_numbers_are_drawn_evenly(below: int, script: Any) -> None:
    found = script(
        """async ([below, cells, count]) => {
            const { uniform } = await import("/static/chance.js");
            const drawn = new Array(cells).fill(0);
            for (let each = 0; each < count; each += 1) {
                const number = uniform(BigInt(below));
                if (number < 0n || number >= BigInt(below)) throw new Error("outside");
                drawn[Number((number * BigInt(cells)) / BigInt(below))] += 1;
            }
            return drawn;
        }""",
        [str(below), min(below, 20), 3000],
    )
    cells = min(below, 20)
    sizes = np.bincount([number * cells // below for number in range(below)]) if below <= 1000 else np.ones(cells)
    assert fits(np.array(found), sizes / sizes.sum())


@pytest.mark.parametrize("name", list(LAWS))
def test_the_page_reads_and_writes_values_as_python_does(name: str, script: Any) -> None:
    spec = NoiseSpec(*LAWS[name])
    plan = question_plan(Question("answer", spec))
    truth = spec.domain.decode(np.arange(spec.domain.size)).tolist()
    outputs = spec.operator.outputs or range(-30, spec.operator.size + 30)
    codes, values = script(
        """async ([plan, typed, places]) => {
            const { decode, encode } = await import("/static/law.js");
            return [typed.map(each => encode(plan.domain, each)), places.map(each => decode(plan.released, each))];
        }""",
        [plan, [str(each) for each in truth], list(outputs)],
    )
    assert codes == list(range(spec.domain.size))
    assert values == spec.decode_output(np.array(outputs)).tolist()
    question = Question("answer", spec)
    kept = [each for each in outputs if -7 <= each < spec.operator.size + 7]
    assert [question.encode(values[each - outputs.start]) for each in kept] == kept


@pytest.mark.parametrize(
    ("low", "high", "grid"),
    [(0.0, 1.0, 0.1), (0.4999, 15.0001, 0.0001), (-7.3, 2.7, 0.05), (0.0, 10.0, 0.25), (-1e6, 1e6, 0.01)],
)
def test_page_and_client_agree_in_the_last_digit(low: float, high: float, grid: float, script: Any) -> None:
    spec = NoiseSpec(Reals(low, high, grid), {"name": "laplace", "scale": (high - low) / 3})
    plan, rng = question_plan(Question("answer", spec)), np.random.default_rng(6)
    places = rng.integers(-spec.domain.size, 2 * spec.domain.size, 400)
    inside = rng.integers(0, spec.domain.size - 1, 400)
    typed = [f"{number:.12f}" for number in low + (inside + rng.choice([0.5, 0.25, 0.75, 0.0], 400)) * grid]
    codes, sent, written = script(
        """async ([plan, typed, places]) => {
            const { decode, encode } = await import("/static/law.js");
            const sent = places.map(each => decode(plan.released, each));
            return [typed.map(each => encode(plan.domain, each)), sent, JSON.stringify(sent)];
        }""",
        [plan, typed, places.tolist()],
    )
    assert codes == spec.domain.encode([float(text) for text in typed]).tolist()
    assert sent == spec.decode_output(places).tolist()  # bit for bit
    assert json.loads(written) == sent


@pytest.mark.parametrize(
    "typed", ["", " ", "1e3", "0x10", "--4", "4.", "NaN", "Infinity", "999", "-1", "4,5,6", "forty", "4 4", "\u0664"]
)
def test_what_is_no_number_of_the_domain_has_no_place(typed: str, script: Any) -> None:
    found = script(
        'async (typed) => (await import("/static/law.js")).encode({kind: "integers", low: 0, high: 9}, typed)',
        typed,
    )
    assert found == (4 if typed == "4." else None)


@pytest.fixture(scope="module")
def filled(survey: Running, home: Path) -> Running:
    """Enough answers for the dashboard."""
    store = AnswerStore.open(str(home / "survey.db"))
    rng = np.random.default_rng(8)
    specs = [NoiseSpec.from_toml(text) for text in (PETS, AGE, PAY)]
    columns = [each.operator.randomize(rng.binomial(each.domain.size - 1, 0.4, 3000), rng).tolist() for each in specs]
    rows = zip(*columns, strict=True)
    store.add([Submission(secrets.token_bytes(32), secrets.token_bytes(16), tuple(row)) for row in rows])
    store.close()
    return survey


def open_dashboard(look: Look, running: Running) -> None:
    look.page.locator("#password").fill(running.password)
    look.page.locator("#password").press("Enter")
    look.page.locator("#shown-pay .bar").first.wait_for(state="attached")


@pytest.mark.slow
def test_the_dashboard_draws_every_distribution_with_its_band(browser: Any, filled: Running) -> None:
    with Look(browser, f"{filled.url}dashboard") as look:
        assert look.page.locator("#count").count() == 0
        open_dashboard(look, filled)
        assert int(look.page.locator("#count").inner_text().replace(",", "")) >= 3000
        for name, cells in (("pet", 4), ("age", 73), ("pay", 41)):
            assert look.page.locator(f"#figure-{name} .bar").count() in (cells, 50, 41)
            assert look.page.locator(f"#figure-{name} .band").count() == look.page.locator(f"#rows-{name} tr").count()
        look.page.locator("summary").first.click()
        shares = [row.split("\t") for row in look.page.locator("#rows-pet").inner_text().splitlines()]
        assert [row[0] for row in shares] == ["cat", "dog", "bird", "zebra"]
        assert look.said == []
        assert all(request.url.startswith(filled.url) for request in look.requests)
        look.page.locator("#leave").click()
        look.page.locator("#password").wait_for()


@pytest.mark.slow
def test_the_dashboard_shows_no_figure_below_its_least_count(browser: Any, tmp_path: Path) -> None:
    with small_survey(tmp_path, PETS, 49) as (running, given):
        assert [running.answer(token, answer="cat") for token in given] == [200] * 49
        with Look(browser, f"{running.url}dashboard") as look:
            look.page.locator("#password").fill(running.password)
            look.page.locator("#go").click()
            look.page.locator("#words:has-text('from 50 answers on')").wait_for()
            assert look.page.locator("#count").inner_text() == "49"
            assert look.page.locator(".bar").count() == 0
            assert look.page.locator("#shown-answer").is_hidden()


@pytest.mark.slow
def test_a_wrong_password_is_told(browser: Any, survey: Running) -> None:
    with Look(browser, f"{survey.url}dashboard") as look:
        look.page.locator("#password").fill("not the password")
        look.page.locator("#go").click()
        look.page.locator("#message.bad:has-text('not the password of')").wait_for()
        assert look.page.locator("#password").is_visible()
        assert look.page.locator("#count").count() == 0
        assert [request.response().status for request in look.requests if request.url.endswith("/login")] == [401]


def barriers(look: Look) -> list[str]:
    found = axe_api.Axe().run(look.page).response["violations"]
    return [f"{each['id']}: {each['nodes'][0]['html']}" for each in found if each["impact"] in ("serious", "critical")]


def fits_the_width(look: Look) -> bool:
    wide, seen = look.page.evaluate("[document.documentElement.scrollWidth, document.documentElement.clientWidth]")
    return bool(wide <= seen)


@pytest.mark.parametrize(("scheme", "width"), [DARK, *at_length(LIGHT)])
def test_everybody_can_use_the_form(scheme: str, width: int, browser: Any, survey: Running, given: Any) -> None:
    with Look(browser, survey.url, scheme=scheme, width=width, bypass=True) as look:
        look.page.locator("summary").click()
        assert barriers(look) == []
        assert fits_the_width(look)
        look.send("bad")  # nothing filled in
        assert barriers(look) == []
        look.page.locator("#token").fill(next(given))
        look.fill()
        look.send()
        assert "has arrived" in look.message
        assert barriers(look) == []
        assert fits_the_width(look)


@pytest.mark.parametrize(("scheme", "width"), at_length(LIGHT, DARK))
def test_everybody_can_use_the_dashboard(scheme: str, width: int, browser: Any, filled: Running) -> None:
    with Look(browser, f"{filled.url}dashboard", scheme=scheme, width=width, bypass=True) as look:
        assert barriers(look) == []
        open_dashboard(look, filled)
        look.page.evaluate("document.querySelectorAll('details').forEach(each => each.open = true)")
        assert barriers(look) == []
        assert fits_the_width(look)
        cut = look.page.evaluate(
            """() => [...document.querySelectorAll('figure svg')].flatMap(svg => {
                const box = svg.getBoundingClientRect();
                return [...svg.querySelectorAll('text')].filter(text => {
                    const each = text.getBoundingClientRect();
                    return each.left < box.left - 1 || each.right > box.right + 1 || each.bottom > box.bottom + 1;
                }).map(text => text.textContent);
            })"""
        )
        assert cut == []


@pytest.mark.slow
def test_the_form_works_with_the_keyboard_alone(browser: Any, survey: Running, given: Any) -> None:
    with Look(browser, f"{survey.url}#{next(given)}") as look:
        keys = look.page.keyboard
        keys.press("Tab")
        keys.press("Space")
        keys.press("Tab")
        keys.type("44")
        keys.press("Tab")
        keys.type("-2.5")
        keys.press("Enter")
        look.page.locator("#message.good").wait_for()
        assert look.page.evaluate("document.activeElement.id") == "message"
