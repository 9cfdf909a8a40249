"""party.toml: what is missing, unknown or wrong is named, and what a trial writes can be read."""

from __future__ import annotations

import re
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from sfumato.core.errors import BadInput, OptionError
from sfumato.parties.config import PartyConfig, PartyTrial, write_trial
from sfumato.parties.connection import Hello, digest_of
from sfumato.parties.peers import Address

SCHEMA = """
format = 1
[[column]]
name = "x"
kind = "continuous"
domain = { low = 0.0, high = 9.0 }
[[column]]
name = "y"
kind = "continuous"
domain = { source = "observed", low = 0.25, high = 7.5 }
"""


def addresses(*names: str) -> dict[str, Address]:
    return {name: Address("127.0.0.1", 7001 + place) for place, name in enumerate(names)}


@pytest.fixture
def config(tmp_path: Path) -> Path:
    (tmp_path / "a.csv").write_text("id,x\n1,2\n", encoding="utf-8")
    trial = PartyTrial(
        addresses("bank", "shop"), "vertical", {"bank": tmp_path / "a.csv"}, key="id", target="x", k=7, timeout=5.0
    )
    return write_trial(tmp_path / "trial", trial)["bank"]


def edited(path: Path, old: str, new: str) -> Path:
    text = path.read_text(encoding="utf-8")
    assert len(re.findall(old, text, re.MULTILINE)) >= 1, old
    path.write_text(re.sub(old, new, text, count=1, flags=re.MULTILINE), encoding="utf-8")
    return path


def test_what_a_trial_writes_can_be_read(config: Path, tmp_path: Path) -> None:
    read = PartyConfig.load(config)
    assert read.name == "bank"
    assert read.rank == 0
    assert read.plan.mechanism.k == 7
    assert read.plan.target == "x"
    assert read.plan.partition == "vertical"
    assert read.data.key == "id"
    assert read.data.file.resolve() == (tmp_path / "a.csv").resolve()
    assert read.timeout == read.wait == 5.0
    assert read.listen == Address("127.0.0.1", 7001)
    assert read.settings() == read.plan.document()


def test_every_line_that_is_commented_out_says_something_that_can_be_read(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("id,x\n1,2\n", encoding="utf-8")
    (tmp_path / "python").touch()
    for partition, key in (("vertical", "id"), ("horizontal", None)):
        trial = PartyTrial(addresses("bank", "shop"), partition, {"bank": tmp_path / "a.csv"}, key=key)
        path = write_trial(tmp_path / partition, trial)["bank"]
        (path.parent / "schema.toml").write_text(SCHEMA, encoding="utf-8")
        for clash in (r"# (k|rho2|b) = .*\n", r"# interpreter = .*\n"):
            while re.search(clash, path.read_text(encoding="utf-8")):
                edited(path, clash, "")
        text = re.sub(r"^# (\w+ = )", r"\1", path.read_text(encoding="utf-8"), flags=re.MULTILINE)
        path.write_text(text, encoding="utf-8")
        read = PartyConfig.load(path)
        assert read.wait == 600.0
        assert read.plan.document()["groups"] == 10
        assert read.data.columns == ("age", "income")
        assert read.data.schema == path.parent / "schema.toml"


def test_keys_are_for_their_owner_alone(config: Path) -> None:
    folder = config.parent
    assert stat.S_IMODE((folder / "key.pem").stat().st_mode) == 0o600
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    names = {path.name for path in folder.iterdir()}
    assert names == {"party.toml", "key.pem", "certificate.pem", "certificate-of-shop.pem", "authority.pem"}
    assert "authority-key.pem" not in {path.name for path in folder.parent.iterdir()}


def test_the_authoritys_key_is_kept_only_if_asked_for(tmp_path: Path) -> None:
    write_trial(tmp_path / "t", PartyTrial(addresses("a", "b"), "horizontal"), keep_authority=True)
    assert stat.S_IMODE((tmp_path / "t" / "authority-key.pem").stat().st_mode) == 0o600


def test_an_existing_folder_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "t").mkdir()
    with pytest.raises(OptionError, match="exists and is not replaced"):
        write_trial(tmp_path / "t", PartyTrial(addresses("a", "b"), "horizontal"))
    assert list(tmp_path.iterdir()) == [tmp_path / "t"]


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: PartyTrial(addresses("a"), "horizontal"), "two or more parties"),
        (lambda: PartyTrial(addresses("a", "b"), "diagonal"), "no partition"),
        (lambda: PartyTrial(addresses("a", "b"), "vertical"), "key="),
        (lambda: PartyTrial(addresses("a", "b"), "horizontal", key="id"), "leave it out"),
        (
            lambda: PartyTrial(addresses("a", "b"), "vertical", key="id", schema=Path("x")),
            "schema= is for a horizontal",
        ),
        (lambda: PartyTrial(addresses("a", "b"), "horizontal", {"c": Path("x")}), "no party"),
        (lambda: PartyTrial(addresses("a", "../b"), "horizontal"), "no name of a party"),
        (lambda: PartyTrial(addresses("a", "b"), "horizontal", engine="aby3"), "three computing parties"),
        (lambda: PartyTrial(dict.fromkeys(("a", "b"), Address("x", 1)), "horizontal"), "same address"),
        (lambda: PartyTrial(addresses("a", "b"), "horizontal", k=1), "at least 2"),
    ],
)
def test_a_trial_that_cannot_be_is_refused(make: Callable[[], PartyTrial], words: str) -> None:
    with pytest.raises(BadInput, match=words):
        make()


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        (r"^format = 1", "format = 2", "no 'format = 1'"),
        (r"^run = .*\n", "", "'run' of the party's settings is missing"),
        (r'^me = "bank"', 'me = "bakn"', "no \\[\\[party\\]\\] has that name; there are bank, shop"),
        (r'^partition = "vertical"', 'partition = "diagonal"', "no partition 'diagonal'"),
        (r"^timeout = 5 ", "timeout = 0 ", "between 2 and 86400 seconds"),
        (r"^timeout = 5 ", "timeout = true ", "is not a number"),
        (r"^timeout = 5 ", "tiemout = 5 ", "'tiemout' of the party's settings is unknown"),
        (r'^listen = ".*"', 'listen = "7001"', "HOST:PORT"),
        (r'^fingerprint = ".*"', 'fingerprint = "abc"', "fingerprint of party 'bank' is not a SHA-256"),
        (r'^fingerprint = ".*"', f'fingerprint = "{"ab" * 32}"', "not the fingerprint that is pinned for 'bank'"),
        (r'^address = ".*"', 'address = "127.0.0.1:70000"', "from 1 to 65535"),
        (r'^name = "shop"', 'name = "bank"', "same name"),
        (r'^key = "key.pem".*\n', "", r"'key' in \[tls\]"),
        (r'^key = "id"', 'kye = "id"', r"'kye' in \[data\] of the party's settings is unknown"),
        (r'^key = "id".*\n', "", "needs 'key'"),
        (r'^file = ".*"', 'file = "lost.csv"', r"data file '.*lost\.csv' is not there"),
        (r"^# schema = ", "schema = ", r"schema file '.*schema\.toml' is not there"),
        (r"^# columns = .*", "columns = [1, 2]", "is not a list of texts"),
        (r"^# interpreter = .*", 'interpreter = "lost"', r"interpreter '.*lost' is not there"),
        (r'^protocol = "cheetah"', 'protocol = "semi2k"', "no engine 'semi2k'"),
        (r'^protocol = "cheetah"', 'protocol = "aby3"', "three computing parties"),
        (r"^k = 7", "k = 7.5", "is not a whole number"),
        (r"^k = 7", "k = 1", "at least 2"),
        (r"^# groups = 10", "groups = 10", "give one of them"),
        (r"^# b = 0.2", "b = nan", "'b' in \\[method\\] of the party's settings is not a number"),
        (r"^# rounds = 20", "rounds = 0", "rounds lie between"),
        (r"^# noise = .*", 'noise = "none"', "no noise 'none'"),
        (r"^\[engine\]", "[engin]", "unknown"),
        (r"^format = 1", "format = ", "not valid TOML"),
    ],
)
def test_a_wrong_entry_is_named(config: Path, old: str, new: str, words: str) -> None:
    with pytest.raises(BadInput, match=words) as refusal:
        PartyConfig.load(edited(config, old, new))
    assert refusal.value.exit_code == 2
    assert "\n" not in str(refusal.value)


