"""Python, the command line and a recipe reach every parameter of every method by one name, and mean the same by it."""

from __future__ import annotations

import dataclasses
import inspect
from pathlib import Path
from typing import Any, get_type_hints

import numpy as np
import pyarrow as pa
import pytest
import rich_click as click

import sfumato as sf
from sfumato.cli import app
from sfumato.cli.options import parameters_from
from sfumato.core.arguments import check_argument
from sfumato.core.distributions.domains import Labels
from sfumato.core.errors import OptionError
from sfumato.engines.outcome import Recipe
from sfumato.methods.catalogue import all_parameters, is_keyed, make_mechanism, parameters_of_method
from sfumato.methods.geometry.key import Add, Key
from sfumato.methods.protocol import parameters_of
from sfumato.options import PublishOptions, RunOptions
from sfumato.registry import method_names
from sfumato.survey.reconstruct import reconstruct as reconstruct_values
from sfumato.tables.reading import FileReading

SPEC = sf.NoiseSpec(Labels(("no", "yes")), {"name": "keep-or-replace", "keep": 0.75})
TABLE = pa.table(
    {"age": [20 + 7 * row % 31 for row in range(40)], "pay": [1000.5 + 13 * row % 17 for row in range(40)]}
)
PUBLIC = {name: getattr(sf, name) for name in sf.__all__}
MECHANISMS: list[Any] = [each for each in PUBLIC.values() if isinstance(each, type) and hasattr(each, "traits")]
VERBS = [name for name, each in PUBLIC.items() if name.islower() and not isinstance(each, str)]
VALUES: dict[str, tuple[tuple[str, ...], Any]] = {
    "k": (("7",), 7),
    "grouping": (("holistic",), "holistic"),
    "effort": (("thorough",), "thorough"),
    "allow_level_1": ((), True),
    "scores": (("normal",), "normal"),
    "response_weight": (("0.25",), 0.25),
    "tolerance": (("0.3",), 0.3),
    "kind": (("multiplicative",), "multiplicative"),
    "law": (("uniform",), "uniform"),
    "size": (("0.4",), 0.4),
    "correlated": ((), True),
    "enhance": (("0.2",), 0.2),
    "enhance_size": (("2.5",), 2.5),
    "enhance_laws": (("age=laplace",), (("age", "laplace"),)),
    "enhance_means": (("age=0.5",), (("age", 0.5),)),
    "exact_digits": ((), True),
    "groups": (("3",), 3),
    "b": (("0.5",), 0.5),
    "guarantee": (("record",), "record"),
    "rho1": (("0.01",), 0.01),
    "rho2": (("0.5",), 0.5),
    "epsilon": (("1.5",), 1.5),
    "delta": (("1e-06",), 1e-6),
    "epsilon_of": (("age < 30: 0.5, else: 1",), "age < 30: 0.5, else: 1"),
    "private_bounds": ((), True),
    "people": (("500",), 500),
    "specs": (("smokes=SPEC",), (("smokes", SPEC.canonical),)),
    "pass_missing": ((), True),
    "allow_observed": ((), True),
    "leaf": (("40",), 40),
    "order": (("pay",), ("pay",)),
    "shifts": (("age=-5,5.5",), (("age", -5.0, 5.5),)),
    "deviations": (("-2", "1"), (-2.0, 1.0)),
    "factors": (("pay=0.5,0.9",), (("pay", 0.5, 0.9),)),
    "factor": (("0.25", "4"), (0.25, 4.0)),
    "degrees": (("-10", "90"), (-10.0, 90.0)),
    "units": (("pay=1000",), (("pay", 1000.0),)),
    "pairs": (("disjoint",), "disjoint"),
    "pass_categories": ((), True),
    "within": (("leaves",), "leaves"),
    "window": (("12.5",), 12.5),
    "columns": (("pay",), ("pay",)),
    "share": (("0.4",), 0.4),
    "coarsened": (("age=2",), (("age", 2),)),
    "widths": (("pay=500",), (("pay", 500.0),)),
    "private": (("smokes",), "smokes"),
    "limit": (("0.25",), 0.25),
    "hidden": (("0.5",), 0.5),
}
NEEDED = {"enhance_laws": {"enhance": 0.2}, "enhance_means": {"enhance": 0.2}, "rho2": {"rho1": 0.01}}
NEEDED_OF_METHOD: dict[str, dict[str, Any]] = {
    "private": {"epsilon": 1.0},
    "randomize": {"epsilon": 1.0},
    "downgrade": {"private": "smokes"},
}
CASES = [(method, name) for method in method_names() for name in parameters_of_method(method)]


