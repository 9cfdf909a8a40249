"""The owner's signing key: made once, by one of many processes, for its owner's eyes, and never lost."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import sfumato as sf
from sfumato.certificate.signature import PASSPHRASE, Signer, expected_signer, own_signer, signing_key_path
from sfumato.core.errors import OptionError, PrivacyRefusal

TABLE = pa.table({"age": list(range(60)), "sex": ["f", "m"] * 30})


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A configuration folder in which there is nothing yet."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    return tmp_path / "config"


def a_release(seed: int | None = None) -> sf.Release:
    return sf.sanitize(TABLE, sf.Condensation(k=5), seed=seed, report=False)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_a_release_that_is_saved_is_signed_by_the_key_of_its_owner(home: Path, tmp_path: Path) -> None:
    release = a_release()
    assert not home.exists(), "nothing is written before a release is saved"
    first, second = release.save(tmp_path / "first"), release.save(tmp_path / "second")
    key = sf.signing_key()
    assert key.path == signing_key_path() == home / "sfumato" / "signing-key.pem"
    assert (mode(key.path), mode(key.path.parent)) == (0o600, 0o700)
    assert sorted(path.name for path in key.path.parent.iterdir()) == ["signing-key.pem"]
    for folder in (first, second):
        assert sf.verify(folder, signer=key.fingerprint).confirmed
    private = key.path.read_bytes().split(b"\n")[1]
    assert not any(private in path.read_bytes() for path in tmp_path.rglob("*/*/*") if path.parent.name == "release")


@pytest.mark.parametrize("umask", [0o000, 0o777])
def test_the_key_is_closed_to_others_whatever_the_umask(home: Path, umask: int) -> None:
    home.mkdir()
    before = os.umask(umask)
    try:
        own_signer()
    finally:
        os.umask(before)
    assert (mode(home / "sfumato" / "signing-key.pem"), mode(home / "sfumato")) == (0o600, 0o700)


def test_processes_that_sign_for_the_first_time_at_once_have_one_key(home: Path) -> None:
    code = "from sfumato.certificate.signature import own_signer; input(); print(own_signer().fingerprint)"
    started = [
        subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for _ in range(4)
    ]
    for process in started:
        assert process.stdin is not None
        process.stdin.write("\n")
        process.stdin.flush()
    told = {process.communicate(timeout=120)[0].strip() for process in started}
    assert told == {sf.signing_key().fingerprint}
    assert [path.name for path in (home / "sfumato").iterdir()] == ["signing-key.pem"]


def test_a_key_that_another_process_put_there_first_is_the_one(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = iter([False])  # it is not there when it is looked for

    def there(path: str | Path) -> bool:
        return next(seen, Path(path).exists())

    first = own_signer()
    monkeypatch.setattr(os.path, "lexists", there)
    assert own_signer().fingerprint == first.fingerprint


def test_without_hard_links_a_key_is_made_all_the_same(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def link(*_: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "link", link)
    first = own_signer()
    assert own_signer().fingerprint == first.fingerprint
    assert [path.name for path in (home / "sfumato").iterdir()] == ["signing-key.pem"]


def test_a_dry_run_is_not_signed_and_makes_no_key(home: Path, tmp_path: Path) -> None:
    folder = a_release(seed=1).save(tmp_path / "out")
    assert not (folder / "release" / "certificate.sig").exists()
    assert not home.exists()
    with pytest.raises(PrivacyRefusal, match="a dry run is not for release"):
        a_release(seed=1).save(tmp_path / "other", sign=True)


def test_an_unsigned_release_makes_no_key(home: Path, tmp_path: Path) -> None:
    folder = a_release().save(tmp_path / "out", sign=False)
    assert not (folder / "release" / "certificate.sig").exists()
    assert not home.exists()


def test_a_configuration_folder_that_is_not_absolute_is_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/of/user")
    for told in ("", "config", "./config"):
        monkeypatch.setenv("XDG_CONFIG_HOME", told)
        assert signing_key_path() == Path("/home/of/user/.config/sfumato/signing-key.pem")
    monkeypatch.delenv("XDG_CONFIG_HOME")
    assert signing_key_path() == Path("/home/of/user/.config/sfumato/signing-key.pem")


def test_where_no_key_can_be_kept_the_folder_is_named_before_anything_is_written(home: Path, tmp_path: Path) -> None:
    home.write_text("a file stands where the folder should be")
    words = rf"no signing key can be kept in '{home}/sfumato' \(.*\); .*sign=FILE, .*sign=False$"
    with pytest.raises(OptionError, match=words):
        a_release().save(tmp_path / "out")
    assert not (tmp_path / "out").exists()
    a_release().save(tmp_path / "out", sign=False)


def test_a_disk_that_is_full_leaves_no_key_and_says_so(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OptionError, match="No space left on device"):
        own_signer()
    assert list((home / "sfumato").iterdir()) == []


def test_the_key_never_lies_in_the_output_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "out" / "config"))
    with pytest.raises(OptionError, match="the key is in the output folder"):
        a_release().save(tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_no_key_is_made_for_who_only_looks(home: Path) -> None:
    with pytest.raises(OptionError, match="there is no signing key in"):
        sf.signing_key()
    assert not home.exists()


def test_a_new_key_keeps_the_one_that_there_is(home: Path, tmp_path: Path) -> None:
    first = sf.new_signing_key()
    assert first.kept is None
    folder = a_release().save(tmp_path / "out")
    with pytest.raises(OptionError, match=r"there is a signing key in .*replace=True"):
        sf.new_signing_key()
    second, third = sf.new_signing_key(replace=True), sf.new_signing_key(replace=True)
    assert len({first.fingerprint, second.fingerprint, third.fingerprint}) == 3
    assert sf.signing_key().fingerprint == third.fingerprint
    assert second.kept is not None
    assert third.kept is not None
    kept = [Signer.load(path).fingerprint for path in (second.kept, third.kept)]
    assert kept == [first.fingerprint, second.fingerprint]
    assert all(mode(path) == 0o600 for path in home.glob("sfumato/*"))
    assert sf.verify(folder, signer=first.fingerprint).confirmed


def test_a_new_key_that_cannot_be_written_leaves_the_earlier_one(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = sf.new_signing_key()

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(OptionError, match="No space left on device"):
            sf.new_signing_key(replace=True)
    assert sf.signing_key().fingerprint == first.fingerprint
    assert len(list((home / "sfumato").iterdir())) == 1


def test_the_public_key_is_exported_and_the_private_one_is_not(home: Path, tmp_path: Path) -> None:
    key = sf.new_signing_key()
    file = key.export(tmp_path / "me.pub")
    assert file.read_text() == f"{key.public_key}\n"
    assert expected_signer(file) == key.fingerprint
    with pytest.raises(OptionError, match="exists; choose another"):
        key.export(file)
    key.export(file, overwrite=True)
    with pytest.raises(OptionError, match="is the private key, which is never replaced"):
        key.export(key.path, overwrite=True)
    (tmp_path / "link").symlink_to(key.path)
    with pytest.raises(OptionError, match="is the private key, which is never replaced"):
        key.export(tmp_path / "link", overwrite=True)
    with pytest.raises(OptionError, match="could not be written"):
        key.export(tmp_path / "nowhere" / "me.pub")


def test_a_damaged_key_is_named_with_what_to_do_and_is_not_lost_either(home: Path) -> None:
    key = sf.new_signing_key()
    key.path.write_bytes(key.path.read_bytes()[:40])
    with pytest.raises(OptionError, match=r"your signing key cannot be used: .*signing-key new --replace.*sign=False$"):
        own_signer()
    new = sf.new_signing_key(replace=True)
    assert new.kept is not None
    assert len(new.kept.read_bytes()) == 40


def test_a_key_that_its_owner_encrypted_signs_with_its_passphrase(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from cryptography.hazmat.primitives import serialization

    key = sf.new_signing_key()
    private = serialization.load_pem_private_key(key.path.read_bytes(), None)
    locked = serialization.BestAvailableEncryption(b"sesame")
    form = serialization.PrivateFormat.PKCS8
    key.path.write_bytes(private.private_bytes(serialization.Encoding.PEM, form, locked))
    monkeypatch.delenv(PASSPHRASE, raising=False)
    with pytest.raises(OptionError, match="is encrypted"):
        a_release().save(tmp_path / "out")
    assert sf.signing_key(ask=lambda: "sesame").fingerprint == key.fingerprint
    monkeypatch.setenv(PASSPHRASE, "sesame")
    assert sf.verify(a_release().save(tmp_path / "out"), signer=key.fingerprint).confirmed


def test_whatever_writes_a_release_signs_it_by_the_key_of_its_owner(home: Path, tmp_path: Path) -> None:
    pq.write_table(TABLE, tmp_path / "people.parquet")
    told: dict[str, Any] = {"report": False}
    sf.sanitize(
        tmp_path / "people.parquet", sf.Condensation(k=5), folder=tmp_path / "parted", engine="partitions", **told
    )
    numbers = tmp_path / "numbers.parquet"
    pq.write_table(pa.table({"age": list(range(60)), "pay": [2.5 * row for row in range(60)]}), numbers)
    sf.sanitize(
        numbers,
        sf.Translation(),
        folder=tmp_path / "moved",
        engine="partitions",
        new_key=tmp_path / "move.toml",
        **told,
    )
    sf.stream(tmp_path / "state.db", TABLE, k=5).publish(tmp_path / "epoch", **told)
    shop = sf.transactions(pa.table({"items": ["bread;milk", "bread", "milk;beer", "bread;milk"] * 10}))
    shop.randomize(items=("bread", "milk", "beer"), **told).save(tmp_path / "shop")
    fingerprint = sf.signing_key().fingerprint
    for name in ("parted", "moved", "epoch", "shop"):
        assert sf.verify(tmp_path / name, signer=fingerprint).confirmed, name


def test_tests_never_use_the_key_of_who_runs_them() -> None:
    assert "sfumato-tests-" in str(signing_key_path())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert own_signer().fingerprint
