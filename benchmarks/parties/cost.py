"""What parties send over rows, groups and owners: bytes, messages, steps, beside the paper's orders [BCG10, sec. 4.2].

Run from the repository root: ``python benchmarks/parties/cost.py [--quick] [--engine cheetah|aby3] [--data FOLDER]``.
The protocols are run in one process; a party's bytes are the payloads that it puts on its channel. In the clear the
engine sends nothing; ``--engine`` runs fewer points with the real one on loopback and adds what its workers send.
Concrete with as many rows as wanted, drawn from it again with noise; 5 rounds of K-means. Growth is the slope of a
straight line through the logarithms of bytes of all parties together, all else being fixed; beside it stands that of
the paper's m g r rk + m^2 r (rows) or m n g r rk + m^2 n r (columns), for m attributes, n records, g groups, r owners
and rk rounds, at the same points. The paper's count for owners of rows has no n, because it leaves out that every owner
hands its noised rows to all others; the growth without these is given too.
"""

from __future__ import annotations

import argparse
import contextlib
import math
import socket
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from benchmarks.parties.columns import owned_columns  # noqa: E402
from benchmarks.parties.reports import COLOURS, draw, head, row, save  # noqa: E402
from benchmarks.parties.tables import Coordinates, coordinates  # noqa: E402
from sfumato.methods.perturb.laplace_pca import LaplacePCA  # noqa: E402
from sfumato.parties import horizontal, vertical  # noqa: E402
from sfumato.parties.arithmetic import Engine  # noqa: E402
from sfumato.parties.channel import PartyChannel, local_channels  # noqa: E402
from sfumato.parties.ledger import Entry  # noqa: E402
from sfumato.parties.plan import JointPlan, JointResult  # noqa: E402
from sfumato.parties.session import (  # noqa: E402
    Session,
    computing_parties,
    plain_sessions,
)
from sfumato.parties.spu import SpuEngine  # noqa: E402

if TYPE_CHECKING:
    from matplotlib.axes import Axes

WAIT, ROUNDS = 600.0, 5
Seat = tuple[Session, PartyChannel, Engine | None]


@dataclass(frozen=True)
class Point:
    """One run."""

    kind: str  # vertical; horizontal with centres opened in each round, or the last
    n: int = 2_000
    g: int = 10
    r: int = 3

    @property
    def title(self) -> str:
        """What is run, in words."""
        return {"vertical": "columns", "each": "rows, centres opened", "last": "rows, centres hidden"}[self.kind]

    def paper(self, m: int, rounds: int) -> int:
        """Give the paper's count."""
        return (m * self.g * self.r * rounds + m * m * self.r) * (self.n if self.kind == "vertical" else 1)


Steps = dict[str, tuple[int, ...]]
KINDS = ("vertical", "each", "last")
STEPS: Steps = {"n": (500, 1_000, 2_000, 5_000, 10_000), "g": (5, 10, 20, 50), "r": (2, 3, 5, 8)}
FEWER: Steps = {"n": (500, 1_000, 2_000), "g": (5, 10, 20), "r": (3,)}
QUICK: Steps = {"n": (500, 1_000), "g": (5, 10), "r": (2, 3)}
Found = dict[Point, dict[str, Any]]

_NOTES = (
    "In r the growth is a straight line that does not start at 0: an owner that computes keeps its share, and another",
    "grows its own from a short secret, so of two owners neither sends distances, and each further one sends n g words",
    "a round. For owners of rows n comes in where clusters are filled (each offers n/g distances at most to each small",
    "one) and, with hidden centres, where rows are shared once and every row's cluster is opened to its owner.",
)


def seats(plan: JointPlan, leaks: dict[str, Any], engine: str | None) -> Sequence[Seat]:
    """Give each party its session, its channel and its engine, in the clear or a real one."""
    if engine is None:
        return plain_sessions(plan.parties, leaks, seed=plan.seed, keep=False)
    computing = computing_parties(engine, len(plan.parties))
    with contextlib.ExitStack() as stack:
        held = [stack.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in computing]
        ports = [one.getsockname()[1] for one in held]
    addresses = {rank: f"127.0.0.1:{port}" for rank, port in zip(computing, ports, strict=True)}
    channels = local_channels(plan.parties, timeout=WAIT)

    def sit(channel: PartyChannel) -> Seat:
        own = SpuEngine(engine, channel.rank, addresses, timeout=WAIT) if channel.rank in computing else None
        return Session(channel, own, computing, leaks, seed=plan.seed), channel, own

    with ThreadPoolExecutor(len(channels)) as pool:
        return list(pool.map(sit, channels))


