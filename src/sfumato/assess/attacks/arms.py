"""How the success of an attack is told: three arms, each a share of attempts with its interval.

The attack itself is tried on people of the original, guessing goes without the released table (baseline), and the
control is the same attack on people held out of it. What the attack gets above its control is what being in the table
cost; what both get above guessing is what the table teaches about anybody.
"""

from __future__ import annotations

from dataclasses import dataclass

from sfumato.assess.findings import Direction, Family, Finding, Tries
from sfumato.assess.intervals import wilson

__all__ = ["NO_CONTROL", "Arm", "success"]

NO_CONTROL = " Control not run, because no rows were held out."
"""What follows the meaning of an attack that has none."""


@dataclass(frozen=True)
class Arm:
    """Successes out of attempts. What an attack gave up on counts as attempted."""

    hits: float
    attempts: int

    @property
    def share(self) -> float:
        """Successes a try."""
        return self.hits / self.attempts


def success(
    name: str, meaning: str, attack: Arm, *, guess: float | Arm, control: Arm | None, public: bool = True
) -> Finding:
    """State how often an attack succeeded, beside guessing and beside the same attack on people held out.

    In place of guessing stands what a release that knows nobody gets, where that was tried.

    Examples
    --------
    >>> finding = success("linkage", "How often.", Arm(30, 100), guess=0.01, control=Arm(2, 100))
    >>> finding.value, finding.control, finding.attempts
    (0.3, 0.02, 100)
    """
    return Finding(
        name,
        Family.ATTACK,
        attack.share,
        Direction.LOWER,
        (0.0, 1.0),
        meaning + ("" if control is not None else NO_CONTROL),
        interval=wilson(attack.hits, attack.attempts),
        baseline=guess.share if isinstance(guess, Arm) else guess,
        baseline_interval=wilson(guess.hits, guess.attempts) if isinstance(guess, Arm) else None,
        control=None if control is None else control.share,
        control_interval=None if control is None else wilson(control.hits, control.attempts),
        attempts=attack.attempts,
        public=public,
        unit="share",
        inside=Tries(attack.hits, attack.attempts),
        outside=None if control is None else Tries(control.hits, control.attempts),
    )