def told(method: str, name: str) -> dict[str, Any]:
    """The parameter by a value that is not its default, and what it cannot go without."""
    return {**NEEDED_OF_METHOD.get(method, {}), **NEEDED.get(name, {}), name: VALUES[name][1]}


def on_the_command_line(parameters: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Parameters that the command reads when they are given as its options."""
    (folder / "spec.toml").write_text(SPEC.to_toml(), encoding="utf-8")
    words = ["in.csv", "-o", "out"]
    for name, value in parameters.items():
        spelt = VALUES[name][0] if value == VALUES[name][1] else (str(value),)
        words += [f"--{name.replace('_', '-')}", *(word.replace("SPEC", str(folder / "spec.toml")) for word in spelt)]
    command = app.get_command(click.Context(app), "sanitize")
    assert command is not None
    return parameters_from(command.make_context("sanitize", words).params)


def test_every_field_of_every_mechanism_is_a_parameter_of_its_method_and_an_option() -> None:
    assert len(MECHANISMS) == 17
    reached = {method: set(parameters_of_method(method)) for method in method_names()}
    for mechanism in MECHANISMS:
        method = mechanism.method if isinstance(mechanism.method, str) else None
        fields = {field.name for field in dataclasses.fields(mechanism)}
        holding = [each for each, names in reached.items() if fields <= names and method in (None, each)]
        assert holding, mechanism
    assert set(VALUES) == set(all_parameters())
    assert all(each.option is not None and each.option.help for each in all_parameters().values())


def test_no_value_but_a_choice_is_taken() -> None:
    for method in method_names():
        for name, parameter in parameters_of_method(method).items():
            option = all_parameters()[name].option
            if option is not None and option.choices and not parameter.by_column:
                with pytest.raises(OptionError):
                    make_mechanism(method, {**told(method, name), name: "no such word"})


@pytest.mark.parametrize(("method", "name"), CASES)
def test_a_parameter_is_reached_from_everywhere(method: str, name: str, tmp_path: Path) -> None:
    parameters = told(method, name)
    made = make_mechanism(method, parameters)
    assert getattr(made, name) == VALUES[name][1]
    assert make_mechanism(method, on_the_command_line(parameters, tmp_path)) == made
    schema = sf.inspect(TABLE)
    recipe = Recipe(made.method, parameters_of(made), schema)
    again = Recipe.from_toml(recipe.to_toml())
    replayed = make_mechanism(again.method, again.parameters)
    assert replayed == made
    assert Recipe(replayed.method, parameters_of(replayed), again.schema).to_toml() == recipe.to_toml()


@pytest.mark.parametrize("name", ["shifts", "units", "enhance_laws", "enhance_means"])
@pytest.mark.parametrize("text", ["age", "=1", "age=", "age=1,2,3", "age=,"])
def test_a_value_of_a_column_that_is_none_is_refused(name: str, text: str) -> None:
    nothing = dict.fromkeys(all_parameters())
    with pytest.raises(OptionError, match=f"{name}= takes a column and its value, as in"):
        parameters_from({**nothing, name: (text,)})


def test_parameters_stand_for_the_mechanism() -> None:
    release = sf.sanitize(TABLE, k=7, effort="fast", seed=1, report=False)
    same = sf.sanitize(TABLE, sf.Condensation(k=7, effort="fast"), seed=1, report=False)
    assert release.recipe.parameters == same.recipe.parameters
    assert release.table == same.table
    assert sf.sanitize(TABLE, level=4, effort="fast", seed=1, report=False).recipe.parameters["k"] == 2
    with pytest.raises(OptionError, match="the mechanism already sets 'k'"):
        sf.sanitize(TABLE, sf.Condensation(), k=7)
    with pytest.raises(OptionError, match="sanitize has no argument 'colour'"):
        sf.sanitize(TABLE, colour="red")


def test_a_key_may_be_the_file_of_one(tmp_path: Path) -> None:
    (tmp_path / "key.toml").write_text(Key((Add("age", 5.0), Add("pay", 7.0))).to_toml(), encoding="utf-8")
    release = sf.sanitize(TABLE, method="translate", key=tmp_path / "key.toml", seed=1, report=False)
    assert sorted(release.table["age"].to_pylist()) == sorted(5 + age for age in TABLE["age"].to_pylist())
    named = dataclasses.replace(
        release.recipe, parameters={**release.recipe.parameters, "key": str(tmp_path / "key.toml")}
    )
    with pytest.raises(OptionError, match="the key is not one"):  # a recipe opens no file
        sf.sanitize(TABLE, recipe=named, report=False)
    assert [method for method in method_names() if is_keyed(method)] == ["translate", "scale", "rotate", "hybrid"]


def test_a_recipe_is_run_again_and_says_all_that_it_says(tmp_path: Path) -> None:
    first = sf.sanitize(TABLE, k=4, effort="fast", seed=1, report=False, level=5, holdout=0.2)
    (tmp_path / "recipe.toml").write_text(first.recipe.to_toml(), encoding="utf-8")
    again = sf.sanitize(TABLE, recipe=tmp_path / "recipe.toml", report=False)
    assert again.table == first.table
    assert again.recipe == first.recipe
    with pytest.raises(OptionError, match="recipe= already sets k="):
        sf.sanitize(TABLE, recipe=first.recipe, k=5)
    with pytest.raises(OptionError, match="recipe= already sets level="):
        sf.sanitize(TABLE, recipe=first.recipe, level=5)


OF_THE_COMMAND: dict[str, set[str]] = {  # options for how files are read and written, which Python does by other calls
    "sanitize": set(),
    "evaluate": {"despite_policy", "overwrite", "delimiter", "decimal"},
    "tune": {"overwrite", "delimiter", "decimal"},
}  # fmt: skip
FILES = {"decimal", "delimiter", "sheet", "output", "overwrite", "encoding", "query", "quiet", "as_json", "debug"}
OTHERWISE: dict[str, set[str]] = {  # places to read and write, and options that are no arguments
    "sanitize": {
        "source",
        "no_sign",
        "pdf",
        "key",
        *all_parameters(),
    },
    "evaluate": {"most_bytes", "despite_policy", "level", "strata", "allow_level_1", "recipe", "format", "method", "k"},
    "tune": {"source"},
    "inspect": {"source"},
    "verify": set(),
    "breach": {"plot"},
    "reconstruct": {"source", "plot"},
    "relate": {"source"},
}


@pytest.mark.parametrize("verb", OTHERWISE)
def test_the_command_line_has_the_words_of_the_function(verb: str) -> None:
    command = app.get_command(click.Context(app), verb)
    assert command is not None
    words = {str(param.name) for param in command.get_params(click.Context(command))}
    known = set(inspect.signature(PUBLIC[verb]).parameters)
    if verb == "reconstruct":
        known |= set(inspect.signature(reconstruct_values).parameters)
    assert words - FILES - OTHERWISE[verb] - {"help"} <= known


@pytest.mark.parametrize("verb", ["sanitize", "evaluate", "tune"])
def test_options_are_arguments_with_the_defaults_that_were_declared(verb: str) -> None:
    arguments = inspect.signature(PUBLIC[verb]).parameters
    for owner in (RunOptions, PublishOptions, FileReading):
        for each in dataclasses.fields(owner):
            option = each.metadata["option"]
            if each.name in arguments:
                default = arguments[each.name].default
                assert default == each.default or f"[default: {default}]" in option.helps[verb], each.name
            else:
                assert verb not in option.verbs or each.name in OF_THE_COMMAND[verb], each.name


@pytest.mark.parametrize("name", VERBS)
def test_a_verb_is_a_function_whatever_was_imported_before(name: str) -> None:
    import sfumato.cli
    import sfumato.stream.session
    import sfumato.tuning.run  # noqa: F401

    verb = getattr(sf, name)
    assert inspect.isfunction(verb)
    assert verb.__doc__


def test_what_inspect_finds_is_a_schema_that_sanitize_takes_as_a_file(tmp_path: Path) -> None:
    schema = sf.inspect(TABLE, target="pay")
    (tmp_path / "schema.toml").write_text(schema.to_toml(), encoding="utf-8")
    release = sf.sanitize(TABLE, schema=tmp_path / "schema.toml", k=4, effort="fast", seed=1, report=False)
    assert release.schema.target is not None
    assert release.schema.target.name == "pay"


def test_what_is_saved_can_be_verified(tmp_path: Path) -> None:
    sf.sanitize(TABLE, k=4, effort="fast", report=False).save(tmp_path / "out")
    found = sf.verify(tmp_path / "out" / "release")
    assert found
    assert found.holds
    assert found.describe().endswith("which you have not confirmed.")
    with (tmp_path / "out" / "release" / "table.csv").open("a", encoding="utf-8") as file:
        file.write("1,2\n")
    assert not sf.verify(tmp_path / "out" / "release")


def test_a_column_of_randomized_answers_is_reconstructed_from_a_frame() -> None:
    table = pa.table({"smokes": ["no"] * 400 + ["yes"] * 600 + [None] * 3})
    found = sf.reconstruct(table, "smokes", SPEC)
    assert found.probability.round(2).tolist() == [0.3, 0.7]
    assert found.missing == 3


def test_a_stream_is_begun_fed_published_and_opened_again(tmp_path: Path) -> None:
    rows = range(400)
    table = pa.table({"age": [20 + 7 * row % 61 for row in rows], "pay": [1000.5 + 13 * row % 97 for row in rows]})
    begun = sf.stream(tmp_path / "state.db", table.slice(0, 200), k=5, seed=1)
    assert begun.ingest(table).rows == 200
    assert sf.stream(tmp_path / "state.db").status().records == 400
    release = begun.publish(tmp_path / "epoch", report=False)
    assert release.certificate.rows_out == 400
    with pytest.raises(OptionError, match="there is nothing to forget"):
        begun.forget()
    with pytest.raises(OptionError, match="'k' is for the beginning of a stream"):
        sf.stream(tmp_path / "state.db", k=5)


def test_the_breach_calculator_takes_the_words_of_the_command_line() -> None:
    found = sf.breach(SPEC, property="x == yes", output="yes", rho2=0.9)
    document = found.to_json()
    assert document["posterior"] == pytest.approx(0.75)
    assert document["gamma"] == pytest.approx(3.0)
    assert document["verdict"] in found.describe()
    with pytest.raises(OptionError, match="add property="):
        sf.breach(SPEC, output="yes")


def test_whole_numbers_and_shares_of_numpy_are_taken_as_those_of_python() -> None:
    rng = np.random.default_rng(1)
    table = pa.table({"age": rng.integers(20, 80, 120), "size": rng.normal(size=120)})
    options: dict[str, Any] = {"k": 8, "level": 9, "rows": 40, "holdout": 0.25}
    plain = sf.sanitize(table, seed=1, report=False, **options)
    of_numpy: dict[str, Any] = {name: np.asarray(value)[()] for name, value in options.items()}
    assert all(isinstance(value, np.number) for value in of_numpy.values())
    other = sf.sanitize(table, seed=1, report=False, **of_numpy)
    assert other.table.equals(plain.table)
    assert other.certificate.parameters == plain.certificate.parameters
    made: list[Any] = [kind(value) for kind, value in ((np.int16, 60), (np.float32, 0.5), (np.float64, 8.0))]
    short, single, double = made
    assert sf.Chain(leaf=short) == sf.Chain(leaf=60)
    assert sf.Subsampling(share=single) == sf.Subsampling(share=0.5)
    with pytest.raises(OptionError, match="k is of type float; give a whole number"):
        sf.Condensation(k=double)


WRONG: list[Any] = [3, 2.5, True, b"x", [1], object(), sf.Condensation]


@pytest.mark.parametrize("verb", sorted(name for name in sf.__all__ if inspect.isfunction(getattr(sf, name))))
def test_an_argument_of_a_wrong_type_is_refused_in_one_sentence(verb: str) -> None:
    function = getattr(sf, verb)
    hints, parameters = get_type_hints(function), inspect.signature(function).parameters
    needed = {
        name: "x" for name, each in parameters.items() if each.default is each.empty and each.kind.name != "VAR_KEYWORD"
    }
    tried = [(name, value) for name in parameters for value in WRONG if not fits(value, hints[name])]
    assert tried
    for name, value in tried:
        with pytest.raises(OptionError, match=f"^{name} is of type {type(value).__name__}; give [^;]*$"):
            function(**{**needed, name: value})


def fits(value: Any, hint: Any) -> bool:
    try:
        check_argument("any", value, hint)
    except OptionError:
        return False
    return True


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (
            {"mechanism": "condense"},
            "mechanism is of type str; give a mechanism such as .*, or a method's name as method",
        ),
        ({"mechanism": sf.Condensation}, "mechanism is of type type; give a mechanism"),
        ({"schema": 3}, "schema is of type int; give a Schema, a text or a path"),
        ({"policy": 7}, "policy is of type int; give a Policy, a text or a path"),
        ({"identifiers": "age"}, "identifiers is of type str; give a list of texts"),
        ({"identifiers": [1]}, "identifiers is of type list; give a list of texts"),
        ({"level": 2.5}, "level is of type float; give a text or a whole number"),
        ({"seed": "1"}, "seed is of type str; give a whole number"),
        ({"seed": -1}, "the seed is below 0"),
        ({"k": True}, "'k' of the method 'condense' is not a whole number"),
    ],
)
def test_words_that_fit_no_option_are_refused(options: dict[str, Any], words: str) -> None:
    with pytest.raises(OptionError, match=words):
        sf.sanitize(pa.table({"age": list(range(40)), "size": list(range(40))}), report=False, **options)


def test_arguments_that_there_are_not_are_refused_in_one_sentence() -> None:
    table = pa.table({"age": list(range(40))})
    with pytest.raises(OptionError, match=r"inspect has no argument 'taget'; did you mean 'target'\?"):
        sf.inspect(table, taget="age")  # type: ignore[call-arg]
    with pytest.raises(OptionError, match="breach: missing a required argument: 'spec'"):
        sf.breach()  # type: ignore[call-arg]
    with pytest.raises(OptionError, match="prior is of type list; give an array, a text or a path"):
        sf.breach(SPEC, prior=[0.5, 0.5])  # type: ignore[arg-type]


def test_k_that_is_true_is_no_1() -> None:
    for made in (sf.Condensation, sf.Chain, sf.ClasswiseCondensation, sf.LaplacePCA):
        with pytest.raises(OptionError, match="k is of type bool; give a whole number"):
            made(k=True)
    with pytest.raises(OptionError, match="k is of type bool; give a whole number"):
        sf.inspect(pa.table({"age": list(range(40))}), k=True)