def run(point: Point, table: Coordinates, engine: str | None) -> dict[str, Any]:
    """Run a protocol and count what each party sent."""
    names = tuple(f"owner {rank}" for rank in range(point.r))
    mechanism = LaplacePCA(groups=point.g)
    partition, centres = ("vertical", "last") if point.kind == "vertical" else ("horizontal", point.kind)
    plan = JointPlan(partition, names, mechanism, table.target, engine or "cheetah", ROUNDS, centres, seed=1)
    leaks = vertical.LEAKS if point.kind == "vertical" else horizontal.leaks(centres)
    seated = seats(plan, leaks, engine)
    with ThreadPoolExecutor(point.r) as pool:
        results = list(pool.map(_player(point, table, plan), (seat[0] for seat in seated)))
    for _, _, own in seated:
        if own is not None:
            own.close()
    steps = Counter(entry.action for entry in seated[0][0].transcript.entries)
    return {
        "bytes": [channel.sent for _, channel, _ in seated],
        "messages": [channel.messages for _, channel, _ in seated],
        "engine": [0 if own is None else own.sent for _, _, own in seated],
        "released": _released(seated[0][0].transcript.entries, point.r),
        "steps": steps,
        "rounds": results[0].rounds,
        "paper": point.paper(len({block.column for block in table.layout}), results[0].rounds),
    }


def _released(entries: Sequence[Entry], r: int) -> int:
    """Count the bytes in which the noised rows go to all parties: told by one, or opened by two."""
    fields = {"noised rows": r - 1, "noised components": 2 * (r - 1)}
    return sum(8 * math.prod(entry.shape) * fields.get(entry.label, 0) for entry in entries)


def _player(point: Point, table: Coordinates, plan: JointPlan) -> Callable[[Session], JointResult]:
    if point.kind == "vertical":
        owned = owned_columns(table, point.r)
        return lambda session: vertical.sanitize_vertical(session, plan, *owned[session.rank])
    dealt = np.array_split(np.random.default_rng(1).permutation(point.n), point.r)
    values, layout = table.values, table.layout
    return lambda session: horizontal.sanitize_horizontal(session, plan, values[dealt[session.rank]], layout, point.n)


def points(steps: Steps, base: dict[str, int]) -> list[Point]:
    made = [Point(kind, **{**base, what: at}) for kind in KINDS for what, some in steps.items() for at in some]
    return list(dict.fromkeys(made))


def sent(run: dict[str, Any]) -> int:
    """Give the bytes of all parties, and of their engines."""
    return int(sum(run["bytes"]) + sum(run["engine"]))


def series(found: Found, kind: str, what: str, base: dict[str, int]) -> list[Point]:
    """Give the points along one axis."""
    fixed = {name: value for name, value in base.items() if name != what}
    some = [p for p in found if p.kind == kind and all(getattr(p, name) == value for name, value in fixed.items())]
    return sorted(some, key=lambda p: int(getattr(p, what)))


def slope(at: Sequence[float], values: Sequence[float]) -> str:
    return "-" if len(at) < 2 else f"{np.polyfit(np.log(at), np.log(values), 1)[0]:.2f}"


def report(found: Found, base: dict[str, int], engine: str | None) -> list[str]:
    what = "in the clear: the engine sends nothing" if engine is None else f"with the engine {engine}"
    lines = [f"# What parties send, {what}", "", "`python benchmarks/parties/cost.py`; its first lines say how.", ""]
    lines += [
        "## Growth: exponents of bytes",
        "",
        *head("protocol", "in", "measured", "without released rows", "paper"),
    ]
    for kind in KINDS:
        for axis in base:
            some = series(found, kind, axis, base)
            at = [getattr(point, axis) for point in some]
            runs = [found[point] for point in some]
            measured = slope(at, [sent(one) for one in runs])
            without = slope(at, [sent(one) - one["released"] for one in runs])
            lines.append(row(some[0].title, axis, measured, without, slope(at, [one["paper"] for one in runs])))
    lines += ["", *_NOTES, "", "## Each run", ""]
    lines += ["Kilobytes and messages: the first party, the most of those between, the last.", ""]
    names = ("protocol", "n", "g", "r", "rounds", "kB sent", "messages", "kB sent by engines", "shown", "shared")
    lines += head(*names, "engine calls", "paper's count", "bytes over it")
    for point, one in found.items():
        shown = sum(one["steps"][action] for action in ("opened", "sum", "told", "tossed"))
        cells = (_three(one["bytes"], 1e-3), _three(one["messages"], 1), _three(one["engine"], 1e-3))
        steps = (shown, one["steps"]["shared"], one["steps"]["engine"])
        last = (one["paper"], f"{sent(one) / one['paper']:.1f}")
        lines.append(row(point.title, point.n, point.g, point.r, one["rounds"], *cells, *steps, *last))
    return lines


