"""The ledger: what was seen is listed, what was not declared is refused, even where the session let it through."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.core.errors import PrivacyRefusal
from sfumato.parties.ledger import ACTIONS, Leak, Transcript, check, draw_ledger
from sfumato.parties.session import Session
from tests.parties.together import run_together

NAMES = ("a", "b", "c")
LEAKS = {
    "clusters": Leak("clusters", "opened", "all", "the cluster of each row"),
    "own": Leak("own", "opened", "owner", "an owner's own rows"),
    "total": Leak("total", "sum", "all", "a sum"),
    "word": Leak("word", "told", "all", "a message", implied=True),
}
_SHOWN = ("opened", "sum", "told")


def a_run(session: Session, rank: int) -> Transcript:
    """Take a step of each kind."""
    for number in (1, 2):
        session.phase(f"round {number}")
        x = session.share(np.arange(6).reshape(3, 2) if rank == 1 else None, 1, (3, 2), "distances")
        session.open(session.argmin(x), "clusters")
    session.phase("end")
    session.open(x, "own", to=(2,))
    session.sum(np.array([rank]), "total")
    session.public_rng("order")
    return session.transcript


def test_rows_of_the_ledger_count_numbers_and_steps_for_each_audience() -> None:
    transcript = run_together(a_run, NAMES, LEAKS)[0]
    rows = {(row.action, row.label): row for row in draw_ledger(transcript, LEAKS).rows}
    clusters = rows["opened", "clusters"]
    assert (clusters.to, clusters.numbers, clusters.times) == (NAMES, 6, 2)
    assert (clusters.phases, clusters.clear, clusters.owner) == (("round 1", "round 2"), True, None)
    assert rows["opened", "own"].to == ("c",)
    assert (rows["sum", "total"].numbers, rows["sum", "total"].times) == (1, 1)
    shared = rows["shared", "distances"]
    assert (shared.clear, shared.to, shared.owner, shared.numbers) == (False, ("a", "c"), "b", 12)
    assert not rows["engine", "argmin"].clear
    assert rows["tossed", "order"].clear


def test_every_step_is_in_one_row_and_no_number_is_lost() -> None:
    transcript = run_together(a_run, NAMES, LEAKS)[1]
    rows = draw_ledger(transcript, LEAKS).rows
    assert sum(row.times for row in rows) == len(transcript)
    assert sum(row.numbers for row in rows) == sum(int(np.prod(entry.shape)) for entry in transcript.entries)


def test_what_was_declared_and_did_not_occur_is_listed_as_such() -> None:
    ledger = draw_ledger(run_together(a_run, NAMES, LEAKS)[0], LEAKS)
    assert [leak.label for leak in ledger.unused] == ["word"]
    assert json.loads(ledger.to_json())["declared_and_not_seen"][0]["label"] == "word"


def test_all_parties_draw_the_same_ledger_without_a_value_of_the_data() -> None:
    ledgers = [draw_ledger(transcript, LEAKS) for transcript in run_together(a_run, NAMES, LEAKS)]
    assert len({ledger.to_json() for ledger in ledgers}) == 1
    document = json.loads(ledgers[0].to_json())
    assert {key for row in document["seen"] for key in row} == {
        "label",
        "what",
        "action",
        "clear",
        "to",
        "owner",
        "numbers",
        "times",
        "phases",
        "implied",
    }


def test_the_table_for_people_names_who_saw_what_and_what_it_means() -> None:
    lines = draw_ledger(run_together(a_run, NAMES, LEAKS)[0], LEAKS).to_table().splitlines()
    assert lines[0].split() == ["who", "saw", "how", "whose", "numbers", "times", "when"]
    assert "round 1 to 2" in next(line for line in lines if "clusters" in line)
    assert "clusters: the cluster of each row" in lines
    assert any("as a share" in line and "distances" in line for line in lines)


def test_a_protocol_that_keeps_to_what_it_declares_passes_the_second_look() -> None:
    for transcript in run_together(a_run, NAMES, LEAKS):
        check(transcript, LEAKS)


def test_a_protocol_that_opens_distances_is_refused_at_once_and_at_the_second_look() -> None:
    def play(session: Session, rank: int) -> Transcript:
        x = session.share(np.arange(6) if rank == 1 else None, 1, (6,), "distances")
        session.open(x, "distances")
        return session.transcript

    with pytest.raises(PrivacyRefusal, match="does not declare"):
        run_together(play, NAMES, LEAKS)
    careless = {**LEAKS, "distances": Leak("distances", "opened", "all", "all distances")}  # of a session, not ours
    for transcript in run_together(play, NAMES, careless):
        with pytest.raises(
            PrivacyRefusal, match=r"'distances' .opened. to 3 parties, and the protocol does not declare"
        ):
            check(transcript, LEAKS)


@pytest.mark.parametrize(
    ("action", "label", "to", "words"),
    [
        ("opened", "rows", NAMES, "does not declare"),
        ("opened", "rows", ("a",), "does not declare"),
        ("sum", "clusters", NAMES, "does not declare"),
        ("told", "total", NAMES, "does not declare"),
        ("opened", "own", ("a", "b"), "declares one"),
        ("shared", "distances", ("a",), "one party alone"),
        ("engine", "argmin", ("c",), "one party alone"),
        ("whispered", "clusters", NAMES, "no word for"),
    ],
)
def test_a_step_that_was_planted_into_the_transcript_is_refused(
    action: str, label: str, to: tuple[str, ...], words: str
) -> None:
    transcript = run_together(a_run, NAMES, LEAKS)[0]
    transcript.add("round 2", action, label, (3,), to)
    with pytest.raises(PrivacyRefusal, match=words):
        check(transcript, LEAKS)


@given(
    st.lists(
        st.tuples(
            st.sampled_from(ACTIONS), st.sampled_from(sorted(LEAKS)), st.sets(st.sampled_from(NAMES), min_size=1)
        ),
        max_size=6,
    )
)
def test_the_second_look_passes_exactly_what_is_declared(steps: list[tuple[str, str, set[str]]]) -> None:
    transcript = Transcript()
    for action, label, to in steps:
        transcript.add("start", action, label, (1,), tuple(sorted(to)))
    declared = all(
        (LEAKS[label].action == action and (LEAKS[label].to == "all" or len(to) == 1))
        if action in _SHOWN
        else action == "tossed" or len(to) >= 2
        for action, label, to in steps
    )
    if declared:
        check(transcript, LEAKS)
    else:
        with pytest.raises(PrivacyRefusal):
            check(transcript, LEAKS)
