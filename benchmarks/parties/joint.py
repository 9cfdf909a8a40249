"""Real joint runs: one process a party through the command line, the engine's workers beside them, on loopback.

Run from the repository root: ``python benchmarks/parties/joint.py [--quick] [--only WORDS] [--data FOLDER]``.
``sfumato party init`` writes settings and certificates, then every party is ``sfumato party run --config ... --seed 7``
in a process of its own. All parties share the machine, so wall seconds are those of all together; CPU seconds and peak
memory (VmHWM) are read off /proc for each party's process and for its engine's worker apart. Megabytes are the
ledger's: what a party sent over its channel, and its engine. The released table is compared with that of one process
without any engine (``joint_in_one_process``) and the same seed. Concrete (1,030 x 9); more rows are drawn from it again
with a tenth of a standard deviation of noise. Groups of at least k records, 20 rounds of K-means at most.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import json
import os
import socket
import subprocess
import sys
import tempfile
import time
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from benchmarks.data import load_table  # noqa: E402
from benchmarks.parties.reports import head, row, save  # noqa: E402
from benchmarks.parties.tables import more_rows  # noqa: E402
from sfumato.core.errors import PrivacyLeakWarning  # noqa: E402
from sfumato.parties.config import PartyConfig  # noqa: E402
from sfumato.parties.publish import joint_in_one_process  # noqa: E402
from sfumato.tables.files import read_file  # noqa: E402
from sfumato.tables.schema import Schema  # noqa: E402

SEED, LIMIT = 7, 1800.0
_NAMES = ("ann", "bob", "cat", "dan", "eve")
_LOOK = 0.1  # seconds between two looks at the processes
_TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Job:
    """One joint run."""

    partition: str
    parties: int
    rows: int
    engine: str = "cheetah"
    centres: str = "last"
    noise: str = "split"
    k: int = 100

    @property
    def title(self) -> str:
        """What is run, in words."""
        kept = f", centres {self.centres}" if self.partition == "horizontal" else ""
        drawn = f", noise {self.noise}" if self.partition == "vertical" and self.noise != "split" else ""
        return f"{self.partition}, {self.parties} owners, {self.rows} rows, k = {self.k}, {self.engine}{kept}{drawn}"


JOBS = (
    Job("vertical", 2, 1_030),
    Job("vertical", 2, 1_030, noise="each"),
    Job("vertical", 3, 1_030),
    Job("vertical", 3, 1_030, "aby3"),
    Job("horizontal", 3, 1_030, centres="each"),
    Job("horizontal", 3, 1_030),
    Job("horizontal", 3, 1_030, "aby3"),
    Job("vertical", 2, 10_000, k=1_000),
    Job("vertical", 3, 10_000, "aby3", k=1_000),
    Job("vertical", 3, 10_000, "aby3"),
    Job("horizontal", 3, 10_000, k=1_000),
    Job("horizontal", 3, 10_000, "aby3", k=1_000),
    Job("horizontal", 3, 10_000, "aby3"),
)


def owned(job: Job, folder: str | None) -> tuple[list[pa.Table], Schema | None, str]:
    """Deal Concrete out: rows at random, or columns in order with a key that stands in another order at each owner."""
    table, rng = load_table("concrete", folder), np.random.default_rng(3)
    if job.rows != table.num_rows:
        values = np.column_stack([column.to_numpy().astype(np.float64) for column in table.columns])
        more = more_rows(values, job.rows, rng)
        table = pa.table(dict(zip(table.column_names, more.T, strict=True)))
    target = table.column_names[-1]
    if job.partition == "vertical":
        key = pa.array([f"r{number:06d}" for number in range(len(table))])
        parts = [table.select(some.tolist()) for some in np.array_split(np.array(table.column_names), job.parties)]
        return [part.append_column("key", key).take(rng.permutation(len(part))) for part in parts], None, target
    schema = Schema.infer(table, target=target)
    declared = tuple(
        dataclasses.replace(field, domain=dataclasses.replace(field.domain, declared=True)) for field in schema
    )
    owner = rng.integers(0, job.parties, len(table))
    return [table.filter(pa.array(owner == rank)) for rank in range(job.parties)], Schema(declared), target


def prepare(job: Job, work: Path, folder: str | None) -> tuple[list[Path], Schema | None]:
    """Write the owners' tables and, by ``sfumato party init``, their settings."""
    tables, schema, target = owned(job, folder)
    names = _NAMES[: job.parties]
    order = ["party", "init", str(work / "trial"), "--partition", job.partition, "--target", target, "--k", str(job.k)]
    order += ["--engine", job.engine, "--timeout", "120"]
    for name, port, table in zip(names, _free_ports(job.parties), tables, strict=True):
        pyarrow.csv.write_csv(table, work / f"{name}.csv")
        order += ["--party", f"{name}=127.0.0.1:{port}", "--data", f"{name}={work / name}.csv"]
    if schema is None:
        order += ["--key", "key"]
    else:
        (work / "schema.toml").write_text(schema.to_toml(), encoding="utf-8")
        order += ["--schema", str(work / "schema.toml")]
    subprocess.run([sys.executable, "-m", "sfumato.cli", *order], check=True, capture_output=True)
    chosen = f'centres = "{job.centres}"' if job.partition == "horizontal" else f'noise = "{job.noise}"'
    configs = [work / "trial" / name / "party.toml" for name in names]
    for config in configs:
        text = config.read_text(encoding="utf-8")
        config.write_text(text.replace("[method]", f"[method]\n{chosen}", 1), encoding="utf-8")
    return configs, schema