def _three(values: Sequence[int], unit: float) -> str:
    shown = [values[0], *([max(values[1:-1])] if len(values) > 2 else []), values[-1]]
    return ", ".join(f"{value * unit:.0f}" for value in shown)


def _picture(found: Found, base: dict[str, int]) -> None:
    def panel(axis: str) -> Callable[[Axes], None]:
        def drawn(axes: Axes) -> None:
            for colour, kind in zip(COLOURS, KINDS, strict=False):
                some = series(found, kind, axis, base)
                at, kilobytes = [getattr(p, axis) for p in some], np.array([sent(found[p]) for p in some]) / 1e3
                paper = np.array([found[p]["paper"] for p in some], dtype=np.float64)
                axes.plot(at, kilobytes, "-o", color=colour, ms=4, label=some[0].title)
                scaled = paper * float(np.exp(np.mean(np.log(kilobytes / paper))))
                axes.plot(at, scaled, "--", color=colour, linewidth=0.9, label=f"{some[0].title}: the paper's growth")
            _scales(axes, axis, at, "kB of all parties")

        return drawn

    draw("parties_cost.svg", "What parties send, engine aside", [panel(axis) for axis in base])


def _picture_of_rounds(found: Found, base: dict[str, int]) -> None:
    """Draw how often parties wait for each other, and the messages of the busiest one; the paper counts neither."""

    def panel(axis: str) -> Callable[[Axes], None]:
        def drawn(axes: Axes) -> None:
            for colour, kind in zip(COLOURS, KINDS, strict=False):
                some = series(found, kind, axis, base)
                at, runs = [getattr(p, axis) for p in some], [found[p] for p in some]
                axes.plot(
                    at, [sum(one["steps"].values()) for one in runs], "-o", color=colour, ms=4, label=some[0].title
                )
                most = [max(one["messages"]) for one in runs]
                axes.plot(at, most, ":", color=colour, linewidth=1.2, label=f"{some[0].title}: messages of one party")
            _scales(axes, axis, at, "steps taken together, messages")
            axes.set(yscale="linear", ylim=(0, None))

        return drawn

    draw("parties_rounds.svg", "How often parties wait for each other", [panel(axis) for axis in base])


def _scales(axes: Axes, axis: str, at: Sequence[int], measured: str) -> None:
    names = {"n": "records", "g": "groups", "r": "owners"}
    axes.set(xscale="log", yscale="log", xlabel=names[axis], ylabel=measured)
    axes.minorticks_off()
    axes.set_xticks(at, [f"{value:,}" for value in at])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="A few small points; writes nothing.")
    parser.add_argument("--engine", choices=("cheetah", "aby3"), help="The real engine, fewer points.")
    parser.add_argument("--data", help="Folder of the benchmark tables.")
    options = parser.parse_args()
    base = {"n": 1_000, "g": 10, "r": 3} if options.quick or options.engine else {"n": 2_000, "g": 10, "r": 3}
    steps = QUICK if options.quick else FEWER if options.engine else STEPS
    found: Found = {}
    for point in points(steps, base):
        begin = time.perf_counter()
        found[point] = run(point, coordinates("concrete", options.data, point.n), options.engine)
        print(point, f"{time.perf_counter() - begin:.1f} s", flush=True)
    lines = report(found, base, options.engine)
    print("\n".join(lines))
    if not options.quick:
        save("parties_cost.md" if options.engine is None else f"parties_cost_{options.engine}.md", lines)
        if options.engine is None:
            _picture(found, base)
            _picture_of_rounds(found, base)


if __name__ == "__main__":
    main()