def test_without_an_authority_the_certificates_of_the_others_are_needed(config: Path) -> None:
    edited(config, r"^authority = .*\n", "")
    assert [path.name for path in PartyConfig.load(config).identity.trusted] == ["certificate-of-shop.pem"]
    edited(config, r'^certificate = "certificate-of-shop.pem"\n', "")
    with pytest.raises(OptionError, match="1 other parties have no 'certificate'"):
        PartyConfig.load(config)


DECLARED = SCHEMA.replace('source = "observed", ', "")
DATES = """
[[column]]
name = "since"
kind = "date"
domain = { low = 2010-01-01, high = 2029-12-31T00:00:00, step = "day" }
"""


def trial_of_rows(folder: Path, schema: str) -> dict[str, Path]:
    (folder / "a.csv").write_text("x,y,since\n1,2,2015-03-01\n", encoding="utf-8")
    (folder / "s.toml").write_text(schema, encoding="utf-8")
    tables = dict.fromkeys(("bank", "shop"), folder / "a.csv")
    return write_trial(folder / "t", PartyTrial(addresses(*tables), "horizontal", tables, schema=folder / "s.toml"))


def test_owners_of_rows_compare_their_schemas_without_observed_bounds(tmp_path: Path) -> None:
    files = trial_of_rows(tmp_path, DECLARED)
    (files["bank"].parent / "schema.toml").write_text(SCHEMA, encoding="utf-8")
    (files["shop"].parent / "schema.toml").write_text(SCHEMA.replace("7.5", "8.5"), encoding="utf-8")
    settings = PartyConfig.load(files["bank"]).settings()
    assert settings == PartyConfig.load(files["shop"]).settings()
    assert settings["columns"] == ["x", "y"]
    assert settings["schema"]["x"]["domain"]["high"] == 9.0
    assert "domain" not in settings["schema"]["y"]


def test_declared_dates_can_be_compared_over_the_wire(tmp_path: Path) -> None:
    config = PartyConfig.load(trial_of_rows(tmp_path, DECLARED + DATES)["bank"])
    settings = config.settings()
    hello = Hello("0.2.0", config.run, "channel", 0, digest_of(settings), settings)
    assert Hello.from_bytes(hello.to_bytes()).settings == settings
    assert settings["schema"]["since"]["domain"]["low"].startswith("2010-01-01")


def test_a_schema_that_holds_observed_bounds_is_handed_to_nobody(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match="1 columns are not declared, the first is 'y'"):
        trial_of_rows(tmp_path, SCHEMA)
    assert not (tmp_path / "t").exists()


def test_a_seed_is_one_of_the_settings(config: Path) -> None:
    read = PartyConfig.load(config)
    assert read.with_plan(seed=4).settings()["seed"] == 4
    assert read.settings()["seed"] is None


def test_a_folder_is_no_settings_file(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match="cannot be read"):
        PartyConfig.load(tmp_path)
    with pytest.raises(OptionError, match="party init"):
        PartyConfig.load(tmp_path / "lost.toml")