def _free_ports(count: int) -> list[int]:
    with contextlib.ExitStack() as stack:
        held = [stack.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(count)]
        return [one.getsockname()[1] for one in held]


def run_parties(configs: list[Path], work: Path) -> tuple[float, list[dict[str, float]]]:
    """Start all parties, watch them until all have ended, and give wall seconds and what each used."""
    begin, started = time.perf_counter(), []
    for config in configs:
        output = work / f"out-{config.parent.name}"
        with (work / f"{config.parent.name}.log").open("w") as log:
            order = [sys.executable, "-m", "sfumato.cli", "party", "run", "--config", str(config), "-o", str(output)]
            started.append(subprocess.Popen([*order, "--seed", str(SEED)], stdout=log, stderr=log))
    used: list[dict[int, tuple[float, float]]] = [{} for _ in started]
    try:
        while any(process.poll() is None for process in started):
            for process, seen in zip(started, used, strict=True):
                for pid in (process.pid, *_children(process.pid)):
                    now = _look_at(pid)
                    if now is not None:
                        seen[pid] = now
            if time.perf_counter() - begin > LIMIT:
                raise SystemExit(f"stopped after {LIMIT:.0f} seconds")
            time.sleep(_LOOK)
    finally:
        for process in started:
            if process.poll() is None:
                process.terminate()
                process.wait()
    seconds = time.perf_counter() - begin
    for process, config in zip(started, configs, strict=True):
        if process.returncode:
            raise SystemExit((work / f"{config.parent.name}.log").read_text())
    return seconds, [_used(process.pid, seen) for process, seen in zip(started, used, strict=True)]


def _children(pid: int) -> list[int]:
    """Give the processes that any thread of a process has started."""
    found: list[int] = []
    with contextlib.suppress(OSError):
        for thread in Path(f"/proc/{pid}/task").iterdir():
            with contextlib.suppress(OSError):
                found += [int(child) for child in (thread / "children").read_text().split()]
    return found


