"""The policy verb, and --policy on sanitize and evaluate."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest

import sfumato as sf
from sfumato.assess import measure
from sfumato.assess.attacks.inference import ATTRIBUTE_INFERENCE
from sfumato.assess.attacks.linkage import LINKAGE
from sfumato.assess.attacks.membership import MEMBERSHIP
from sfumato.assess.attacks.singling import SINGLING_OUT
from sfumato.publish.judge import PolicyNotMet
from sfumato.publish.policy import BUILT_IN, Policy
from tests.cli.conftest import Run


@pytest.mark.parametrize("name", BUILT_IN)
def test_a_policy_is_printed_to_edit(run: Run, name: str) -> None:
    done = run("policy", name)
    assert done.code == 0, done.err
    assert Policy.from_toml(done.out) == BUILT_IN[name]
    document = json.loads(run("policy", name, "--json").out)
    assert document["limits"] == BUILT_IN[name].limits
    assert document["file"] is None


def test_without_a_name_the_three_are_listed(run: Run) -> None:
    done = run("policy")
    assert done.code == 0
    assert [line.split()[0] for line in done.out.splitlines()[:3]] == list(BUILT_IN)
    assert len(json.loads(run("policy", "--json").out)["policies"]) == 3


def test_a_policy_is_written_to_a_file_that_may_be_edited_and_shown(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "ours.toml"
    assert run("policy", "-o", file).code == 0
    assert Policy.load(file) == BUILT_IN["research"]
    assert run("policy", "public", "-o", file).code == 2
    assert run("policy", "public", "-o", file, "--overwrite").code == 0
    file.write_text(file.read_text().replace('"public"', '"ours"').replace("0.03", "0.01"), encoding="utf-8")
    shown = run("policy", file)
    assert shown.code == 0
    assert Policy.from_toml(shown.out).limits["linkage-excess"] == 0.01


def test_what_is_no_policy_is_bad_input(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "ours.toml"
    file.write_text("format = 1\nname = 'x'\n[limits]\nlinkage-excess = nan\n", encoding="utf-8")
    done = run("policy", file)
    assert done.code == 2
    assert done.err.count("\n") == 1
    assert run("policy", "nosuch").code == 2


# -------------------------------------------------------------------------------------------------- sanitize, evaluate

LOOSE = """format = 1
name = "loose"
[limits]
linkage-excess = 1
attribute-excess = 1
singling-out-excess = 1
membership-auc = 1
membership-tpr = 1
[require]
control = true
min_group_size = 5
"""


@pytest.fixture
def loose(tmp_path: Path) -> Path:
    """A policy that whatever was measured meets."""
    file = tmp_path / "loose.toml"
    file.write_text(LOOSE, encoding="utf-8")
    return file


SMALL = "age > 200: 30, else: 5"  # how small groups may get is not known before the table is read

HELD = ("--holdout", 0.4)

unmeasured = pytest.mark.usefixtures("short_reports")  # without attacks no limit is judged


def facts_of(release: Path) -> list[str]:
    return [fact["fact"] for fact in json.loads((release / "certificate.json").read_text())["facts"]]


@unmeasured
def test_a_policy_that_is_not_met_leaves_the_owners_part_alone(run: Run, people: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    measured = ["--holdout", 0.4, "--level", SMALL]
    done = run("sanitize", people, "-o", out, "--method", "condense", *measured, "--policy", "research")
    assert done.code == 3
    assert done.err.strip().count("\n") == 0
    assert 'does not meet policy "research"' in done.err
    assert {file.relative_to(out).as_posix() for file in out.rglob("*")} == {
        "owner",
        *(f"owner/{name}" for name in ("report.html", "summary.html", "report.json")),
        *(f"owner/{name}" for name in ("schema-private.toml", "recipe.toml")),
    }
    assert all(file.stat().st_mode & 0o077 == 0 for file in (out / "owner").rglob("*"))
    verdict = json.loads((out / "owner" / "report.json").read_text())["verdict"]
    assert (verdict["policy"], verdict["outcome"]) == ("research", "does-not-meet")
    assert [each["limit"] for each in verdict["exceeded"]] == ["min_group_size", "rare", "tails"]
    assert (verdict["try"], verdict["tried"]) == ([], 0)
    none = "No setting can be shown to meet the policy: the table has too few records to decide."
    assert none in done.out
    assert none in (out / "owner" / "report.html").read_text()
    assert 'policy = "research"' in (out / "owner" / "recipe.toml").read_text()


@unmeasured
def test_what_to_try_was_tried_and_meets_the_policy_as_printed(run: Run, people: Path, tmp_path: Path) -> None:
    out, ours = tmp_path / "out", tmp_path / "ours.toml"
    ours.write_text('format = 1\nname = "ours"\n[require]\ncontrol = true\nmin_group_size = 12\n')
    done = run(
        "sanitize", people, "-o", out, "--method", "condense", "--k", 5, "--level", SMALL, *HELD, "--policy", ours
    )
    assert done.code == 3, done.err
    verdict = json.loads((out / "owner" / "report.json").read_text())["verdict"]
    (line,) = verdict["try"]
    assert verdict["tried"] >= 1
    assert f"To try next:  {line}" in done.out
    assert "Tried on this table" in (out / "owner" / "report.html").read_text()
    again = run(*shlex.split(line)[1:], "--json")
    assert again.code == 0, again.err  # what was left is replaced
    assert json.loads(again.out)["verdict"]["outcome"] == "meets"


@unmeasured
def test_a_release_despite_its_policy_says_so_and_verify_accepts_it(run: Run, people: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert run("sanitize", people, "-o", out, "--k", 5, "--policy", "trusted").code == 3
    told = ["--policy", "trusted", "--despite-policy", "--overwrite"]
    done = run("sanitize", people, "-o", out, "--k", 5, *told, "--json")
    assert done.code == 0, done.err
    assert json.loads(done.out)["verdict"]["outcome"] == "does-not-meet"
    certificate = json.loads((out / "release" / "certificate.json").read_text())
    fact = {"fact": "despite-policy", "policy": "trusted", "outcome": "does-not-meet"}
    assert fact in certificate["facts"]
    assert "The release meets the policy 'trusted'." in [each["claim"] for each in certificate["refused"]]
    assert run("verify", out / "release").code == 0
    page = (out / "release" / "report-public.html").read_text()
    assert "Does not meet policy &#34;trusted&#34;" in page
    assert "held out (" not in page.partition("</section>")[0]
    certificate["facts"].remove(fact)
    (out / "release" / "certificate.json").write_text(json.dumps(certificate, indent=2, ensure_ascii=False) + "\n")
    assert run("verify", out / "release").code == 3


@pytest.mark.usefixtures("without_figures")
def test_a_policy_that_is_met_lets_the_release_leave(
    run: Run, people: Path, loose: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(measure, "catalogue", lambda: (LINKAGE, SINGLING_OUT, ATTRIBUTE_INFERENCE, MEMBERSHIP))
    out = tmp_path / "out"
    done = run("sanitize", people, "-o", out, "--k", 5, "--holdout", 0.4, "--policy", loose)
    assert done.code == 0, done.err
    assert 'Meets policy "loose"' in done.out
    assert "despite-policy" not in facts_of(out / "release")
    document = json.loads((out / "owner" / "report.json").read_text())
    limits = document["verdict"].pop("limits")
    assert "membership-tpr" not in {each["limit"] for each in limits}
    assert {each["outcome"] for each in limits} == {"meets"}
    assert document["verdict"] == {
        "policy": "loose",
        "edited": False,
        "asked": True,
        "by": "measurement",
        "outcome": "meets",
        "exceeded": [],
        "missing": [
            {
                "limit": "membership-tpr",
                "finding": None,
                "reason": "it needs a control group of 1,000 records, and there are 48",
                "needed": False,
                "value": None,
                "interval": None,
                "allowed": None,
            }
        ],
        "try": [],
        "tried": None,
        "changes": [],
    }
    assert document["rows_held_out"] == 48
    public = (out / "release" / "report-public.html").read_text()
    box = public.partition('class="verdict')[2].partition("</section>")[0]
    assert "Meets policy &#34;loose&#34;" in box
    assert "membership-tpr" not in box
    assert run("verify", out / "release").code == 0
    loose.write_text(LOOSE.replace("min_group_size = 5", "min_group_size = 6"), encoding="utf-8")
    held = tmp_path / "held.csv"
    held.write_text("\n".join(people.read_text().splitlines()[:41]) + "\n", encoding="utf-8")
    options = ["--policy", loose, "--identifier", "id", "--holdout", held]
    rest = tmp_path / "rest.csv"
    lines = people.read_text().splitlines()
    rest.write_text("\n".join([lines[0], *lines[41:]]) + "\n", encoding="utf-8")
    judged = run("evaluate", rest, out / "release" / "table.csv", *options, "-o", tmp_path / "evaluation", "--json")
    assert judged.code == 3
    verdict = json.loads(judged.out)["verdict"]
    assert (verdict["outcome"], verdict["exceeded"][0]["limit"]) == ("does-not-meet", "min_group_size")
    assert json.loads((tmp_path / "evaluation" / "report.json").read_text())["verdict"] == verdict


@unmeasured
def test_a_table_of_another_tool_is_judged_and_exit_code_3_says_that_it_was_not_found_to_meet(
    run: Run, people: Path, tmp_path: Path
) -> None:
    lines = people.read_text().splitlines()
    made, inside, held = (tmp_path / name for name in ("made.csv", "inside.csv", "held.csv"))
    for file, rows in ((made, lines[41:]), (inside, lines[41:]), (held, lines[1:41])):
        file.write_text("\n".join([lines[0], *rows]) + "\n", encoding="utf-8")
    outside = ["--holdout", held]
    done = run("evaluate", inside, made, "--policy", "research", "--identifier", "id", *outside)
    assert done.code == 3
    assert 'Inconclusive for policy "research"' in done.out
    told = ["--policy", "research", "--despite-policy"]
    again = run("evaluate", people, made, "--identifier", "id", *told, "--json")
    verdict = json.loads(again.out)["verdict"]
    assert (verdict["try"], verdict["tried"]) == ([], 0)  # so few people can show of no method that it would meet it
    assert run("evaluate", people, made, "--identifier", "id", *told).code == 0
    assert run("evaluate", people, made, "--despite-policy").code == 2


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--policy", "research", "--no-report"), "--no-report"),
        (("--policy", "nosuch"), "trusted, research or public"),
        (("--despite-policy",), "--policy"),
    ],
)
def test_a_policy_that_cannot_be_asked_is_bad_input(
    run: Run, people: Path, tmp_path: Path, options: tuple[str, ...], words: str
) -> None:
    told = [str(tmp_path / "key.toml") if option == "KEY" else option for option in options]
    done = run("sanitize", people, "-o", tmp_path / "out", *told)
    assert done.code == 2
    assert words in done.err
    assert not (tmp_path / "out").exists()


@pytest.mark.slow
@unmeasured
def test_a_recipe_is_judged_again(run: Run, people: Path, loose: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    options = ["--k", 5, "--policy", "trusted", "--despite-policy", "--seed", 3]
    assert run("sanitize", people, "-o", out, *options).code == 0
    recipe = tmp_path / "recipe.toml"
    recipe.write_text((out / "owner" / "recipe.toml").read_text(), encoding="utf-8")
    done = run("sanitize", people, "-o", tmp_path / "again", "--recipe", recipe, "--json")
    assert done.code == 3
    assert json.loads(done.out)["verdict"]["policy"] == "trusted"
    assert json.loads(done.out)["verdict"]["tried"] is None  # refused before it started
    assert run("sanitize", people, "-o", tmp_path / "b", "--recipe", recipe, "--no-report").code == 2
    recipe.write_text(recipe.read_text().replace('policy = "trusted"', 'policy = "loose"'), encoding="utf-8")
    asked = run("sanitize", people, "-o", tmp_path / "b", "--recipe", recipe)
    assert asked.code == 2
    assert "name its file with --policy" in asked.err
    assert run("sanitize", people, "-o", tmp_path / "b", "--recipe", recipe, "--policy", loose).code == 3


@unmeasured
def test_from_python_a_refusal_holds_the_report_and_never_the_table(people: Path, tmp_path: Path) -> None:
    import pyarrow.csv

    table = pyarrow.csv.read_csv(people)
    with pytest.raises(PolicyNotMet) as refused:
        sf.sanitize(table, sf.Condensation(k=10), identifiers=["id"], holdout=0.4, policy="research", seed=1)
    assert refused.value.exit_code == 3
    assert refused.value.report is not None
    assert refused.value.report.verdict is refused.value.verdict
    refused.value.save_owner(tmp_path / "out")
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["owner"]
    policy = sf.Policy("sizes", require={"min_group_size": 5})
    release = sf.sanitize(table, sf.Condensation(k=5), identifiers=["id"], policy=policy, seed=1)
    assert release.report is not None
    assert release.report.verdict is not None
    assert release.report.verdict.outcome.value == "meets"
    assert release.recipe.policy == "sizes"
    report = sf.evaluate(table, release.table, identifiers=["id"], policy=policy, seed=1)
    assert report.verdict is not None
    assert report.verdict.outcome.value == "inconclusive"  # of a table whose making is not known
    free = sf.sanitize(table, sf.Condensation(k=5), identifiers=["id"], seed=1)
    assert free.report is not None
    assert free.report.verdict is not None
    assert (free.report.verdict.outcome.value, free.report.verdict.asked) == ("does-not-meet", False)
    assert free.recipe.policy is None
    assert not any(type(fact).__name__ == "DespitePolicy" for fact in free.certificate.facts)
    usual = sf.evaluate(table, release.table, identifiers=["id"], seed=1).verdict
    assert usual is not None
    assert (usual.policy, usual.asked, usual.refuses) == ("research", False, False)
    assert not any("--policy" in line for line in usual.to_try)


@unmeasured
def test_a_database_with_its_password_is_not_repeated(run: Run, people: Path, tmp_path: Path) -> None:
    sqlite = pytest.importorskip("sqlite3")
    base = tmp_path / "people.db"
    lines = [line.split(",") for line in people.read_text().splitlines()]
    with sqlite.connect(base) as connection:
        connection.execute(f"create table people ({', '.join(lines[0])})")
        connection.executemany(f"insert into people values ({', '.join('?' * 7)})", lines[1:])
    out = tmp_path / "out"
    query = ["--query", "select age, income from people"]
    done = run("sanitize", f"sqlite:///{base}", "-o", out, *query, *HELD, "--policy", "research")
    assert done.code == 3, done.err
    assert "sqlite" not in done.out
    assert "sqlite" not in (out / "owner" / "report.html").read_text()


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (
            ("sanitize", "INPUT", "-o", "OUT", "--policy", "research", "--engine", "partitions"),
            3,
            "add --holdout 0.3, or add --despite-policy",
        ),
        (("sanitize", "INPUT", "-o", "OUT", "--policy", "research", *HELD, "--rare", "keep"), 3, "drop --rare"),
        (
            ("sanitize", "INPUT", "-o", "OUT", "--policy", "public", *HELD, "--method", "condense"),
            3,
            "raise --k to 20, or",
        ),
        (("sanitize", "INPUT", "-o", "OUT", "--policy", "public", *HELD, "--method", "noise"), 3, "makes no groups"),
        (("sanitize", "INPUT", "-o", "OUT", "--policy", "research", "--no-report"), 2, "--no-report"),
        (("sanitize", "INPUT", "-o", "OUT", "--policy", "reserch"), 2, "there is no policy"),
        (("sanitize", "INPUT", "-o", "OUT", "--method", "noise", "--leaf", 5), 2, "has no parameter 'leaf'"),
        (("sanitize", "INPUT", "-o", "OUT", "--k", 1, "--method", "chain"), 2, "k is 1"),
        (("evaluate", "INPUT", "INPUT", "--policy", "research"), 3, "add --holdout FILE, or add --despite-policy"),
        (("evaluate", "INPUT", "INPUT", "--policy", "reserch"), 2, "there is no policy"),
        (("tune", "INPUT", "--rare", "keep"), 3, "drop --rare keep"),
        (("tune", "INPUT", "--policy", "reserch"), 2, "there is no policy"),
        (("tune", "INPUT", "--methods", "chian"), 2, "did you mean 'chain'"),
        (("tune", "INPUT", "--metric", "nosuch"), 2, "there is no metric"),
        (("transactions", "randomize", "INPUT", "-o", "OUT", "--policy", "research", *HELD), 3, "make no groups"),
        (("transactions", "randomize", "INPUT", "-o", "OUT", "--policy", "nosuch"), 2, "there is no policy"),
    ],
)
def test_what_no_table_makes_possible_is_refused_before_one_is_read(
    run: Run, tmp_path: Path, words: tuple[str | float, ...], code: int, said: str
) -> None:
    places = {"INPUT": tmp_path / "nowhere.csv", "OUT": tmp_path / "out"}  # whoever reads INPUT finds no such file
    done = run(*(places.get(str(word), word) for word in words))
    assert (done.code, done.out) == (code, ""), done.err
    assert said in done.err
    assert done.err.count("\n") == 1
    assert not list(tmp_path.iterdir())


def test_a_refusal_before_the_table_is_read_is_one_document_too(run: Run, tmp_path: Path) -> None:
    words = "--policy", "research", "--json", "--memory", "1G"
    done = run("sanitize", tmp_path / "nowhere.csv", "-o", tmp_path / "out", *words)
    assert done.code == 3
    document = json.loads(done.out)
    assert (document["folder"], document["table"]) == (None, None)
    assert [each["limit"] for each in document["verdict"]["exceeded"]] == ["control"]


@pytest.mark.parametrize(
    ("option", "meant"),
    [("--K", "--k"), ("--leef", "--leaf"), ("--hold-out", "--holdout"), ("--rows_are_people", "--rows-are-people")],
)
def test_an_option_of_a_wrong_name_is_answered_with_the_one_that_was_meant(
    run: Run, tmp_path: Path, option: str, meant: str
) -> None:
    done = run("sanitize", tmp_path / "nowhere.csv", "-o", tmp_path / "out", option, 10)
    assert done.code == 2
    assert f"No such option '{option}'; did you mean '{meant}'?; see" in done.err
