"""Draw the README's picture: records and the rows that stand in for them."""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure
from matplotlib.patches import Ellipse

from sfumato.sklearn import Condenser


def main() -> None:
    """Condense two measurements of 400 people into groups of ten and draw both sides."""
    rng = np.random.default_rng(11)
    angle = rng.uniform(0.2, 2.9, 260)
    arc = np.c_[np.cos(angle), np.sin(angle)] * 2.2 + rng.normal(0, 0.16, (260, 2))
    blob = rng.multivariate_normal([0.0, 0.2], [[0.22, 0.1], [0.1, 0.12]], 140)
    people = np.r_[arc, blob]
    condenser = Condenser(k=10, random_state=4).fit(people)
    released = condenser.sample()
    mpl.rcParams.update({"svg.hashsalt": "sfumato", "svg.fonttype": "none", "font.size": 9})
    figure = Figure(figsize=(8, 3.1), layout="constrained")
    left, right = figure.subplots(1, 2, sharex=True, sharey=True)
    left.scatter(*people.T, s=7, color="#1f4e79", linewidths=0)
    left.set_title("400 people, and the groups they are in")
    for mean, covariance in zip(condenser.groups_.mean, condenser.groups_.covariance, strict=True):
        values, vectors = np.linalg.eigh(covariance)
        width, height = 2.0 * np.sqrt(3.0 * np.maximum(values, 0.0))
        turn = float(np.degrees(np.arctan2(vectors[1, 0], vectors[0, 0])))
        left.add_patch(Ellipse(mean, width, height, angle=turn, fill=False, color="#b5651d", linewidth=0.8))
    right.scatter(*released.T, s=7, color="#8c3b12", linewidths=0)
    right.set_title("400 rows drawn from the groups' statistics")
    for axes in (left, right):
        axes.set_aspect("equal")
        axes.set_xticks([])
        axes.set_yticks([])
    figure.savefig(Path(__file__).parent / "picture.svg", metadata={"Date": None})


if __name__ == "__main__":
    main()
