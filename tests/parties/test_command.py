"""Parties as processes of their own on loopback: one result for all, or one clear sentence and nothing written."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.core.progress import listening, tell
from sfumato.parties.commands import _phases
from sfumato.parties.config import PartyConfig, PartyTrial, write_trial
from sfumato.parties.peers import Address
from sfumato.publish.verify import verify_release
from tests.cli.conftest import Run
from tests.parties.meetings import HOST, self_signed
from tests.ports import free_port

NAMES = ("ann", "ben", "cat")
ENGINE = Path(__file__).parents[2] / ".venv-parties" / "bin" / "python"
START = 300.0  # seconds in which a process of ours starts, on a machine that has much else to do
needs_engine = pytest.mark.skipif(
    not ENGINE.exists() and "SFUMATO_ENGINE_PYTHON" not in os.environ, reason="no environment with the engine"
)

SCHEMA = "format = 1\n" + "".join(
    f'[[column]]\nname = "{name}"\nkind = "continuous"\ndomain = {{ low = -20.0, high = 20.0 }}\n' for name in "aby"
)
SCHEMA += (
    '[[column]]\nname = "day"\nkind = "date"\nformat = "%Y-%m-%d"\n'
    'domain = { low = 2020-01-01T00:00:00, high = 2020-12-31T00:00:00, step = "day" }\n'
)


def write_tables(folder: Path, partition: str, n: int = 90) -> dict[str, Path]:
    """Give each party its rows or its columns of one table."""
    rng = np.random.default_rng(11)
    x = rng.normal(size=(n, 3)).round(3)
    numbers = {"a": x[:, 0], "b": x[:, 1], "c": x[:, 2], "y": x.sum(axis=1) + rng.normal(size=n)}
    columns = {name: [f"{number:.3f}" for number in column] for name, column in numbers.items()}
    columns["day"] = [f"2020-{month:02d}-{day:02d}" for month, day in rng.integers(1, (13, 29), size=(n, 2))]
    parts = {}
    for place, name in enumerate(NAMES):
        rows = rng.permutation(n) if partition == "vertical" else np.arange(place * n // 3, (place + 1) * n // 3)
        own = (("a",), ("b",), ("c", "y"))[place] if partition == "vertical" else ("a", "b", "y", "day")
        lines = [",".join(("id", *own) if partition == "vertical" else own)]
        for row in rows:
            cells = [columns[column][row] for column in own]
            lines.append(",".join([f"p{row:04d}", *cells] if partition == "vertical" else cells))
        parts[name] = folder / f"{name}.csv"
        parts[name].write_text("\n".join(lines) + "\n", encoding="utf-8")
    return parts


def trial(
    folder: Path, partition: str, *, timeout: float = 30.0, engine: str = "cheetah", n: int = 90
) -> dict[str, Path]:
    folder.mkdir(exist_ok=True)
    schema = folder / "schema.toml"
    schema.write_text(SCHEMA, encoding="utf-8")
    vertical = partition == "vertical"
    told = PartyTrial(
        {name: Address(HOST, free_port()) for name in NAMES},
        partition,
        write_tables(folder, partition, n),
        key="id" if vertical else None,
        target="y",
        schema=None if vertical else schema,
        k=15,
        engine=engine,
        timeout=timeout,
    )
    configs = write_trial(folder / "trial", told)
    for config in configs.values():
        edit(config, r"^# wait = 600 ", f"wait = {START:g}")  # processes start slowly where much else runs
    return configs


def edit(config: Path, old: str, new: str) -> None:
    text = config.read_text(encoding="utf-8")
    assert re.search(old, text, re.MULTILINE), old
    config.write_text(re.sub(old, new, text, count=1, flags=re.MULTILINE), encoding="utf-8")


@dataclass
class Party:
    """One party's process."""

    config: Path
    process: subprocess.Popen[str]
    before: set[str]
    children: set[int] = field(default_factory=set)

    @property
    def folder(self) -> Path:
        return self.config.parent

    @property
    def said(self) -> str:
        return (self.folder / "said").read_text(encoding="utf-8")

    def ended(self, within: float) -> int:
        return self.process.wait(within)

    def await_words(self, words: str, within: float = START) -> None:
        end = time.monotonic() + within
        while words not in self.said:
            assert self.process.poll() is None, self.said
            assert time.monotonic() < end, self.said
            time.sleep(0.05)

    def await_door(self, within: float = START) -> None:
        """Wait until the others could come: what is interrupted before has more to say than one sentence."""
        config, end = PartyConfig.load(self.config), time.monotonic() + within
        address = config.peers[config.rank].address
        while True:
            assert self.process.poll() is None, self.said
            with suppress(ConnectionRefusedError), socket.create_connection((address.host, address.port), within):
                return
            assert time.monotonic() < end, self.said
            time.sleep(0.05)

    def await_worker(self, within: float = START, *, seconds: float = 0.0) -> None:
        """Wait until the engine is there and has used so much processor time."""
        end = time.monotonic() + within
        while not (found := children_of(self.process.pid)) or sum(map(processor_time, found)) < seconds:
            assert self.process.poll() is None, self.said
            assert time.monotonic() < end, self.said
            time.sleep(0.05)
        self.children |= found

    def left(self) -> set[str]:
        return {path.name for path in self.folder.iterdir()} - self.before - {"said", "out"}


