"""Load and fault test of the collector on loopback: answers a second, latency, and what a kill in mid-load loses.

Run from the repository root: ``python benchmarks/speed/collector.py [--quick] [--answers N] [--clients N] [--write]``.
The collector is a process of its own (the command, rate limit off), the clients another one: each connection has one
answer on its way and waits for the acknowledgement, which comes after the commit. Every answer is a new token. The
cores of the machine do all of it: collector, database and clients. PostgreSQL is a fresh cluster in a temporary folder,
where it is installed.

The fault test kills the collector with SIGKILL in mid-load, opens the database, and looks for every acknowledged token;
then it starts the collector again, sends all answers again, and expects each to be counted once.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import platform
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

import numpy as np  # noqa: E402

from sfumato.survey.questions import check_token, mark, mint, seal  # noqa: E402
from sfumato.survey.store import AnswerStore  # noqa: E402
from tests.survey.postgres import postgres_cluster, postgres_programs  # noqa: E402
from tests.survey.process import Load, bodies_for, collector, send_all  # noqa: E402

RESULTS = ROOT / "benchmarks" / "results"
GOAL = 2000


@dataclass(frozen=True)
class Plan:
    """How much load: answers, and connections that send them."""

    answers: int
    clients: int
    warm_up: int


def run_load(port: int, bodies: list[bytes], clients: int, at: tuple[int, Callable[[], None]] | None = None) -> Load:
    try:
        import uvloop
    except ModuleNotFoundError:
        return asyncio.run(send_all(port, bodies, clients, at, time.perf_counter))
    return uvloop.run(send_all(port, bodies, clients, at, time.perf_counter))


def make_tokens(db: str, number: int) -> list[str]:
    store = AnswerStore.open(db)
    made = list(mint(store.key, number))
    store.close()
    return made


def server_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def sustained(db: str, folder: Path, plan: Plan) -> dict[str, Any]:
    given = make_tokens(db, plan.answers + plan.warm_up)
    codes = np.random.default_rng(1).integers(0, 101, len(given))
    with collector(db, folder, "--rate", "0") as running:
        bodies = bodies_for(running.digest, given, codes.tolist())
        run_load(running.port, bodies[: plan.warm_up], min(plan.clients, 20))
        before = server_seconds(running.process.pid)
        load = run_load(running.port, bodies[plan.warm_up :], plan.clients)
        spent = server_seconds(running.process.pid) - before
    seconds = np.array(list(load.seconds.values()))
    store = AnswerStore.open(db)
    count, _ = store.counts()
    store.close()
    return {
        "answers": plan.answers,
        "clients": plan.clients,
        "acknowledged": len(load.acknowledged),
        "stored": count - plan.warm_up,
        "per_second": round(len(load.acknowledged) / load.wall),
        "p50_ms": round(1000 * float(np.quantile(seconds, 0.5)), 1),
        "p99_ms": round(1000 * float(np.quantile(seconds, 0.99)), 1),
        "slowest_ms": round(1000 * float(seconds.max()), 1),
        "server_cpu_us": round(1e6 * spent / plan.answers),
    }


def killed(db: str, folder: Path, plan: Plan) -> dict[str, Any]:
    given = make_tokens(db, plan.answers)
    codes = np.random.default_rng(2).integers(0, 101, len(given)).tolist()
    with collector(db, folder, "--rate", "0") as running:
        bodies = bodies_for(running.digest, given, codes)
        first = run_load(running.port, bodies, plan.clients, (plan.answers // 3, running.process.kill))
    lost, count, tallied = look_for(db, [(given[each], codes[each]) for each in first.acknowledged])
    with collector(db, folder, "--rate", "0") as running:
        second = run_load(running.port, bodies, plan.clients)
    _, final, _ = look_for(db, [])
    return {
        "sent_before": len(first.status),
        "acknowledged_before": len(first.acknowledged),
        "stored_at_kill": count,
        "tallied_at_kill": tallied,
        "acknowledged_and_lost": lost,
        "resent": len(bodies),
        "resent_accepted": len(second.acknowledged),
        "stored_at_end": final,
        "holds": lost == 0 and final == len(bodies) == len(second.acknowledged) and count == tallied,
    }


def look_for(db: str, answers: list[tuple[str, int]]) -> tuple[int, int, int]:
    """Count the answers that are not in the database, and those that are, by tokens and by counts."""
    store = AnswerStore.open(db)
    key = store.key
    count, tallies = store.counts()
    with store._reading() as connection:
        there = dict(connection.execute("select mark, seal from sfumato_used"))
    store.close()
    lost = 0
    for token, code in answers:
        data = check_token(key, token)
        lost += there.get(mark(data)) != seal(data, (code,))
    return lost, count, sum(tallies.get(0, {}).values())


def abuse(folder: Path) -> dict[str, int]:
    """Send what is not an answer, and count how it was refused."""
    db = str(folder / "abuse.db")
    bad = {
        "not json": (b"{", 400),
        "nested without end": (b"[" * 8000, 400),
        "not a number of JSON": (b'{"token": NaN}', 400),
        "too long": (b" " * 40_000, 413),
        "no answer": (b"{}", 422),
        "no token of this survey": (json.dumps({"token": "x" * 43, "digest": "", "answers": {}}).encode(), 401),
    }
    with collector(db, folder, "--rate", "0") as running:
        return {name: running.call("POST", "/api/answer", body)[0] - status for name, (body, status) in bad.items()}


def lay_out(found: dict[str, Any]) -> str:
    """Write the results as a page."""
    kill = found["kill"]
    lines = [
        "# The collector under load and faults",
        "",
        f"{found['machine']}, Python {found['python']}, load average {found['load_before']} before; collector, "
        f"database and clients on the same machine. Made by `benchmarks/speed/collector.py`. Goal: "
        f"{GOAL:,} answers a second.",
        "",
        "| database | clients | answers | a second | median | 99 % | slowest | processor time an answer (collector) |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for engine in ("sqlite", "postgresql"):
        if engine in found:
            one = found[engine]
            lines.append(
                f"| {engine} | {one['clients']} | {one['acknowledged']:,} | {one['per_second']:,} | {one['p50_ms']} ms "
                f"| {one['p99_ms']} ms | {one['slowest_ms']} ms | {one['server_cpu_us']} us |"
            )
    lines += [
        "",
        f"Killed (SIGKILL) after {kill['acknowledged_before']:,} acknowledgements: {kill['stored_at_kill']:,} answers "
        f"stored, {kill['acknowledged_and_lost']} acknowledged ones lost. Started again, all {kill['resent']:,} sent "
        f"again: {kill['resent_accepted']:,} accepted, {kill['stored_at_end']:,} stored.",
        "",
        f"Bodies that are no answer, refused as they should be: "
        f"{sum(not wrong for wrong in found['abuse'].values())} of {len(found['abuse'])}.",
    ]
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a few seconds, to see that it works")
    parser.add_argument("--answers", type=int, default=60_000)
    parser.add_argument("--clients", type=int, default=200)
    parser.add_argument("--write", action="store_true", help="write benchmarks/results/collector.json and .md")
    options = parser.parse_args()
    plan = Plan(3_000 if options.quick else options.answers, options.clients, 500)
    found: dict[str, Any] = {
        "machine": f"{platform.machine()}, {os.cpu_count()} cores",
        "python": platform.python_version(),
        "load_before": round(os.getloadavg()[0], 1),
    }
    with tempfile.TemporaryDirectory(prefix="sfumato-") as name:
        folder = Path(name)
        programs = postgres_programs()
        places = {"sqlite": nullcontext(str(folder / "load.db"))}
        if programs is not None:
            places["postgresql"] = postgres_cluster(programs, folder)  # type: ignore[assignment]
        else:
            print("PostgreSQL is not installed: not measured")
        for engine, place in places.items():
            with place as db:
                found[engine] = sustained(db, folder, plan)
            print(engine, json.dumps(found[engine], indent=1))
        found["kill"] = killed(str(folder / "kill.db"), folder, plan)
        print("kill -9", json.dumps(found["kill"], indent=1))
        found["abuse"] = abuse(folder)
        print("refusals as they should be:", not any(found["abuse"].values()))
    reached = found["sqlite"]["per_second"]
    print(f"goal of {GOAL} answers a second: {reached}, {'reached' if reached >= GOAL else 'not reached'}")
    if options.write:
        RESULTS.mkdir(exist_ok=True)
        (RESULTS / "collector.json").write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
        (RESULTS / "collector.md").write_text(lay_out(found), encoding="utf-8")


if __name__ == "__main__":
    began = time.perf_counter()
    main()
    print(f"{time.perf_counter() - began:.0f} s")
