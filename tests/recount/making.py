"""Makes the release of a generated table as an owner does, by the command line; the recount sees nothing of this."""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path
from unittest import mock

import pandas as pd

from tests.recount.tables import Case

__all__ = ["make_release"]


def make_release(case: Case, folder: Path) -> None:
    """Write the originals, ``request.json`` and the release of a case into a folder.

    Raises
    ------
    RuntimeError
        If a command refuses or fails: no generated table should be refused.
    """
    folder.mkdir(parents=True, exist_ok=True)
    originals = []
    for place, frame in enumerate(case.frames):
        originals.append(folder / f"original_{place}.csv")
        frame.to_csv(originals[-1], index=False)
    for name, text in case.files.items():
        (folder / name).write_text(text)
    request = {"number": case.number, "kind": case.kind, "method": case.method, "options": case.options}
    (folder / "request.json").write_text(json.dumps(request))
    if "declared_rules" in case.options:
        _declare_rules(case, originals[0], folder)
    arguments = [each.replace("{folder}", str(folder)) for each in case.arguments]
    with warnings.catch_warnings(), mock.patch.dict(os.environ, {"XDG_CONFIG_HOME": str(folder / "configuration")}):
        warnings.simplefilter("ignore")
        if case.kind == "stream":
            _make_stream(case, folder, originals, arguments)
        elif case.kind == "joint":
            _make_joint(case, folder, originals)
        else:
            verb = ["sanitize"]
            method = ["--method", case.method]
            if case.kind == "transactions":
                verb, method = ["transactions", case.method.removeprefix("transactions-")], []
            unmeasured = [] if "policy" in case.options else ["--no-report"]
            with _small_partitions(case.options.get("partition_rows")):
                _run([*verb, str(originals[0]), "-o", str(folder / "out"), *method, *arguments, *unmeasured])


def _declare_rules(case: Case, original: Path, folder: Path) -> None:
    """Write the rules into the schema that is inferred, as an owner does."""
    schema = folder / "schema.toml"
    people = ["--person", case.options["person"]] if "person" in case.options else []
    identifiers = [part for name in case.options.get("identifiers", ()) for part in ("--identifier", name)]
    _run(["inspect", str(original), "-o", str(schema), *people, *identifiers])
    text = re.sub(r"^rules = .*\n", "", schema.read_text(), flags=re.MULTILINE)
    rules = json.dumps(case.options["declared_rules"])
    schema.write_text(text.replace("format = 1\n", f"format = 1\nrules = {rules}\n", 1))
    case.arguments += ["--schema", str(schema)]


def _small_partitions(rows: int | None) -> contextlib.AbstractContextManager[object]:
    """Cut tables into partitions of a given number of rows, instead of millions."""
    return (
        contextlib.nullcontext()
        if rows is None
        else mock.patch("sfumato.publish.sanitize.partition_rows", return_value=rows)
    )


def _run(arguments: Sequence[str]) -> None:
    """Run a command in this process."""
    from sfumato.cli import main

    out, err, before = io.StringIO(), io.StringIO(), sys.argv
    sys.argv = ["sfumato", *arguments]
    code: object = 0
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            main()
    except SystemExit as stop:
        code = stop.code
    finally:
        sys.argv = before
    if code:
        raise RuntimeError(f"exit {code} of sfumato {' '.join(arguments)}: {err.getvalue().strip()[-600:]}")


def _make_stream(case: Case, folder: Path, originals: Sequence[Path], arguments: Sequence[str]) -> None:
    """Begin a stream with the first batch, take in the others, and publish after each."""
    for name in ("measure", "person"):
        key = os.open(folder / f"{name}.key", os.O_WRONLY | os.O_CREAT, 0o600)
        os.write(key, os.urandom(32))
        os.close(key)
    measured = ["--measure-key", str(folder / "measure.key")] if "measure" in case.options else []
    persons = ["--person-key", str(folder / "person.key")] if "person" in case.options else []
    state = ["--state", str(folder / "stream.state")]
    _run(["stream", "init", str(originals[0]), *state, *arguments])
    for place, path in enumerate(originals):
        if place:
            _run(["stream", "ingest", str(path), *state, *measured, *persons])
        if case.options.get("forget") and place == len(originals) - 1:
            _run(["stream", "forget", *state])
            measured = []
        out = folder / ("out" if place == len(originals) - 1 else f"epoch_{place + 1}")
        _run(["stream", "publish", *state, "-o", str(out), "--no-report", *measured])


def _make_joint(case: Case, folder: Path, originals: Sequence[Path]) -> None:
    """Play all owners in one process, which is a trial: what goes between processes has tests of its own."""
    import pyarrow as pa

    from sfumato.methods.perturb.laplace_pca import LaplacePCA
    from sfumato.parties.plan import JointPlan
    from sfumato.parties.publish import joint_in_one_process
    from sfumato.tables.schema import Domain, Field, Kind, Schema

    options, tables = (
        case.options,
        [pa.Table.from_pandas(pd.read_csv(path), preserve_index=False) for path in originals],
    )
    names = tuple(options["parties"])
    chosen = {name: options[name] for name in ("noise", "centres") if name in options}
    plan = JointPlan(
        options["partition"], names, LaplacePCA(k=options["k"]), target=options["target"], few="allow", **chosen
    )
    schema = Schema(
        (
            Field("age", Kind.INTEGER, domain=Domain(declared=True, low=0, high=120)),
            Field("pressure", Kind.CONTINUOUS, domain=Domain(declared=True, low=-100, high=400)),
            Field("pay", Kind.CONTINUOUS, domain=Domain(declared=True, low=-1e7, high=1e7)),
            Field("ward", Kind.NOMINAL, domain=Domain(declared=True, categories=("w0", "w1", "w2"))),
            Field("smoker", Kind.BOOLEAN, domain=Domain(declared=True, categories=("no", "yes"))),
        )
    )
    folders = [folder / name if place else folder / "out" for place, name in enumerate(names)]
    if options["partition"] == "vertical":
        joint_in_one_process(tables, plan, key="person", folders=folders, report=False)
        return
    tables = [table.select(["age", "pressure", "pay", "ward", "smoker"]) for table in tables]
    joint_in_one_process(tables, plan, schemas=[schema] * len(names), folders=folders, report=False)