def children_of(parent: int) -> set[int]:
    path = Path(f"/proc/{parent}/task/{parent}/children")
    return {int(child) for child in path.read_text().split()} if path.exists() else set()


def processor_time(process: int) -> float:
    try:
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def is_running(process: int) -> bool:
    try:
        state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state != "Z"


Start = Callable[..., Party]


@pytest.fixture
def start() -> Iterator[Start]:
    started: list[Party] = []

    def one(config: Path, *arguments: str, before: str = "") -> Party:
        names = {path.name for path in config.parent.iterdir()}
        code = f"import sys\n{before}\nfrom sfumato.cli import main\nsys.argv[0] = 'sfumato'\nmain()"
        with (config.parent / "said").open("w") as said, (config.parent / "out").open("w") as out:
            process = subprocess.Popen(
                [sys.executable, "-c", code, "party", "run", "--config", str(config), *arguments],
                stderr=said,
                stdout=out,
                text=True,
            )
        started.append(Party(config, process, names))
        return started[-1]

    yield one
    for party in started:
        if party.process.poll() is None:
            party.process.send_signal(signal.SIGCONT)
            party.process.kill()
            party.process.wait(10)


def start_last(start: Start, configs: dict[str, Path], last: str, *arguments: str, before: str = "") -> list[Party]:
    """Start one party, with these arguments, when the others wait for it."""
    parties = {name: start(config) for name, config in configs.items() if name != last}
    for party in parties.values():
        party.await_words("waits for")
    parties[last] = start(configs[last], *arguments, before=before)
    return [parties[name] for name in configs]


def check_nothing_left(parties: list[Party]) -> None:
    """Nothing was written, one sentence was said, and no worker is left."""
    for party in parties:
        assert party.left() == set()
        errors = [
            line
            for line in party.said.splitlines()
            if not re.search(r"waits for|are here|two owners|whole noise", line)
        ]
        assert len(errors) == 1, party.said
        assert errors[0].startswith("sfumato: ")
        assert "Traceback" not in party.said
        end = time.monotonic() + START
        while any(is_running(child) for child in party.children) and time.monotonic() < end:
            time.sleep(0.05)
        assert not any(is_running(child) for child in party.children)


SAME = ("release/table.csv", "release/certificate.json", "release/schema.toml", "owner/transcript.jsonl")


@needs_engine
@pytest.mark.parametrize(
    ("partition", "engine"),
    [
        pytest.param("vertical", "cheetah", marks=pytest.mark.slow),
        pytest.param("horizontal", "cheetah", marks=pytest.mark.slow),
        pytest.param("vertical", "aby3", marks=pytest.mark.slow),
    ],
)
def test_all_parties_end_with_the_same_files(tmp_path: Path, start: Start, partition: str, engine: str) -> None:
    configs = trial(tmp_path, partition, timeout=60.0, engine=engine)
    for config in configs.values():
        edit(config, r"^# rounds = 20 ", "rounds = 3 ")
    parties = [start(config, "--json") for config in configs.values()]
    assert [party.ended(START) for party in parties] == [0, 0, 0], [party.said for party in parties]
    told = [json.loads((party.folder / "out").read_text(encoding="utf-8")) for party in parties]
    for name in SAME:
        assert len({(party.folder / "joint" / name).read_bytes() for party in parties}) == 1, name
    assert len((parties[0].folder / "joint" / "release" / "table.csv").read_text().splitlines()) == 91
    for party, document in zip(parties, told, strict=True):
        assert document["rows_out"] == 90
        assert document["groups"] == 6
        assert document["randomness"] == "release"
        assert document["bytes_sent"] > 0
        assert Path(document["folder"]) == party.folder / "joint"
        assert party.left() == {"joint"}
    assert all(check.holds for check in verify_release(parties[0].folder / "joint" / "release"))
    assert told[0]["bytes_sent"] > told[1]["bytes_sent"] or engine == "aby3"


