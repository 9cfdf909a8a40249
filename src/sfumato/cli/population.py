"""A made-up population of patients: numbers, categories, dates, missing cells, and a rule between two columns."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["population"]

_TOWNS = ("Aldbrook", "Bexmouth", "Calder", "Dunholm", "Eastry", "Fenwick", "Garth", "Holm")
_WARDS = ("medicine", "surgery", "cardiology", "geriatrics", "obstetrics")
_CAUSES = ("heart", "lung", "joint", "injury", "infection", "metabolic", "birth", "other")


def population(count: int = 16_000, seed: int = 20_261) -> pa.Table:
    """Table of made-up patients, one stay in hospital each; nobody in it exists.

    Examples
    --------
    >>> population(5).column_names[:4]
    ['patient', 'age', 'sex', 'town']
    """
    import numpy as np
    import pyarrow as pa

    rng = np.random.default_rng(seed)
    age = np.clip(np.rint(rng.gamma(9.0, 6.4, count)), 18, 99).astype(np.int64)
    woman = rng.random(count) < 0.53
    town = rng.choice(len(_TOWNS), count, p=[0.27, 0.2, 0.15, 0.12, 0.1, 0.08, 0.05, 0.03])
    smoker = rng.random(count) < 0.32 - 0.002 * (age - 18) + 0.05 * (town == 3)
    mass = rng.normal(25.5 + 0.03 * (age - 50) - 1.2 * smoker, 4.2, count).clip(15, 52)
    pressure = rng.normal(104 + 0.42 * age + 0.7 * (mass - 25) + 4 * smoker, 12.5, count)
    sugar = rng.normal(4.7 + 0.012 * age + 0.06 * (mass - 25), 0.55, count) + (rng.random(count) < 0.09) * rng.gamma(
        2.0, 1.6, count
    )
    leaning = np.stack(
        [
            0.05 * (age - 60) + 0.03 * (pressure - 130),
            1.3 * smoker + 0.01 * (age - 50),
            0.03 * (age - 55) + 0.08 * (mass - 26),
            -0.03 * (age - 40),
            np.full(count, -0.1),
            0.9 * (sugar - 5.6),
            np.where(woman & (age < 46), 1.4, -9.0),
            np.full(count, 0.1),
        ],
        axis=1,
    )
    cause = np.argmax(leaning + rng.gumbel(size=leaning.shape), axis=1)
    usual = np.array([2, 0, 1, 1, 0, 0, 4, 0])[cause]
    ward = np.where(rng.random(count) < 0.82, usual, rng.choice(3, count))
    ward = np.where((age > 79) & (ward != 4) & (rng.random(count) < 0.5), 3, ward)
    stay = np.minimum(rng.poisson(rng.gamma(2.2, 1.4 + 0.02 * age + 1.1 * (cause == 0) + 0.7 * (ward == 3))), 90)
    admitted = np.datetime64("2024-01-01") + rng.integers(0, 731, count)
    paid = np.where(rng.random(count) < 0.62, 0.0, np.round(rng.gamma(1.5, 40.0, count) * (1 + stay / 8), 2))
    danger = -4.6 + 0.035 * (age - 50) + 0.09 * stay + 0.55 * smoker + 0.35 * (sugar - 5.5) + 0.6 * (cause == 1)
    back = rng.random(count) < 1 / (1 + np.exp(-danger - 1.6))

    def gaps(share: float) -> object:
        return rng.random(count) < share

    return pa.table(
        {
            "patient": [f"P{number:06d}" for number in rng.choice(900_000, count, replace=False) + 100_000],
            "age": age,
            "sex": np.where(woman, "f", "m"),
            "town": np.array(_TOWNS)[town],
            "admitted": pa.array(admitted.astype("datetime64[D]")),
            "discharged": pa.array((admitted + stay).astype("datetime64[D]")),
            "ward": np.array(_WARDS)[ward],
            "cause": np.array(_CAUSES)[cause],
            "mass_index": pa.array(np.round(mass, 1), mask=gaps(0.06)),
            "pressure": np.rint(pressure).astype(np.int64),
            "sugar": pa.array(np.round(sugar.clip(2.5), 1), mask=gaps(0.12)),
            "smoker": pa.array(smoker, mask=gaps(0.04)),
            "paid": paid,
            "back_within_90_days": np.where(back, "yes", "no"),
        }
    )
