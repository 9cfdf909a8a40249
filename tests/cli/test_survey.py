"""The verbs of a survey, from tokens to the estimate."""

from __future__ import annotations

import json
import secrets
import socket
import stat
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("starlette", reason="sfumato[survey] is not installed")
pytest.importorskip("uvicorn", reason="sfumato[survey] is not installed")

from sfumato.core.distributions.domains import Labels
from sfumato.core.distributions.spec import NoiseSpec
from sfumato.survey.questions import Question, Survey
from sfumato.survey.store import AnswerStore, Submission
from tests.cli.conftest import Run
from tests.survey.process import AGE, Running, collector

SMOKES = NoiseSpec(Labels(("no", "yes")), {"name": "response", "epsilon": 1.0})


@pytest.fixture
def db(tmp_path: Path) -> str:
    return str(tmp_path / "survey.db")


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Running, str]]:
    """A collector that all tests speak to, and its database."""
    folder = tmp_path_factory.mktemp("served")
    with collector(str(folder / "survey.db"), folder) as started:
        yield started, str(folder / "survey.db")


@pytest.fixture(autouse=True)
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SFUMATO_ANSWERS", str(tmp_path / "kept"))
    return tmp_path / "kept"


def test_tokens_are_written_for_the_owner_only_and_not_over_a_file(run: Run, db: str, tmp_path: Path) -> None:
    path = tmp_path / "tokens.txt"
    done = run("survey", "tokens", "--db", db, "-n", "7", "-o", path, "--json")
    assert (done.code, json.loads(done.out)["tokens"]) == (0, 7)
    assert len(set(path.read_text().split())) == 7
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    again = run("survey", "tokens", "--db", db, "-n", "7", "-o", path)
    assert again.code == 2
    assert "--overwrite" in again.err
    links = run("survey", "tokens", "--db", db, "-n", "2", "-o", path, "--overwrite", "--url", "https://s.example/")
    assert links.code == 0
    assert all(line.startswith("https://s.example/#") and len(line) == 19 + 43 for line in path.read_text().split())


def test_a_survey_from_specification_to_estimate(run: Run, served: tuple[Running, str], tmp_path: Path) -> None:
    running, db = served
    assert run("survey", "tokens", "--db", db, "-n", "3", "-o", tmp_path / "t.txt").code == 0
    link = f"{running.url}#{(tmp_path / 't.txt').read_text().split()[0]}"
    first = run("survey", "answer", "--url", link, "--value", "40", "--expect-digest", running.digest, "--json")
    assert first.code == 0, first.err
    second = run("survey", "answer", "--url", link, "--value", "41", "--json")
    assert json.loads(second.out)["again"] is True
    assert json.loads(second.out)["answers"] == json.loads(first.out)["answers"]
    assert "--value is not used" in second.err
    few = run("survey", "estimate", "--db", db)
    assert few.code == 3
    assert "too few" in few.err


def test_the_estimate_has_the_keys_of_a_reconstruction(run: Run, db: str) -> None:
    store = AnswerStore.open(db)
    store.set_survey(Survey((Question("answer", SMOKES),), "Smoking").to_document())
    rng = np.random.default_rng(4)
    codes = SMOKES.operator.randomize((rng.random(5000) < 0.25).astype(np.int64), rng).tolist()
    store.add([Submission(secrets.token_bytes(32), secrets.token_bytes(16), (code,)) for code in codes])
    store.close()
    done = run("survey", "estimate", "--db", db, "--json")
    document = json.loads(done.out)
    assert done.code == 0
    assert document["count"] == 5000
    assert document["values"] == ["no", "yes"]
    assert {"probability", "lower", "upper", "iterations", "stopped_by"} <= set(document)
    assert document["questions"]["answer"]["probability"] == document["probability"]
    # one deviation of the share is below 0.016; eight are beyond 10^-14
    assert abs(document["probability"][1] - 0.25) < 0.13
    spoken = run("survey", "estimate", "--db", db)
    assert "Smoking: 5000 answers" in spoken.out
    assert "yes:" in spoken.out