@pytest.mark.slow  # test_network and test_engine_faults do the same in threads and without the parties
@needs_engine
def test_a_party_that_is_killed_is_named_by_the_others(tmp_path: Path, start: Start) -> None:
    parties = [start(config) for config in trial(tmp_path, "vertical", n=1500).values()]
    ann, ben, cat = parties
    ann.await_worker()
    cat.await_worker(seconds=3.0)  # its libraries take less: it computes
    cat.process.kill()
    assert [ann.ended(START), ben.ended(START)] == [1, 1]
    assert "'cat' disconnected" in ann.said
    assert "'cat' disconnected" in ben.said
    check_nothing_left([ann, ben])
    cat.ended(START)
    assert cat.left() == set()
    end = time.monotonic() + START
    while any(is_running(child) for child in cat.children) and time.monotonic() < end:
        time.sleep(0.05)
    assert not any(is_running(child) for child in cat.children)


@pytest.mark.slow  # test_network does the same in threads
@needs_engine
def test_a_party_that_is_stopped_is_named_within_the_timeout(tmp_path: Path, start: Start) -> None:
    parties = [start(config) for config in trial(tmp_path, "vertical", timeout=10.0).values()]
    ann, ben, cat = parties
    cat.await_worker()
    ann.await_worker()
    cat.process.send_signal(signal.SIGSTOP)
    assert [ann.ended(START), ben.ended(START)] == [1, 1]
    assert "'cat' has given no sign of life for 10 seconds" in ann.said
    assert "'cat' has given no sign of life for 10 seconds" in ben.said
    cat.process.send_signal(signal.SIGCONT)
    assert cat.ended(START) == 1
    assert "'ann'" in cat.said or "'ben'" in cat.said
    check_nothing_left(parties)


@pytest.mark.slow  # test_engine_faults does the same without the parties
@needs_engine
def test_an_engine_that_is_killed_ends_all_parties(tmp_path: Path, start: Start) -> None:
    parties = [start(config) for config in trial(tmp_path, "vertical", n=1500).values()]
    ann, ben, cat = parties
    cat.await_worker()
    ann.await_worker(seconds=3.0)
    for child in ann.children:
        os.kill(child, signal.SIGKILL)
    assert [party.ended(START) for party in parties] == [1, 1, 1]
    assert "engine" in ann.said
    assert "gave up: this party's engine" in ben.said
    check_nothing_left(parties)


@pytest.mark.slow
@needs_engine
def test_a_party_that_is_interrupted_tells_the_others(tmp_path: Path, start: Start) -> None:
    parties = [start(config) for config in trial(tmp_path, "vertical").values()]
    ann, ben, cat = parties
    ann.await_worker()
    cat.await_worker()
    ann.process.send_signal(signal.SIGINT)
    assert [party.ended(START) for party in parties] == [130, 1, 1]
    assert "interrupted; nothing was written" in ann.said
    for other in (ben, cat):
        assert "party 'ann' gave up: it was" in other.said
    check_nothing_left(parties)


def test_a_party_that_is_ended_while_it_waits_says_so(tmp_path: Path, start: Start) -> None:
    ann = start(trial(tmp_path, "horizontal")["ann"])
    ann.await_words("waits for")
    ann.await_door()
    ann.process.send_signal(signal.SIGTERM)
    assert ann.ended(START) == 130
    assert "interrupted; nothing was written" in ann.said
    check_nothing_left([ann])


@pytest.mark.slow  # test_network does the same in threads
def test_a_party_that_never_comes_is_named_in_time(tmp_path: Path, start: Start) -> None:
    configs = trial(tmp_path, "horizontal")
    for name in ("ann", "cat"):
        edit(configs[name], r"^wait = 300", "wait = 4")
    parties = [start(configs["ann"]), start(configs["cat"])]
    assert [party.ended(START) for party in parties] == [1, 1]
    assert "'ben'" in parties[0].said
    assert "'ben'" in parties[1].said
    assert "within 4 seconds" in parties[0].said
    check_nothing_left(parties)


