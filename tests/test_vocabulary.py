"""Everything a person reads is in the vocabulary: sentences, docstrings, comments and pages; and names are nouns."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.vocabulary import NAMES_NOT_USED, NOT_USED, phrases_in

ROOT = Path(__file__).resolve().parents[1]
PYTHON = ("src", "tests", "benchmarks", "examples", "docs", ".ci")
TEXTS = (
    "*.md",
    "*.toml",
    "Makefile",
    "benchmarks/**/*.md",
    "docs/**/*.md",
    "examples/**/*.md",
    "mkdocs.yml",
    "papers/*.md",
    "src/**/*.css",
    "src/**/*.html",
    "src/**/*.js",
    "src/**/*.json",
)
PARTICIPLE = re.compile(
    r"_?(?:[A-Z][a-z]*[^e]ed|Chosen|Done|Drawn|Found|Given|Grown|Held|Hidden|Kept|Known|Left|Lost|Made|Said|Seen|Sent|Shown|"
    r"Spent|Taken|Told|Written)"
)
"""A class name that is a participle alone: it says what was done, and not what the thing is."""

_LAYOUT = {tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT}
ALLOWED = {"Refused"}  # a refused claim, as in the certificate


def prose(source: str) -> str:
    """Strings, docstrings and comments of a module as one text; adjacent ones are joined, so that no phrase is cut."""
    kept = []
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            kept.append(token.string.lstrip("#: "))
        elif token.type == tokenize.STRING:
            kept.append(re.sub(r"^\w*(?:\"\"\"|'''|\"|')|(?:\"\"\"|'''|\"|')$", "", token.string))
        elif tokenize.tok_name[token.type] == "FSTRING_MIDDLE":  # from Python 3.12 on
            kept.append(token.string)
        elif token.type not in _LAYOUT and not tokenize.tok_name[token.type].startswith("FSTRING"):
            kept.append(" | ")
    return "".join(kept)


def modules(folder: str) -> Iterator[Path]:
    return (path for path in sorted((ROOT / folder).rglob("*.py")) if ".venv" not in path.parts)


def names(tree: ast.AST) -> Iterator[str]:
    """Every identifier that a module defines."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.arg):
            yield node.arg
        elif isinstance(node, ast.Name | ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.id if isinstance(node, ast.Name) else node.attr


def _is_dictionary(value: ast.expr) -> bool:
    if isinstance(value, ast.BinOp) and isinstance(value.op, ast.BitOr):
        return _is_dictionary(value.left) or _is_dictionary(value.right)
    if isinstance(value, ast.Call) and isinstance(value.func, ast.Name):
        return value.func.id in ("dict", "vars", "defaultdict")
    return isinstance(value, ast.Dict | ast.DictComp)


def dictionaries(tree: ast.AST) -> Iterator[str]:
    """Every name that holds a dictionary, as far as an annotation, a literal or `**` shows."""
    for node in ast.walk(tree):
        if isinstance(node, ast.arguments) and node.kwarg is not None:
            yield node.kwarg.arg
        elif isinstance(node, ast.arg) and node.annotation is not None:
            if re.search(r"\b(?:dict|Mapping)\[", ast.unparse(node.annotation)):
                yield node.arg
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            if re.match(r"(?:dict|Mapping)\[", ast.unparse(node.annotation)):
                yield node.target.id
        elif isinstance(node, ast.Assign) and _is_dictionary(node.value):
            yield from (target.id for target in node.targets if isinstance(target, ast.Name))
        elif isinstance(node, ast.keyword) and node.arg is None and isinstance(node.value, ast.Name):
            yield node.value.id


@pytest.mark.parametrize("folder", PYTHON)
def test_sentences_docstrings_and_comments_are_in_the_vocabulary(folder: str) -> None:
    found = {str(path.relative_to(ROOT)): phrases_in(prose(path.read_text("utf-8"))) for path in modules(folder)}
    assert len(found) > 0
    assert {path: phrases for path, phrases in found.items() if phrases} == {}


@pytest.mark.parametrize("pattern", TEXTS)
def test_pages_and_templates_are_in_the_vocabulary(pattern: str) -> None:
    found = {str(path.relative_to(ROOT)): phrases_in(path.read_text("utf-8")) for path in ROOT.glob(pattern)}
    assert {path: phrases for path, phrases in found.items() if phrases} == {}


@pytest.mark.parametrize("folder", ["src", "tests", "benchmarks"])
def test_names_are_in_the_vocabulary(folder: str) -> None:
    found = {}
    for path in modules(folder):
        wrong = {name for name in names(ast.parse(path.read_text("utf-8"))) if name.strip("_") in NAMES_NOT_USED}
        if wrong:
            found[str(path.relative_to(ROOT))] = wrong
    assert found == {}


@pytest.mark.parametrize("folder", ["src", "benchmarks"])
def test_no_dictionary_is_named_told_or_said(folder: str) -> None:
    found = [
        path.name for path in modules(folder) if {"told", "said"} & {*dictionaries(ast.parse(path.read_text("utf-8")))}
    ]
    assert found == []


def test_no_class_is_named_by_a_bare_participle() -> None:
    """A fact alone may be: it states what was done to the table."""
    found = []
    for path in modules("src"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.ClassDef) and PARTICIPLE.fullmatch(node.name) and node.name not in ALLOWED:
                found += [f"{path.name}: {node.name}"] * ("Fact" not in map(ast.unparse, node.bases))
    assert found == []


@pytest.mark.parametrize("phrase", NOT_USED)
def test_a_phrase_that_comes_back_is_found_in_a_sentence_a_docstring_and_a_comment(phrase: str) -> None:
    first, _, rest = phrase.partition(" ")
    cut = f'error(f"column {{name}}: it {first} "\n    "{rest} here")' if rest else f'error("it {first} here")'
    assert phrase in phrases_in(prose(cut))
    assert phrase in phrases_in(prose(f'"""One {first}\n    {rest} two."""'))
    assert phrase in phrases_in(prose(f"x = 1  # One {phrase}.\n"))
    assert phrase in phrases_in(f"A page with {first}\n{rest} in it.")


def test_a_participle_or_a_dictionary_that_comes_back_is_found() -> None:
    assert PARTICIPLE.fullmatch("_Told")
    assert PARTICIPLE.fullmatch("Screened")
    assert not PARTICIPLE.fullmatch("ScreenedRows")
    tree = ast.parse("def f(**told): ...\nsaid = {}\ncall(**told)\nsaid: dict[str, int] = make()")
    assert sorted(dictionaries(tree)) == ["said", "said", "told", "told"]
    for value in ("dict(a=1)", "options | {'a': 1}", "vars(options)"):
        assert list(dictionaries(ast.parse(f"told = {value}"))) == ["told"]
