"""Every sentence of a certificate is counted anew in the original and the released table, by code of its own."""

from __future__ import annotations

import ast
import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.examples import at_length, sized
from tests.recount.evidence import Evidence
from tests.recount.making import make_release
from tests.recount.mutations import ALTERATIONS, altered_names, altered_numbers, complains, with_table
from tests.recount.patterns import Entry
from tests.recount.recount import entry_of, recount, recount_release
from tests.recount.run import main, recount_table
from tests.recount.sentences import SENTENCES
from tests.recount.tables import KINDS, TABLES, make_case

_HERE = Path(__file__).parent
_MAKERS = {"making.py", "test_recount.py"}
"""What runs the package; all else reads files."""

_FEW = (2, 8, 9, 11, 12, 13, 14, 15, 16, 17, 18, 20, 39, 41)
"""Tables that are recounted in ``make test``; all of them in ``make slow``."""

_MANY = tuple(number for number in range(1, TABLES + 1) if number not in _FEW)

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.mark.parametrize("number", [*_FEW, *at_length(*_MANY)])
def test_what_is_certified_of_a_generated_table_is_so(number: int, tmp_path: Path) -> None:
    assert recount_table(number, tmp_path / "table") == []


def test_the_recount_imports_nothing_of_the_package() -> None:
    for path in _HERE.glob("*.py"):
        if path.name in _MAKERS:
            continue
        tree = ast.parse(path.read_text())
        named = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
        named |= {str(node.module) for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
        outside = {name for name in named if name.split(".")[0] in ("sfumato", "importlib", "runpy", "subprocess")}
        assert not outside, path.name
        ours = {
            name.split(".")[2] for name in named if name.startswith("tests.") and not name.startswith("tests.recount")
        }
        assert not ours, path.name


def test_every_sentence_of_the_golden_files_is_known() -> None:
    unknown, count = [], 0
    form = re.compile(r"^(?:proved|assumed|refused): (.*)\n  (?:basis|because): (.*)$", re.MULTILINE)
    for path in sorted((_HERE.parent / "certificate/golden").glob("*.txt")):
        for sentence, behind in form.findall(path.read_text(encoding="utf-8")):
            count += 1
            unknown += [(path.name, sentence)] if entry_of(sentence, behind) is None else []
    assert count > 500
    assert unknown == []


def test_few_sentences_cannot_be_counted_and_each_says_why() -> None:
    uncounted = [entry for entry in SENTENCES if entry.recount is None]
    assert sum(bool(entry.why_not) for entry in uncounted) <= 12
    for entry in uncounted:
        if not entry.why_not:
            assert not any(pattern.groups for pattern in entry.patterns), entry.sentence


def test_a_table_is_the_same_every_time_and_every_kind_comes_up() -> None:
    assert {make_case(number).kind for number in range(1, 1 + len(KINDS))} == set(KINDS)
    for number in (1, 18, 20):
        one, other = make_case(number), make_case(number)
        assert one.arguments == other.arguments
        assert all(first.equals(second) for first, second in zip(one.frames, other.frames, strict=True))


def test_a_sentence_that_is_not_in_the_table_of_sentences_fails(tmp_path: Path) -> None:
    make_release(make_case(2), tmp_path)
    evidence = Evidence(tmp_path)
    evidence.certificate["claims"][0]["claim"] = "Nobody is in this table."
    assert any("does not know" in each.problem for each in recount(evidence))
    evidence = Evidence(tmp_path)
    evidence.certificate["claims"][0]["assumes"] = "nobody looks"
    assert any("assumption" in each.problem for each in recount(evidence))


def test_a_table_that_is_not_the_one_of_the_certificate_fails(tmp_path: Path) -> None:
    make_release(make_case(2), tmp_path)
    path = tmp_path / "out/release/table.csv"
    path.write_text("\n".join(path.read_text().splitlines()[:-1]) + "\n")
    problems = [each.problem for each in recount_release(tmp_path)]
    assert any("digest" in problem for problem in problems)
    assert any("rows out" in problem for problem in problems)


def test_the_command_says_what_holds(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--table", "14", "--folder", str(tmp_path)]) == 0
    assert capsys.readouterr().out == "14 aggregate aggregate: holds\n"


# ------------------------------------------------------------------------------------------- the recount can fail


@pytest.fixture(scope="module")
def releases(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Releases of the few tables, or in ``make slow`` of seven of every kind."""
    folders = []
    for number in sized(_FEW, tuple(range(1, 1 + 7 * len(KINDS)))):
        folders.append(tmp_path_factory.mktemp("recount") / f"{number}")
        make_release(make_case(number), folders[-1])
    return folders


def _sentences(folder: Path) -> Iterator[tuple[Entry, dict[str, str]]]:
    """The sentences of a release that are counted, with their named parts."""
    certificate = Evidence(folder).certificate
    pairs = [(each["claim"], each["basis"]) for each in certificate["claims"]]
    pairs += [(each["claim"], each["reason"]) for each in certificate["refused"]]
    for sentence, behind in pairs:
        entry = entry_of(sentence, behind)
        assert entry is not None
        parts = entry.read(sentence, behind)
        if entry.recount is not None and parts is not None:
            yield entry, parts


def test_an_altered_number_or_name_of_any_sentence_is_noticed(releases: list[Path]) -> None:
    noticed: dict[tuple[Entry, str], bool] = defaultdict(bool)
    for folder in releases:
        evidence = Evidence(folder)
        for entry, parts in _sentences(folder):
            for name, altered in (*altered_numbers(parts), *altered_names(parts)):
                noticed[entry, name] |= complains(entry, evidence, altered)
    assert len(noticed) > 60
    assert [(entry.sentence, name) for (entry, name), found in noticed.items() if not found] == []


@pytest.mark.slow
def test_altered_cells_are_noticed_by_every_sentence_that_speaks_of_them(releases: list[Path]) -> None:
    noticed: dict[Entry, set[str]] = defaultdict(set)
    looks: set[Entry] = set()
    tried: Counter[Entry] = Counter()
    for folder in releases:
        chosen = [each for each in _sentences(folder) if tried[each[0]] < sized(1, 3)]
        tried.update(entry for entry, _ in chosen)
        tables = {name: alter(Evidence(folder)) for name, alter in ALTERATIONS.items()}
        for entry, parts in chosen:
            for name, table in tables.items():
                evidence = with_table(folder, table)
                noticed[entry] |= {name} if complains(entry, evidence, parts) else set()
                looks |= {entry} if "released" in vars(evidence) else set()
    assert len(looks) > 20
    assert {entry.sentence for entry in looks if not noticed[entry]} == set()