@pytest.mark.slow  # test_network does the same in threads
def test_a_certificate_that_nobody_pinned_is_refused(tmp_path: Path, start: Start) -> None:
    configs = trial(tmp_path, "horizontal")
    folder, made = configs["cat"].parent, self_signed("cat", HOST)
    (folder / "key.pem").write_bytes(made.key)
    (folder / "certificate.pem").write_bytes(made.certificate)
    edit(configs["cat"], r'(name = "cat"\n.*\nfingerprint = ).*', rf'\1"{made.fingerprint}"')
    for name in ("ann", "ben"):
        edit(configs[name], r"^wait = 300", "wait = 8")
    parties = start_last(start, configs, "cat")
    ann, ben, cat = parties
    codes = [party.ended(START) for party in parties]
    assert codes[2] == 2
    assert "does not accept the certificate of this party" in cat.said
    assert "'cat'" in ann.said
    assert "'cat'" in ben.said
    if "showed a certificate" in ann.said:  # where cat came in time
        assert codes[0] == 2
    check_nothing_left(parties)


@pytest.mark.slow  # test_network does the same in threads
def test_the_certificate_of_another_rank_is_refused(tmp_path: Path, start: Start) -> None:
    configs = trial(tmp_path, "horizontal")
    ben, cat = configs["ben"].parent, configs["cat"].parent
    for name in ("key.pem", "certificate.pem"):
        shutil.copy(ben / name, cat / name)
    pins = re.findall(r'fingerprint = "(.*)"', configs["cat"].read_text(encoding="utf-8"))
    edit(configs["cat"], rf'"{pins[1]}"', f'"{"0" * 64}"')
    edit(configs["cat"], rf'"{pins[2]}"', f'"{pins[1]}"')
    parties = start_last(start, configs, "cat")
    assert [party.ended(START) for party in parties] == [2, 2, 2], [party.said for party in parties]
    assert all("certificate" in party.said for party in parties)
    assert any("calls itself 'cat' and showed the certificate of 'ben'" in party.said for party in parties[:2])
    check_nothing_left(parties)


@pytest.mark.slow  # test_network does the same in threads
@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("schema", "'ben' has schema.b.domain.high = 21.0 and this party schema.b.domain.high = 20.0"),
        ("version", "'ben' speaks sfumato 0.0.9 and this party sfumato"),
        ("plan", "'ben' has k = 16 and this party k = 15"),
        ("seed", "'ben' has seed = 5 and this party no seed"),
    ],
)
def test_all_hear_in_what_one_party_differs(tmp_path: Path, start: Start, kind: str, words: str) -> None:
    configs = trial(tmp_path, "horizontal")
    ben, before = configs["ben"], ""
    more: tuple[str, ...] = ()
    if kind == "version":
        before = "import sfumato.version\nsfumato.version.__version__ = '0.0.9'"
    elif kind == "plan":
        edit(ben, r"^k = 15", "k = 16")
    elif kind == "schema":
        edit(ben.parent / "schema.toml", r'(name = "b"(.*\n)*?.*high = )20\.0', r"\g<1>21.0")
    else:
        more = ("--seed", "5")
    parties = start_last(start, configs, "ben", *more, before=before)
    assert [party.ended(START) for party in parties] == [2, 2, 2], [party.said for party in parties]
    assert words in parties[0].said or words in parties[2].said
    assert all("'ben'" in parties[place].said for place in (0, 2))
    check_nothing_left(parties)


def test_phases_are_shown_one_after_the_other_and_rounds_as_one() -> None:
    heard: list[tuple[str, float]] = []
    with listening(lambda stage, fraction: heard.append((stage, fraction))), _phases(4):
        for phase in ("agreeing", "round 1", "round 2", "filling group 3", "noise"):
            tell(phase, 0.0)
    assert heard == [
        ("agreeing", 0.0),
        ("agreeing", 1.0),
        ("rounds (of 4)", 0.25),
        ("rounds (of 4)", 0.5),
        ("rounds (of 4)", 1.0),
        ("filling groups", 0.0),
        ("filling groups", 1.0),
        ("noise", 0.0),
    ]


