"""A party that lies: values told differently, numbers that cannot be, components that their statistics do not allow."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from sfumato.methods.perturb.laplace_pca import LaplacePCA, component_places
from sfumato.parties import vertical, vertical_noise
from sfumato.parties.channel import LocalChannel, PartyError
from sfumato.parties.groupwise import Statistics, broadcast_numbers, check_component_ranges
from sfumato.parties.ledger import Leak
from sfumato.parties.plan import JointPlan
from sfumato.parties.session import Session, plain_sessions, run_in_threads
from tests.parties.owners import number_columns, random_numbers

NAMES = ("ann", "bob", "cat")
LEAKS = {leak.label: leak for leak in (Leak.message("numbers", "numbers"), Leak.opened("number", "a number"))}


def errors_of(play: Callable[[Session], object], lie: Callable[[LocalChannel], None]) -> dict[int, str]:
    """What each party says that gives up; the second one is the liar."""
    sessions = plain_sessions(NAMES, LEAKS)
    lie(sessions[1][1])
    found: dict[int, str] = {}

    def one(rank: int) -> None:
        try:
            play(sessions[rank][0])
        except PartyError as error:
            found[rank] = str(error)

    run_in_threads(one, sessions)
    return found


def altered_for(to: int, ending: str, change: Callable[[bytes], bytes]) -> Callable[[LocalChannel], None]:
    """Let a channel change what it sends to one party."""

    def lie(channel: LocalChannel) -> None:
        honest = channel.send

        def send(receiver: int, kind: str, payload: bytes) -> None:
            honest(receiver, kind, change(payload) if receiver == to and kind.endswith(ending) else payload)

        channel.send = send  # type: ignore[method-assign, assignment]

    return lie


def told(session: Session) -> None:
    values = np.arange(4.0) if session.rank == 1 else None
    broadcast_numbers(session, values, 1, "numbers", (4,), "<f8", within=10.0)
    session.compare_views()


def test_honest_parties_have_the_same_views() -> None:
    sessions = plain_sessions(NAMES, LEAKS)
    run_in_threads(lambda rank: told(sessions[rank][0]), sessions)


def test_who_tells_two_parties_different_values_is_named_by_both() -> None:
    errors = errors_of(told, altered_for(2, ":tell", lambda payload: np.arange(1.0, 5.0).tobytes()))
    assert all("party 'bob' sent other values" in errors[rank] for rank in (0, 2))


def test_who_sends_another_digest_than_its_own_is_named() -> None:
    errors = errors_of(told, altered_for(0, "views", lambda payload: bytes(len(payload))))
    assert "'bob'" in errors[0]


@pytest.mark.parametrize("number", [np.nan, np.inf, 1e300, -11.0])
def test_who_sends_a_number_that_cannot_be_is_named_by_every_other_party(number: float) -> None:
    def play(session: Session) -> None:
        values = np.array([0.0, number]) if session.rank == 1 else None
        broadcast_numbers(session, values, 1, "numbers", (2,), "<f8", within=10.0)

    errors = errors_of(play, lambda channel: None)
    assert all("party 'bob' sent wrong ones" in errors[rank] for rank in (0, 2))


def test_ranges_that_the_covariance_does_not_allow_are_refused_and_all_others_are_not() -> None:
    rng = np.random.default_rng(3)
    values = rng.standard_normal((40, 3))
    centred = values - values.mean(axis=0)
    statistics = Statistics(np.array([40]), values.mean(axis=0)[None], (centred.T @ centred / 40)[None])
    axes = np.linalg.eigh(statistics.covariance)[1]
    places = np.rint(centred @ axes[0] / 1e-3).astype(np.int64)
    ranges = (places.max(axis=0) - places.min(axis=0))[None]
    np.testing.assert_array_equal(check_component_ranges(ranges, statistics, axes, 1e-3), ranges)
    with pytest.raises(PartyError, match="beyond what they can be"):
        check_component_ranges(ranges << 20, statistics, axes, 1e-3)


def _doubled(numbers: Any, wide: int) -> Any:
    return np.hstack([numbers[:, :wide], 2 * numbers[:, wide:]])


def _moved(numbers: Any, wide: int) -> Any:
    return np.hstack([numbers[:, :wide] + (1 << 50), numbers[:, wide:]])


def _negative(numbers: Any, wide: int) -> Any:
    return np.hstack([numbers[:, :wide], -numbers[:, wide:]])


def _correlated(numbers: Any, wide: int) -> Any:
    changed = numbers.copy()
    changed[:, wide + 1] = 2 * changed[:, wide]
    return changed


@pytest.mark.parametrize("lie", [_doubled, _moved, _negative, _correlated])
def test_who_sends_statistics_that_no_columns_have_is_named_by_every_other_party(
    lie: Callable[[Any, int], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    values = random_numbers(np.random.default_rng(6), 90, 6)
    plan = JointPlan("vertical", NAMES, LaplacePCA(k=30), rounds=2)
    errors = dict[int, str]()

    def told(session: Session, numbers: Any, owner: int, label: str, *shape: Any, **bounds: Any) -> Any:
        if numbers is not None and owner == 1 and label == "statistics of own columns":
            numbers = lie(numbers, 2)
        return broadcast_numbers(session, numbers, owner, label, *shape, **bounds)

    monkeypatch.setattr(vertical_noise, "broadcast_numbers", told)
    sessions = plain_sessions(NAMES, vertical.LEAKS)

    def one(rank: int) -> None:
        own = slice(2 * rank, 2 * rank + 2)
        try:
            vertical.sanitize_vertical(sessions[rank][0], plan, values[:, own], number_columns(2, 2 * rank))
        except PartyError as error:
            errors[rank] = str(error)

    run_in_threads(one, sessions)
    assert all("party 'bob' sent wrong ones" in errors[rank] for rank in (0, 2)), errors


def test_an_owner_of_columns_that_multiplies_its_components_ends_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(5)
    values = random_numbers(rng, 60, 4)
    plan = JointPlan("vertical", NAMES[:2], LaplacePCA(k=20))

    def played(session: Session, rank: int) -> Any:
        own = slice(2 * rank, 2 * rank + 2)
        return vertical.sanitize_vertical(session, plan, values[:, own], number_columns(2, 2 * rank))

    sessions = plain_sessions(NAMES[:2], vertical.LEAKS)
    run_in_threads(lambda rank: played(sessions[rank][0], rank), sessions)
    monkeypatch.setattr(
        vertical_noise, "component_places", lambda projected, step: component_places(projected, step) << 20
    )
    sessions = plain_sessions(NAMES[:2], vertical.LEAKS)
    with pytest.raises(PartyError, match="'ranges' are beyond what they can be"):
        run_in_threads(lambda rank: played(sessions[rank][0], rank), sessions)
