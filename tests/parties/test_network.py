"""The channel between machines, on loopback: it carries all bytes in order, and reports any failure to all."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import os
import socket
import ssl
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.core.errors import PrivacyRefusal, SfumatoError, TableError
from sfumato.parties.channel import MOST_MESSAGE, Inbox, PartyError
from sfumato.parties.connection import Hello, difference, digest_of
from sfumato.parties.network import NetworkChannel, _drain_loop
from sfumato.parties.peers import Address, Identity, Peer, TrialAuthority, tls_contexts
from sfumato.parties.stream import MOST_FRAME, Frame
from tests.parties.meetings import HOST, make_places, run_all, self_signed, write_made
from tests.ports import free_port


def others(channel: NetworkChannel) -> list[int]:
    return [rank for rank in range(channel.parties) if rank != channel.rank]


def swap(channel: NetworkChannel) -> list[int]:
    for rank in others(channel):
        channel.send(rank, "rank", bytes([channel.rank]))
    return [channel.receive(rank, "rank")[0] for rank in others(channel)]


@pytest.mark.parametrize("count", [2, 3, 5])
def test_every_two_parties_hear_each_other(tmp_path: Path, count: int) -> None:
    names = ("ann", "ben", "cat", "dan", "eve")[:count]
    ends = run_all(make_places(tmp_path, names), swap)
    assert ends == [[rank for rank in range(count) if rank != own] for own in range(count)]


def test_messages_of_any_size_arrive_whole_and_in_order(tmp_path: Path) -> None:
    sizes = (0, 1, MOST_FRAME - 1, MOST_FRAME, MOST_FRAME + 1, 5_000_000)
    texts = [os.urandom(size) for size in sizes]

    def work(channel: NetworkChannel) -> bool:
        for number, text in enumerate(texts):
            channel.send(1 - channel.rank, f"text {number}", text)
        got = [channel.receive(1 - channel.rank, f"text {number}") for number in range(len(texts))]
        assert (channel.sent, channel.messages) == (sum(sizes), len(sizes))
        assert channel.bytes_sent > channel.sent
        return got == texts

    assert run_all(make_places(tmp_path, ("ann", "ben")), work) == [True, True]


def test_both_may_send_much_before_either_reads(tmp_path: Path) -> None:
    def work(channel: NetworkChannel) -> int:
        for number in range(4):
            channel.send(1 - channel.rank, str(number), bytes(8_000_000))
        return sum(len(channel.receive(1 - channel.rank, str(number))) for number in range(4))

    assert run_all(make_places(tmp_path, ("ann", "ben")), work) == [32_000_000] * 2


def test_a_party_that_ends_first_has_still_said_all(tmp_path: Path) -> None:
    def work(channel: NetworkChannel) -> int:
        if channel.rank == 0:
            channel.send(1, "much", bytes(3_000_000))
            return 0
        time.sleep(1.0)
        return len(channel.receive(0, "much"))

    assert run_all(make_places(tmp_path, ("ann", "ben")), work) == [0, 3_000_000]


def test_parties_may_start_in_any_order(tmp_path: Path) -> None:
    places = make_places(tmp_path)
    ends: dict[int, Any] = {}

    def live(rank: int) -> None:
        channel = NetworkChannel.connect(places[rank])
        ends[rank] = swap(channel)
        channel.close()

    threads = [threading.Thread(target=live, args=(rank,)) for rank in (2, 1, 0)]
    for thread in threads:
        thread.start()
        time.sleep(0.6)
    for thread in threads:
        thread.join(300)
    assert ends == {0: [1, 2], 1: [0, 2], 2: [0, 1]}


def test_certificates_of_an_authority_are_checked_against_it_and_the_pins(tmp_path: Path) -> None:
    authority = TrialAuthority("test")
    (tmp_path / "authority.pem").write_bytes(authority.certificate)
    places = make_places(tmp_path, ("ann", "ben"))
    made = {place.names[place.rank]: authority.issue("x", HOST) for place in places}
    peers = tuple(Peer(peer.name, peer.address, made[peer.name].fingerprint) for peer in places[0].peers)
    signed = []
    for place in places:
        files = write_made(tmp_path / "signed", peers[place.rank].name, made[peers[place.rank].name])
        signed.append(dataclasses.replace(place, peers=peers, identity=Identity(*files, tmp_path / "authority.pem")))
    assert run_all(signed, swap) == [[1], [0]]
    signed = [dataclasses.replace(place, wait=2.0) for place in signed]
    stranger = write_made(tmp_path, "stranger", authority.issue("y", HOST))
    ends = run_all(
        [signed[0], dataclasses.replace(signed[1], identity=Identity(*stranger, tmp_path / "authority.pem"))], swap
    )
    assert all(isinstance(end, PartyError) and end.exit_code == 2 for end in ends)
    assert "certificate" in str(ends[0])
    assert "pinned for no party" in str(ends[1])


def test_a_stranger_is_told_at_once_and_the_others_in_time(tmp_path: Path) -> None:
    places = make_places(tmp_path)
    stranger = write_made(tmp_path, "stranger", self_signed("cat", HOST))
    places[2] = dataclasses.replace(
        places[2], identity=dataclasses.replace(places[2].identity, key=stranger[0], certificate=stranger[1])
    )
    ends = run_all([dataclasses.replace(place, wait=3.0) for place in places], swap)
    assert all(isinstance(end, PartyError) and end.exit_code == 2 for end in ends), ends
    assert "does not accept the certificate of this party" in str(ends[2])
    assert "'cat'" in str(ends[0])
    assert "certificate that is not trusted" in str(ends[0])


def test_one_partys_certificate_does_not_pass_for_another(tmp_path: Path) -> None:
    places = make_places(tmp_path)
    ben = places[1].identity
    places[2] = dataclasses.replace(
        places[2], identity=dataclasses.replace(places[2].identity, key=ben.key, certificate=ben.certificate)
    )
    ends = run_all(places, swap)
    assert all(isinstance(end, PartyError) and end.exit_code == 2 for end in ends), ends
    assert "calls itself 'cat' and showed the certificate of 'ben'" in str(ends[0])
    assert "refused this party" in str(ends[2]) or "does not accept the certificate" in str(ends[2])


def test_a_called_party_must_be_the_one_that_is_pinned(tmp_path: Path) -> None:
    places = make_places(tmp_path)
    ann, ben, cat = places[0].peers
    crossed = (dataclasses.replace(ann, address=ben.address), dataclasses.replace(ben, address=ann.address), cat)
    ends = run_all([*places[:2], dataclasses.replace(places[2], peers=crossed)], swap)
    assert all(isinstance(end, PartyError) and end.exit_code == 2 for end in ends), ends
    assert "is that of" in str(ends[2])
    assert "'cat'" in str(ends[0])


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"settings": {"partition": "vertical", "k": 6, "seed": None}}, "has k = 6 and this party k = 5"),
        ({"settings": {"partition": "vertical", "k": 5, "seed": 3}}, "has seed = 3 and this party no seed"),
        ({"settings": {"partition": "vertical", "k": 5, "seed": None, "x": {"y": 1}}}, "x.y = 1 and this party no x.y"),
        ({"run": "other"}, "is in the run 'other' and this party in 'test'"),
    ],
)
def test_all_hear_in_what_a_party_differs(tmp_path: Path, change: dict[str, Any], words: str) -> None:
    places = make_places(tmp_path)
    places[1] = dataclasses.replace(places[1], **change)
    ends = run_all(places, swap)
    assert all(isinstance(end, PartyError) and end.exit_code == 2 for end in ends), ends
    assert "'ben'" in str(ends[0])
    assert words in str(ends[0])
    assert "'ann'" in str(ends[1]) or "'cat'" in str(ends[1])


def test_another_version_is_refused_at_both_ends(tmp_path: Path) -> None:
    ann, ben = make_places(tmp_path, ("ann", "ben"))
    ends = run_all([ann, dataclasses.replace(ben, version="0.0.9")], swap)
    assert "'ben' speaks sfumato 0.0.9 and this party sfumato 0.2.0" in str(ends[0])
    assert "'ann' speaks sfumato 0.2.0 and this party sfumato 0.0.9" in str(ends[1])


def test_a_party_that_never_comes_is_named(tmp_path: Path) -> None:
    places = [dataclasses.replace(place, wait=2.0) for place in make_places(tmp_path)]
    ends = run_all(places[1:], swap)
    for end in ends:
        assert isinstance(end, PartyError)
        assert end.exit_code == 1
        assert "'ann'" in str(end)


def test_a_party_that_gives_up_says_why_to_all(tmp_path: Path) -> None:
    def work(channel: NetworkChannel) -> None:
        if channel.rank == 1:
            raise PartyError("column 'age' has 3 cells that are no numbers")
        channel.receive(2 if channel.rank == 0 else 0, "never")

    ends = run_all(make_places(tmp_path), work)
    for rank in (0, 2):
        assert str(ends[rank]) == "party 'ben' gave up: column 'age' has 3 cells that are no numbers"


@pytest.mark.parametrize("error", [TableError, PrivacyRefusal, PartyError])
def test_all_parties_end_with_the_exit_code_of_the_one_that_gave_up(tmp_path: Path, error: type[SfumatoError]) -> None:
    def work(channel: NetworkChannel) -> None:
        if channel.rank == 1:
            raise error("no")
        channel.receive(1, "never")

    ends = run_all(make_places(tmp_path), work)
    assert [end.exit_code for end in ends] == [error.exit_code] * 3


def test_a_reason_that_is_passed_on_keeps_the_name_of_the_first(tmp_path: Path) -> None:
    def work(channel: NetworkChannel) -> None:
        if channel.rank == 1:
            raise TableError("party 'cat' gave up: no")
        channel.receive(1, "never")

    ends = run_all(make_places(tmp_path), work)
    assert str(ends[0]) == "party 'cat' gave up: no"
    assert ends[0].exit_code == 2


def test_a_failure_wakes_whoever_polls_the_event(tmp_path: Path) -> None:
    def work(channel: NetworkChannel) -> bool:
        if channel.rank == 1:
            for rank in (0, 2):
                channel.receive(rank, "ready")
            raise PartyError("enough")
        channel.send(1, "ready", b"")
        return channel.inbox.failed.wait(300.0)

    ends = run_all(make_places(tmp_path), work)
    assert ends[0] is True
    assert ends[2] is True


def test_a_party_that_lives_and_sends_nothing_is_named_when_its_step_is_over(tmp_path: Path) -> None:
    told = threading.Event()

    def work(channel: NetworkChannel) -> bytes | None:
        if channel.rank == 2:
            assert told.wait(300.0)  # who ends before would be named for that
            return None
        if channel.rank == 0:  # waits for one who waits itself, and knows it
            while channel.inbox._waiting_for.get(1) != (2,):
                time.sleep(0.01)
        try:
            return channel.receive(channel.rank + 1, "never")
        finally:
            if channel.rank == 1:
                told.set()

    places = make_places(tmp_path, timeout=20.0, step=3.0)
    ends = run_all([dataclasses.replace(place, step=600.0 if place.rank == 1 else 3.0) for place in places], work)
    assert "party 'cat' is connected but did not advance for 3 seconds" in str(ends[0])
    assert "party 'cat' is connected but did not advance" in str(ends[1])  # as reported


def test_a_party_that_takes_nothing_is_named_when_its_step_is_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def never(*_: object) -> None:
        await asyncio.Event().wait()

    monkeypatch.setattr("sfumato.parties.connection.Connection.send", never)

    def work(channel: NetworkChannel) -> None:
        if channel.rank == 0:
            channel.send(1, "much", b"x")
        assert channel.inbox.failed.wait(300.0)

    ends = run_all(make_places(tmp_path, ("ann", "ben"), timeout=20.0, step=0.5), work)
    assert "party 'ben' is connected but did not advance" in str(ends[0])


@pytest.mark.parametrize(
    ("told", "named"),
    [
        ({}, "party 'ben'"),
        ({1: (2,)}, "party 'cat'"),
        ({1: (2,), 2: ()}, "party 'cat'"),
        ({1: (2, 3), 2: (3,)}, "party 'dan'"),
        ({1: (2, 3)}, "parties 'cat' and 'dan'"),
        ({1: (0,)}, "party 'ann'"),
        ({1: (2,), 2: (1,)}, "party 'ben'"),
    ],
)
def test_who_holds_all_up_is_the_one_that_waits_for_nobody(told: dict[int, tuple[int, ...]], named: str) -> None:
    inbox = Inbox(("ann", "ben", "cat", "dan"))
    for rank, awaited in told.items():
        inbox.note_waiting(rank, awaited)
    with inbox.waiting(1):
        assert inbox.blocking_parties() == named
    assert inbox.awaited == ()


def test_a_party_that_cannot_begin_tells_those_who_wait(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sfumato.parties.network._DECLINE_WAIT", 600.0)
    first, second, third = make_places(tmp_path, wait=600.0)

    def decline() -> None:
        try:
            raise TableError("column 'age' has 3 cells that are no numbers")
        except TableError:
            NetworkChannel.decline(third, "it could not begin")

    meeting = threading.Thread(target=decline)
    meeting.start()
    ends = run_all([first, second], swap)
    meeting.join()
    assert [str(end) for end in ends] == ["party 'cat' gave up: it could not begin"] * 2
    assert [end.exit_code for end in ends] == [2, 2]


def test_a_party_that_cannot_begin_and_is_alone_leaves_nothing_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sfumato.parties.network._DECLINE_WAIT", 0.2)
    NetworkChannel.decline(make_places(tmp_path, wait=600.0)[1], "it could not begin")
    assert [thread.name for thread in threading.enumerate() if "network" in thread.name] == []


def test_another_kind_than_due_is_refused(tmp_path: Path) -> None:
    def work(channel: NetworkChannel) -> bytes:
        channel.send(1 - channel.rank, "this", b"")
        return channel.receive(1 - channel.rank, "that")

    ends = run_all(make_places(tmp_path, ("ann", "ben")), work)
    assert any("sent 'this' where 'that' was due" in str(end) for end in ends)
    assert all(isinstance(end, PartyError) for end in ends)


def test_waiting_for_one_that_has_ended_is_an_error(tmp_path: Path) -> None:
    def work(channel: NetworkChannel) -> bytes:
        return b"" if channel.rank else channel.receive(1, "more")

    ends = run_all(make_places(tmp_path, ("ann", "ben")), work)
    assert "'ben' has ended its run" in str(ends[0])


def test_a_long_computation_is_not_taken_for_silence(tmp_path: Path) -> None:
    def work(channel: NetworkChannel) -> list[int]:
        if channel.rank == 0:
            time.sleep(6.0)  # whatever it does: a thread of its own gives the signs of life
        return swap(channel)

    places = [dataclasses.replace(place, timeout=5.0) for place in make_places(tmp_path, ("ann", "ben"))]
    assert run_all(places, work) == [[1], [0]]


def test_a_message_over_the_limit_is_refused_before_it_is_sent(tmp_path: Path) -> None:
    class Huge(bytes):
        def __len__(self) -> int:
            return MOST_MESSAGE + 1

    def work(channel: NetworkChannel) -> None:
        channel.send(1 - channel.rank, "huge", Huge())

    ends = run_all(make_places(tmp_path, ("ann", "ben")), work)
    assert any("at most 1024 MiB" in str(end) for end in ends)


def test_a_port_in_use_is_one_clear_sentence(tmp_path: Path) -> None:
    places = make_places(tmp_path, ("ann", "ben"))
    with socket.socket() as taken:
        taken.bind((HOST, places[0].listen.port))
        taken.listen()
        with pytest.raises(PartyError, match=f"cannot listen at {HOST}:{places[0].listen.port}"):
            NetworkChannel.connect(places[0])


def test_strangers_at_the_port_do_not_disturb_a_run(tmp_path: Path) -> None:
    places = make_places(tmp_path, ("ann", "ben"))

    def disturb() -> None:
        plain = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        plain.check_hostname, plain.verify_mode = False, ssl.CERT_NONE
        for _ in range(20):
            try:
                with socket.create_connection((HOST, places[0].listen.port), timeout=2) as caller:
                    caller.sendall(b"GET / HTTP/1.1\r\n\r\n")
                caller = socket.create_connection((HOST, places[0].listen.port), timeout=2)
                with plain.wrap_socket(caller) as wrapped:
                    wrapped.recv(10)
            except OSError:
                pass
            time.sleep(0.05)

    thread = threading.Thread(target=disturb)
    thread.start()

    def work(channel: NetworkChannel) -> list[int]:
        time.sleep(1.0)
        return swap(channel)

    assert run_all(places, work) == [[1], [0]]
    thread.join()


def test_a_connection_whose_other_end_takes_nothing_is_let_go_at_the_end() -> None:
    near, far = socket.socketpair()
    loop = asyncio.new_event_loop()

    async def say_much() -> asyncio.WriteTransport:
        _, writer = await asyncio.open_connection(sock=near)
        writer.write(bytes(50_000_000))
        writer.close()
        return writer.transport

    with far:
        transport = loop.run_until_complete(say_much())
        loop.run_until_complete(_drain_loop([transport]))
        loop.close()
        assert near.fileno() == -1


def test_callers_who_come_at_the_very_end_are_sent_away() -> None:
    loop = asyncio.new_event_loop()
    held = loop.create_task(asyncio.sleep(60))
    loop.run_until_complete(asyncio.sleep(0))
    loop.run_until_complete(_drain_loop())
    assert held.cancelled()
    loop.close()


def test_many_silent_callers_do_not_keep_a_party_out(tmp_path: Path) -> None:
    places = make_places(tmp_path, ("ann", "ben"), timeout=60.0, wait=60.0)
    with contextlib.ExitStack() as held:

        def flood() -> None:
            while True:
                with contextlib.suppress(ConnectionRefusedError):
                    held.enter_context(socket.create_connection((HOST, places[0].listen.port)))
                    break
                time.sleep(0.02)
            for _ in range(150):
                held.enter_context(socket.create_connection((HOST, places[0].listen.port)))

        ends: list[Any] = []
        first = threading.Thread(target=lambda: ends.append(run_all(places[:1], swap)))
        first.start()
        flood()
        ends.append(run_all(places[1:], swap))
        first.join(300)
    assert sorted(ends) == [[[0]], [[1]]]


def end_with_rogue(tmp_path: Path, words: bytes) -> str:
    """Say how a party ends whose only fellow greets well and then sends these bytes."""
    ann, ben = make_places(tmp_path, ("ann", "ben"))
    ends: list[str] = []

    def live() -> None:
        try:
            channel = NetworkChannel.connect(ann)
        except PartyError as error:  # it may know that early
            ends.append(str(error))
            return
        try:
            ends.append(repr(channel.receive(1, "rows")))
        except PartyError as error:
            ends.append(str(error))
        channel.close()

    thread = threading.Thread(target=live)
    thread.start()
    hello = Hello(ben.version, ben.run, "channel", 1, digest_of(ben.settings), ben.settings).to_bytes()
    while True:
        try:
            plain = socket.create_connection((HOST, ann.listen.port))
            break
        except ConnectionRefusedError:
            time.sleep(0.05)
    with tls_contexts(ben.identity)[1].wrap_socket(plain) as rogue:
        rogue.sendall(bytes((Frame.HELLO,)) + len(hello).to_bytes(4, "big") + hello + words)
        thread.join(300)
    return ends[0]


def test_empty_messages_that_nobody_reads_take_room_too() -> None:
    inbox = Inbox(("ann", "ben"))
    for _ in range(3):
        inbox.put(1, "rows", b"")
    assert inbox.free_bytes(1) < MOST_MESSAGE
    for _ in range(3):
        assert inbox.take(1) == ("rows", b"")
    assert inbox.free_bytes(1) == MOST_MESSAGE


def test_a_peer_that_announces_too_much_is_refused_before_memory_is_taken(tmp_path: Path) -> None:
    message = bytes((Frame.MESSAGE,)) + (12).to_bytes(4, "big") + (1 << 40).to_bytes(8, "big") + b"rows"
    assert "party 'ben' sends more than 1024 MiB at once" in end_with_rogue(tmp_path, message)


@pytest.mark.parametrize("junk", [b"\xff" * 5, b"\3" + b"\xff" * 4, b"\4\0\0\0\1x", b"\3\0\0\0\1x", b"\1\0\0\0\0"])
def test_a_peer_that_speaks_another_language_is_disconnected(tmp_path: Path, junk: bytes) -> None:
    assert "party 'ben' disconnected" in end_with_rogue(tmp_path, junk)


def test_tls_below_1_3_is_refused(tmp_path: Path) -> None:
    answering, calling = tls_contexts(make_places(tmp_path)[0].identity)
    for context in (answering, calling):
        assert context.minimum_version is ssl.TLSVersion.TLSv1_3
        assert context.verify_mode is ssl.CERT_REQUIRED


@given(st.dictionaries(st.text(max_size=5), st.integers() | st.text(max_size=5) | st.none(), max_size=4))
def test_the_digest_does_not_depend_on_the_order_of_keys(document: dict[str, Any]) -> None:
    turned = dict(reversed(list(document.items())))
    assert digest_of(document) == digest_of(turned)
    here = Hello("1", "run", "channel", 0, digest_of(document), document)
    assert difference(here, Hello("1", "run", "channel", 1, digest_of(turned), turned), "x") is None
    assert Hello.from_bytes(here.to_bytes()) == here


@given(st.binary(max_size=200))
def test_bytes_that_are_no_greeting_are_refused_as_such(data: bytes) -> None:
    with pytest.raises(ValueError, match=r".+"):
        Hello.from_bytes(data)


def test_an_address_is_read_as_it_is_written() -> None:
    port = free_port()
    assert Address.parse(f"{HOST}:{port}") == Address(HOST, port)
    assert str(Address.parse("[::1]:7")) == "[::1]:7"