def test_init_writes_what_party_reads_and_replaces_nothing(tmp_path: Path, run: Run) -> None:
    tables = write_tables(tmp_path, "vertical")
    options = [f"--party={name}={HOST}:{7000 + place}" for place, name in enumerate(NAMES)]
    options += [f"--data={name}={path}" for name, path in tables.items()]
    arguments = ("party", "init", tmp_path / "new", *options, "--partition", "vertical", "--key", "id", "--json")
    done = run(*arguments)
    assert done.code == 0, done.err
    configs = json.loads(done.out)["configs"]
    assert list(configs) == list(NAMES)
    assert all(Path(path).is_file() for path in configs.values())
    again = run(*arguments)
    assert again.code == 2
    assert "exists and is not replaced" in again.err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("party", "run"), "--config"),
        (("party", "run", "--config", "lost.toml"), "there is no settings file 'lost.toml'"),
        (("party", "init", "x", "--party", "a", "--party", "b=h:1", "--partition", "horizontal"), "NAME=HOST:PORT"),
        (("party", "init", "x", "--party", "a=h:1", "--party", "a=h:2", "--partition", "horizontal"), "named twice"),
        (("party", "init", "x", "--party", "a=h:1", "--partition", "horizontal"), "two or more parties"),
    ],
)
def test_bad_options_are_one_sentence(run: Run, arguments: tuple[str, ...], words: str) -> None:
    done = run(*arguments)
    assert done.code == 2
    assert words in done.err
    assert done.err.count("\n") == 1


@pytest.mark.slow  # test_network does the same in threads
def test_a_party_that_cannot_begin_ends_those_who_wait(tmp_path: Path, start: Start) -> None:
    configs = trial(tmp_path, "vertical")
    (tmp_path / "cat.csv").write_text("id,c\n", encoding="utf-8")
    waiting = [start(configs[name]) for name in ("ann", "ben")]
    for party in waiting:
        party.await_words("waits for")
    assert waiting[0].said.count("ann and cat each draw a whole noise, so its bound holds against every party") == 1
    broken = start(configs["cat"])
    assert broken.ended(START) == 2
    for party in waiting:
        assert party.ended(START) == 2
        assert "party 'cat' gave up: it could not begin (its table or its settings must be fixed)" in party.said
        assert str(tmp_path) not in party.said


def test_half_of_the_noise_is_called_so_at_the_start(tmp_path: Path) -> None:
    config = trial(tmp_path, "vertical")["ann"]
    words = PartyConfig.load(config).plan.noise_in_words
    assert "ann and cat each draw a whole noise, so its bound holds against every party" in words
    edit(config, r"^# noise = .*", 'noise = "split"')
    words = PartyConfig.load(config).plan.noise_in_words
    assert "ann and cat each know half of the noise, so its bound does NOT hold against these two" in words
    assert PartyConfig.load(trial(tmp_path / "rows", "horizontal")["ann"]).plan.noise_in_words == ""


def test_an_output_that_exists_is_refused_before_anybody_is_called(tmp_path: Path, run: Run) -> None:
    config = trial(tmp_path, "horizontal")["ann"]
    (config.parent / "joint").mkdir()
    done = run("party", "run", "--config", config)
    assert done.code == 2
    assert "exists" in done.err


def test_a_policy_that_needs_a_control_group_is_refused_before_anybody_is_called(tmp_path: Path, run: Run) -> None:
    config = trial(tmp_path, "horizontal")["ann"]
    done = run("party", "run", "--config", config, "--policy", "research")
    assert done.code == 3
    assert "there is no control group to compare attacks with; add --holdout 0.3 at every owner" in done.err
    assert "waits for" not in done.err
    assert not (config.parent / "joint").exists()


def test_a_party_does_not_replace_a_folder_with_its_own_files(tmp_path: Path, run: Run) -> None:
    people = pa.table({"age": [20, 30, 40, 50] * 10, "pay": [5, 5, 6, 7] * 10})
    sf.sanitize(people, sf.Condensation(k=5), report=False).save(tmp_path / "out")
    own = tmp_path / "out" / "release" / "table.csv"
    addresses = {"bank": Address(HOST, 1), "shop": Address(HOST, 2)}
    made = write_trial(tmp_path / "trial", PartyTrial(addresses, "vertical", data={"bank": own}, key="age"))
    before = own.read_bytes()
    done = run("party", "run", "--config", made["bank"], "-o", tmp_path / "out", "--overwrite")
    assert (done.code, own.read_bytes()) == (2, before), done.err
    assert "which this run reads" in done.err
