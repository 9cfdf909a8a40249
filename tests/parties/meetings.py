"""Parties on loopback: certificates, places and ports for tests of the network."""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from sfumato.core.errors import SfumatoError
from sfumato.parties import peers
from sfumato.parties.network import NetworkChannel
from sfumato.parties.peers import Address, Identity, KeyAndCertificate, NetworkSettings, Peer
from tests.ports import free_port

HOST = "127.0.0.1"


def self_signed(name: str, host: str) -> KeyAndCertificate:
    """A key and a certificate that nobody vouches for but whoever pins it."""
    key = Ed25519PrivateKey.generate()
    own = peers._name(name)
    signed = peers._party(peers._builder(own, own, key), host).sign(key, None)
    return KeyAndCertificate(peers._key_pem(key), peers._pem(signed))


def write_made(folder: Path, name: str, made: KeyAndCertificate) -> tuple[Path, Path]:
    folder.mkdir(exist_ok=True, parents=True)
    key, certificate = folder / f"{name}.key", folder / f"{name}.pem"
    key.write_bytes(made.key)
    certificate.write_bytes(made.certificate)
    return key, certificate


def make_places(folder: Path, names: tuple[str, ...] = ("ann", "ben", "cat"), **changes: Any) -> list[NetworkSettings]:
    """Place of each party, with certificates that they have pinned for each other."""
    made = {name: self_signed(name, HOST) for name in names}
    files = {name: write_made(folder, name, one) for name, one in made.items()}
    known = tuple(Peer(name, Address(HOST, free_port()), made[name].fingerprint) for name in names)
    settings = {"partition": "vertical", "k": 5, "seed": None}
    places = []
    for rank, name in enumerate(names):
        trusted = tuple(files[other][1] for other in names if other != name)
        identity = Identity(*files[name], None, trusted)
        place = NetworkSettings(
            rank, known, "test", identity, known[rank].address, settings, "0.2.0", timeout=10.0, wait=15.0
        )
        places.append(dataclasses.replace(place, **changes))
    return places


Work = Callable[[NetworkChannel], Any]


def run_all(places: list[NetworkSettings], work: Work) -> list[Any]:
    """Let every party do the same in a thread of its own; give what each returned, or the error it ended with."""
    ends: list[Any] = [None] * len(places)

    def live(place: NetworkSettings, number: int) -> None:
        try:
            channel = NetworkChannel.connect(place)
        except SfumatoError as error:
            ends[number] = error
            return
        try:
            ends[number] = work(channel)
        except SfumatoError as error:
            ends[number] = error
            channel.abort(str(error))
        finally:
            channel.close()

    threads = [threading.Thread(target=live, args=(place, number)) for number, place in enumerate(places)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(300)
        assert not thread.is_alive()
    return ends