def test_a_respondent_who_wants_more_protection_does_not_answer(
    run: Run, served: tuple[Running, str], kept: Path
) -> None:
    link = f"{served[0].url}#{'x' * 43}"
    for wish in (("--max-rho2", "0.2"), ("--expect-digest", "0" * 64)):
        done = run("survey", "answer", "--url", link, "--value", "40", *wish)
        assert done.code == 3
        assert "do not answer" in done.err
    assert not kept.exists()


@pytest.mark.parametrize("value", ["400", "forty"])
def test_a_wrong_value_is_refused_unquoted(value: str, run: Run, served: tuple[Running, str]) -> None:
    done = run("survey", "answer", "--url", served[0].url, "--token", "x" * 43, "--value", value)
    assert done.code == 2
    assert value not in done.err


def test_an_answer_without_a_token_or_a_server_is_told(run: Run) -> None:
    assert "a token is needed" in run("survey", "answer", "--url", "http://127.0.0.1:9/").err
    gone = run("survey", "answer", "--url", "http://127.0.0.1:9/", "--token", "x" * 43, "--value", "1")
    assert gone.code == 1
    assert "cannot be reached" in gone.err
    open_air = run("survey", "answer", "--url", "http://s.example/", "--token", "x" * 43, "--value", "1")
    assert open_air.code == 3
    assert "--allow-http" in open_air.err


def test_estimating_what_is_not_there_is_bad_input(run: Run, db: str, tmp_path: Path) -> None:
    assert run("survey", "estimate", "--db", db).code == 2
    assert not Path(db).exists()
    run("survey", "tokens", "--db", db, "-n", "1", "-o", tmp_path / "t.txt")
    done = run("survey", "estimate", "--db", db)
    assert done.code == 2
    assert "no survey yet" in done.err


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--spec", "none.toml"), "there is no"),
        (("--spec", "spec.toml", "--spec", "spec.toml"), "NAME=FILE"),
        (("--spec", "a=spec.toml", "--spec", "a=spec.toml"), "same name"),
        (("--spec", "Age=spec.toml"), "choose another"),
        (("--spec", "a=spec.toml", "--spec", "b=spec.toml", "--question", "What?"), "NAME=TEXT"),
        (("--spec", "spec.toml", "--tls-key", "key.pem"), "--tls-cert"),
        (("--spec", "spec.toml", "--tls-cert", "spec.toml"), "not a certificate"),
        (("--spec", "spec.toml", "--password-file", "none"), "there is no"),
        (("--spec", "spec.toml", "--password-file", "short"), "shorter than 8"),
        (("--spec", "spec.toml", "--host", "203.0.113.7"), "cannot listen"),
        (("--spec", "spec.toml", "--max-body", "3"), "--max-body"),
        (("--spec", "spec.toml", "--proxy", "*"), "--proxy"),
        (("--spec", "spec.toml", "--proxy", "proxy.example"), "--proxy"),
    ],
)
def test_a_survey_that_cannot_be_served_is_told_in_one_sentence(
    options: tuple[str, ...], words: str, run: Run, db: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "short").write_text("abc\n")
    (tmp_path / "spec.toml").write_text(AGE)
    done = run("survey", "serve", "--db", db, *options)
    assert done.code == 2
    assert words in done.err
    assert "Traceback" not in done.err


def test_a_taken_port_is_told(run: Run, db: str, tmp_path: Path) -> None:
    (tmp_path / "spec.toml").write_text(AGE)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        done = run("survey", "serve", "--db", db, "--spec", tmp_path / "spec.toml", "--port", port)
    assert done.code == 2
    assert "choose another --port" in done.err


def test_other_machines_without_tls_are_warned_of_and_a_given_password_is_not_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SFUMATO_DASHBOARD_PASSWORD", "correct horse")
    with collector(str(tmp_path / "s.db"), tmp_path, "--host", "0.0.0.0") as running:
        text = running.log.read_text(encoding="utf-8")
        assert running.password == ""
        assert running.call("GET", "/dashboard/estimate", authorization="Bearer correct horse")[0] == 200
    assert "without TLS" in text
    assert "correct horse" not in text


@pytest.mark.parametrize("verb", ["serve", "tokens", "answer", "estimate"])
def test_every_verb_has_help(verb: str, run: Run) -> None:
    done = run("survey", verb, "--help")
    assert done.code == 0
    assert "--debug" in done.out