def _look_at(pid: int) -> tuple[float, float] | None:
    """Give CPU seconds and peak megabytes of a process so far; None where it is gone."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return None
    peak = next((line.split()[1] for line in status.splitlines() if line.startswith("VmHWM")), None)
    return None if peak is None else ((int(fields[11]) + int(fields[12])) / _TICKS, int(peak) / 1024.0)


def _used(own: int, seen: dict[int, tuple[float, float]]) -> dict[str, float]:
    workers = [now for pid, now in seen.items() if pid != own]
    core = seen.get(own, (float("nan"), float("nan")))
    return {
        "core CPU": core[0],
        "core memory": core[1],
        "worker CPU": sum(now[0] for now in workers),
        "worker memory": max((now[1] for now in workers), default=0.0),
    }


def compare(configs: list[Path], work: Path, schema: Schema | None) -> dict[str, Any]:
    """Compare what every party released with the run of one process."""
    plan = PartyConfig.load(configs[0]).with_seed(SEED).plan
    begin = time.process_time()
    tables = [read_file(str(work / f"{config.parent.name}.csv"))[0] for config in configs]  # as each party reads it
    key = "key" if schema is None else None
    schemas = None if schema is None else [schema] * len(tables)
    folders = [work / f"plain-{config.parent.name}" for config in configs]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyLeakWarning)  # of two owners; the parties have warned
        plain = joint_in_one_process(tables, plan, schemas=schemas, key=key, folders=folders)[0]
    cpu = time.process_time() - begin
    files = [work / f"out-{config.parent.name}" / "release" / "table.csv" for config in configs]
    texts = {file.read_bytes() for file in files}
    made, wanted = (pyarrow.csv.read_csv(file) for file in (files[0], folders[0] / "release" / "table.csv"))
    off = 0.0
    for mine, other in zip(made.columns, wanted.columns, strict=True):
        a, b = mine.to_numpy().astype(np.float64), other.to_numpy().astype(np.float64)
        off = max(off, float(np.abs(a - b).max() / max(b.std(), 1e-12)))
    return {
        "parties agree": len(texts) == 1,
        "off": off,
        "plain CPU": cpu,
        "rounds": plain.workings.result.rounds,
        "groups": len(plain.workings.result.sizes),
    }


def measure(job: Job, folder: str | None) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as name:
        work = Path(name)
        configs, schema = prepare(job, work, folder)
        load = os.getloadavg()[0]
        seconds, used = run_parties(configs, work)
        ledger = json.loads((work / f"out-{_NAMES[0]}" / "owner" / "ledger.json").read_text())
        found = compare(configs, work, schema)
    print(f"{job.title}: {seconds:.0f} s", flush=True)
    sent = [ledger["sent"][name] for name in _NAMES[: job.parties]]
    return {"seconds": seconds, "load": load, "used": used, "sent": sent, **found}


def report(found: dict[Job, dict[str, Any]]) -> list[str]:
    lines = [
        "# Joint runs, one process a party",
        "",
        "`python benchmarks/parties/joint.py`; its first lines say how. CPU seconds, megabytes and peak memory (MB)",
        f"of each party, in order. {os.cpu_count()} cores, shared by all parties; load at the start in brackets.",
        "",
    ]
    names = ("run", "groups", "rounds", "wall s", "CPU s, own process", "CPU s, engine", "MB sent", "messages")
    lines += head(*names, "MB sent by the engine", "memory, own", "memory, engine", "one process, CPU s", "tables")
    for job, run in found.items():
        used, sent = run["used"], run["sent"]
        same = "the same at all parties" if run["parties agree"] else "DIFFER BETWEEN PARTIES"
        same += ", and as in one process" if run["off"] == 0.0 else f"; off by {run['off']:.1g} sd from one process"
        cells = (
            _each(used, "core CPU"),
            _each(used, "worker CPU"),
            _each(sent, "bytes", 1e-6, 2),
            _each(sent, "messages", 1, 0),
            _each(sent, "engine_bytes", 1e-6),
            _each(used, "core memory", digits=0),
            _each(used, "worker memory", digits=0),
        )
        first = (job.title, run["groups"], run["rounds"], f"{run['seconds']:.0f} ({run['load']:.1f})")
        lines.append(row(*first, *cells, f"{run['plain CPU']:.1f}", same))
    return lines


def _each(parties: list[dict[str, float]], what: str, unit: float = 1.0, digits: int = 1) -> str:
    return ", ".join(f"{party[what] * unit:.{digits}f}" for party in parties)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="Only runs of 1,030 rows; writes nothing.")
    parser.add_argument("--only", default="", help="Only runs whose title has these words; writes nothing.")
    parser.add_argument("--data", help="Folder of the benchmark tables.")
    options = parser.parse_args()
    jobs = [job for job in JOBS if options.only in job.title and not (options.quick and job.rows > 1_030)]
    found: dict[Job, dict[str, Any]] = {}
    for job in jobs:
        found[job] = measure(job, options.data)
        print(report(found)[-1], flush=True)
    lines = report(found)
    print("\n".join(lines))
    if not options.quick and not options.only:
        save("parties_joint.md", lines)


if __name__ == "__main__":
    main()
