"""Every finding of a measure is sound, or says why it was not run: on the fixed cases and on awkward tables."""

from __future__ import annotations

import pytest

from sfumato.assess.algebra import Measure
from sfumato.assess.attacks.rare_combinations import UNIQUE_VALUES, WHOLE_ROWS
from sfumato.assess.risk.closest import NEIGHBOUR_RATIO
from sfumato.assess.risk.groups import CONDITIONING, DIVERSITY
from sfumato.assess.risk.uncertainty import INTERVAL, UNCERTAINTY
from sfumato.assess.risk.uniqueness import RAREST_CATEGORY, UNIQUENESS
from sfumato.assess.utility.distortion import PERTURBATION, SECURITY
from tests.assess.cases import CASES
from tests.assess.privacy_studies import AWKWARD, awkward, case, check_sound

MEASURES = (
    *(RAREST_CATEGORY, UNIQUENESS, UNIQUE_VALUES, WHOLE_ROWS, CONDITIONING, DIVERSITY),
    *(INTERVAL, UNCERTAINTY, PERTURBATION, SECURITY, NEIGHBOUR_RATIO),
)


@pytest.mark.parametrize("name", [*CASES, *AWKWARD])
@pytest.mark.parametrize("measure", MEASURES, ids=lambda measure: measure.name)
def test_every_finding_of_a_fixed_case_and_of_an_awkward_table_is_sound(measure: Measure, name: str) -> None:
    check_sound(measure, case(name) if name in CASES else awkward(name))
