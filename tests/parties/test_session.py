"""The session over shares: what goes in comes out, nothing undeclared is shown, and no share tells a number."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.core.errors import PrivacyRefusal
from sfumato.parties.arithmetic import Operation, evaluate
from sfumato.parties.channel import PartyError
from sfumato.parties.ledger import Leak
from sfumato.parties.session import Session, plain_sessions
from tests.examples import examples
from tests.parties.together import run_together

NAMES = ("a", "b", "c", "d")
LEAKS = {
    "result": Leak("result", "opened", "all", "the result"),
    "own": Leak("own", "opened", "owner", "to one party"),
    "total": Leak("total", "sum", "all", "a sum"),
    "word": Leak("word", "told", "all", "a message"),
}
WHOLE = st.integers(-(2**60), 2**60)


@examples(20)
@given(st.integers(2, 4), st.lists(WHOLE, min_size=1, max_size=5), st.data())
def test_what_owners_share_is_added_and_opened_exactly(parties: int, numbers: list[int], data: st.DataObject) -> None:
    own = [
        np.array([data.draw(WHOLE) >> 3 for _ in numbers], dtype=np.int64) if rank else np.array(numbers) >> 3
        for rank in range(parties)
    ]

    def play(session: Session, rank: int) -> np.ndarray | None:
        handles = [
            session.share(own[owner] if owner == rank else None, owner, (len(numbers),), "x")
            for owner in range(session.parties)
        ]
        return session.open(session.add(*handles), "result")

    for seen in run_together(play, NAMES[:parties], LEAKS):
        assert seen is not None
        assert seen.tolist() == sum(own).tolist()  # type: ignore[union-attr]


@pytest.mark.parametrize("engine", ["cheetah", "aby3"])
def test_operations_of_shares_are_those_of_the_numbers(engine: str) -> None:
    rng = np.random.default_rng(5)
    a, b = rng.integers(-50, 50, (6, 3)), rng.integers(-50, 50, (6, 3))
    far = rng.integers(0, 8, 6)

    def play(session: Session, rank: int) -> list[list[int]]:
        x = session.share(a if rank == 1 else None, 1, a.shape, "a")
        y = session.share(b if rank == 2 else None, 2, b.shape, "b")
        z = session.share(far if rank == 0 else None, 0, far.shape, "far")
        low, high = session.extremes(x)
        made = [
            session.less_than(x, y),
            session.argmin(y),
            low,
            session.subtract(high, low),
            session.top(z, 2, bits=4),
            session.cross(x, y),
            session.scale(session.join([x, y]), np.array([1, -2, 3])),
            session.arrange(session.part(x, np.array([2, 2, 0])), (3, 3), (1, 0)),
        ]
        opened = [session.open(handle, "result") for handle in made]
        return [[] if seen is None else seen.ravel().tolist() for seen in opened]

    clear = [
        a < b,
        np.argmin(b, axis=1),
        a.min(axis=0),
        np.ptp(a, axis=0),
        evaluate(Operation("top", (far.shape,), count=2, bits=4), [far])[0],
        a.T @ b,
        np.concatenate([a, b]) * [1, -2, 3],
        a[[2, 2, 0]].T,
    ]
    wanted = [np.asarray(part, dtype=np.int64).ravel().tolist() for part in clear]
    for seen in run_together(play, NAMES, LEAKS, engine=engine):
        assert seen == wanted


def test_only_the_parties_named_see_what_is_opened() -> None:
    def play(session: Session, rank: int) -> bool:
        x = session.share(np.array([7]) if rank == 3 else None, 3, (1,), "x")
        return session.open(x, "own", to=(1,)) is not None

    assert run_together(play, NAMES, LEAKS) == [False, True, False, False]


def test_a_secure_sum_is_exact_and_wraps_no_sign() -> None:
    def play(session: Session, rank: int) -> list[int]:
        return [int(one) for one in session.sum(np.array([rank, -(2**61) // 4, 0]), "total")]

    assert run_together(play, NAMES, LEAKS) == [[6, -(2**61), 0]] * 4


def test_words_and_public_randomness_are_the_same_at_all_and_private_randomness_is_not() -> None:
    def play(session: Session, rank: int) -> tuple[bytes, int, int]:
        word = session.broadcast(b"hello" if rank == 2 else None, 2, "word", 1)
        return word, int(session.public_rng("coin").integers(2**62)), int(session.private_rng("own").integers(2**62))

    seen = run_together(play, NAMES, LEAKS)
    assert {word for word, _, _ in seen} == {b"hello"}
    assert len({public for _, public, _ in seen}) == 1
    assert len({private for _, _, private in seen}) == 4
    assert run_together(play, NAMES, LEAKS, seed=3) == run_together(play, NAMES, LEAKS, seed=3)
    assert {public for _, public, _ in run_together(play, NAMES, LEAKS)} != {public for _, public, _ in seen}


@pytest.mark.parametrize("planted", ["open", "sum", "tell", "wide"])
def test_what_is_not_declared_is_refused_before_anything_is_sent(planted: str) -> None:
    sent = []

    def play(session: Session, rank: int) -> None:
        x = session.share(np.array([7]) if rank == 0 else None, 0, (1,), "x")
        before = session._channel.messages
        try:
            if planted == "open":
                session.open(x, "distance of each row")
            elif planted == "sum":
                session.sum(np.array([1]), "result")  # declared as opened, not as a sum
            elif planted == "tell":
                session.broadcast(b"", 0, "total", 1)
            else:
                session.open(x, "own", to=(0, 1))
        finally:
            sent.append(session._channel.messages - before)

    with pytest.raises(PrivacyRefusal):
        run_together(play, NAMES, LEAKS)
    assert set(sent) == {0}


def test_all_parties_write_the_same_transcript_and_no_value_is_in_it() -> None:
    def play(session: Session, rank: int) -> str:
        session.phase("round 1")
        x = session.share(np.array([123456789]) if rank == 1 else None, 1, (1,), "x")
        session.open(session.argmin(session.arrange(x, (1, 1))), "own", to=(1,))
        session.sum(np.array([987654321]), "total")
        return session.transcript.to_json_lines()

    texts = run_together(play, NAMES, LEAKS)
    assert len(set(texts)) == 1
    assert "123456789" not in texts[0]
    assert str(4 * 987654321) not in texts[0]
    assert [line.count("round 1") for line in texts[0].splitlines()] == [1] * 4


def test_each_share_alone_is_uniform() -> None:
    words = []
    for _ in range(2):

        def play(session: Session, rank: int) -> np.ndarray | None:
            x = session.share(np.full(4096, 5) if rank == 1 else None, 1, (4096,), "x")
            return x._words

        words.append(run_together(play, NAMES[:3], LEAKS))
    for first, second in zip(*words, strict=True):
        if first is None:
            continue
        assert (first != second).all()
        for share in (first, second):
            counts = np.bincount((share & np.uint64(255)).astype(np.int64), minlength=256)
            assert ((counts - 16.0) ** 2 / 16.0).sum() < 420  # chi-square of 255 degrees: below once in 10^9
    assert words[0][1] is None


def test_a_party_that_fails_is_named_to_all_others() -> None:
    def play(session: Session, rank: int) -> None:
        if rank == 2:
            raise PartyError("no more paper")
        x = session.share(np.array([7]) if rank == 0 else None, 0, (1,), "x")
        session.broadcast(b"" if rank == 2 else None, 2, "word", 1)
        session.open(x, "result")

    with pytest.raises(PartyError, match="no more paper"):
        run_together(play, NAMES, LEAKS)


def test_no_session_or_share_shows_numbers() -> None:
    session = plain_sessions(NAMES, LEAKS)[0][0]
    handle = session.share(np.array([424242]), 0, (1,), "x")
    assert "424242" not in repr(handle) + repr(session) + repr(session.transcript)


def test_what_is_sent_for_a_secure_sum_is_masked_afresh_every_time() -> None:
    """The same numbers, summed again and again: no message of a single owner comes twice, or is the numbers."""
    own = np.arange(64)
    sent: list[bytes] = []

    def play(session: Session, rank: int) -> None:
        channel = session._channel
        send = channel.send

        def watch(to: int, kind: str, payload: bytes) -> None:
            if rank and kind.endswith(":sum"):
                sent.append(payload)
            send(to, kind, payload)

        channel.send = watch  # type: ignore[method-assign]
        for _ in range(3):
            session.sum(own, "total")

    run_together(play, NAMES, LEAKS)
    run_together(play, NAMES, LEAKS)
    words = np.array([np.frombuffer(payload, dtype=np.uint64) for payload in (*sent, own.tobytes())])
    assert len(words) == 2 * 3 * 3 + 1
    for column in words.T:  # equal words by chance: once in 10^16 or so
        assert len(set(column.tolist())) == len(words)


@pytest.mark.parametrize("kind", [":share", ":secret", "secret"])
def test_a_secret_of_another_length_is_refused_and_grows_no_share(kind: str) -> None:
    def play(session: Session, rank: int) -> None:
        channel = session._channel
        send = channel.send

        def damage(to: int, told: str, payload: bytes) -> None:
            garbled = rank == 0 and (told == kind or (kind.startswith(":") and told.endswith(kind)))
            send(to, told, payload[:7] if garbled else payload)

        channel.send = damage  # type: ignore[method-assign, assignment]
        session.secret("common")
        session.share(np.array([7]) if rank == 0 else None, 0, (1,), "x")
        session.sum(np.array([rank]), "total")

    with pytest.raises(PartyError, match="'a' sent 7 bytes instead of a secret"):
        run_together(play, NAMES, LEAKS)
