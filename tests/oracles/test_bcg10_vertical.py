"""The vertical protocol against the literal transcription of algorithm 2, lines 4 to 11 and 20 to 26 [BCG10]."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from numpy.typing import NDArray

from sfumato.core.randomness import Randomness
from sfumato.methods.perturb.laplace_pca import LaplacePCA
from sfumato.parties import vertical, vertical_noise
from sfumato.parties.groupwise import broadcast_axes, component_scales, draw_noise
from sfumato.parties.session import Session
from tests.examples import examples
from tests.oracles import bcg10, bcg10_vertical
from tests.parties.owners import joint_run, no_noise, random_numbers, split_numbers
from tests.parties.together import run_together

some_cases = examples(25, few=4)
seeds = st.integers(0, 2**32 - 1)
STEP = LaplacePCA.grid
CLEAR = 1e-5  # far more than fixed point rounds


@some_cases
@given(seeds, st.sampled_from([2, 3, 5]))
def test_clusters_and_groups_are_those_of_lines_4_to_11(seed: int, parties: int) -> None:
    rng = np.random.default_rng(seed)
    n, d, g = int(rng.integers(12, 40)), int(rng.integers(5, 8)), int(rng.integers(1, 5))
    values = random_numbers(rng, n, d)
    parts = split_numbers(values, parties)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(vertical_noise, "draw_noise", no_noise)
        run = joint_run(run_together, parts, LaplacePCA(groups=g), rounds=8)
    first = run.tossed("first centres").choice(n, g, replace=False).tolist()
    owners = [(part.values * np.sqrt(1.0 / d)).tolist() for part in parts]
    clusters, centres, clearest = bcg10_vertical.k_means(owners, first, 8)
    points = [tuple(Fraction(x) for table in owners for x in table[i]) for i in range(n)]
    middles = [tuple(Fraction(x) for c in centres for x in c[j]) for j in range(g)]
    for middle in middles:
        apart = np.sort([float(bcg10.squared(point, middle)) for point in points])
        clearest = min(clearest, float(np.diff(apart).min()))
    assume(clearest > CLEAR)
    literal = bcg10.groups_with_errata(
        points, [frozenset(i for i in range(n) if clusters[i] == j) for j in range(g)], middles
    )
    if g > 1:
        assert run.opened("clusters")[-1].tolist() == clusters
    assert run.result.sizes.tolist() == [len(group) for group in literal]
    order = [row for group in literal for row in sorted(group)]
    np.testing.assert_allclose(run.rows()[0], values[order], atol=(parties + 1) * d * STEP)


@some_cases
@given(seeds, st.sampled_from([2, 3, 4]))
def test_a_group_is_perturbed_as_lines_20_to_26_say(seed: int, parties: int) -> None:
    rng = np.random.default_rng(seed)
    d = int(rng.integers(parties, 6))
    n = int(rng.integers(d + 3, 20))
    parts = split_numbers(random_numbers(rng, n, d), parties)
    axes: list[NDArray[np.float64]] = []

    def remember(session: Session, *rest: object) -> NDArray[np.float64]:
        axes.append(broadcast_axes(session, *rest))  # type: ignore[arg-type]
        return axes[-1]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(vertical, "broadcast_axes", remember)
        run = joint_run(run_together, parts, LaplacePCA(groups=1, b=0.2), noise="split")
    ranges = run.opened("ranges")[0].reshape(1, d)
    r_1, r_2 = (
        draw_noise("geometric", component_scales(ranges, 0.2), run.result.sizes, private)
        for private in (Randomness(1).generator(f"noise on components, party {rank}") for rank in (0, parties - 1))
    )
    literal_ranges, literal = bcg10_vertical.perturb(
        [part.values.tolist() for part in parts],
        axes[0][0].tolist(),
        rng.normal(size=(n, d)).tolist(),
        (r_1 * STEP).tolist(),
        (r_2 * STEP).tolist(),
    )
    np.testing.assert_allclose(ranges[0] * STEP, literal_ranges, rtol=0, atol=parties * STEP)
    np.testing.assert_allclose(run.rows()[0], literal, rtol=0, atol=(parties + 1) * d * STEP)
