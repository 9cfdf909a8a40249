# ---
# jupyter:
#   jupytext:
#     text_representation: {extension: .py, format_name: percent}
#   kernelspec: {display_name: Python 3, language: python, name: python3}
# ---

# %% [markdown]
# # Use against leak: find the release that meets a policy
# `tune` tries methods and sizes on your table, attacks what comes out, and judges it. The policy comes first: what
# must be met is settled before anything is looked at.

# %%
import numpy as np
import pyarrow as pa

import sfumato as sf

rng = np.random.default_rng(7)
people = 6_000
age = rng.integers(18, 90, people)
income = rng.lognormal(10, 0.5, people).round(-2)
table = pa.table(
    {
        "age": age,
        "town": rng.choice(["Ulm", "Bari", "Lodz", "Oslo"], people),
        "income": income,
        "debts": (income * rng.beta(1, 4, people)).round(-1),
        "owns": rng.random(people) < 1 / (1 + np.exp(-(age - 50) / 10 - (np.log(income) - 10))),
    }
)

# %%
policy = sf.Policy(
    "colleagues under contract",
    limits={"linkage-excess": 0.15, "attribute-excess": 0.15, "singling-out-excess": 0.15, "membership-auc": 0.70},
    require={"control": True, "min_group_size": 10},
)

# %% [markdown]
# ## Search
# It ends by the time limit with what was measured. Every point of the frontier was attacked; the recommended one was
# confirmed on people whom the search had not seen.

# %%
tuning = sf.tune(table, target="owns", policy=policy, time_limit=90)
tuning

# %% [markdown]
# ## What was found
# Where nothing qualifies, `best` is None and `nearest` says what comes nearest, and why it fails.

# %%
found = tuning.to_json()
found["command"] or found["nearest"]["reason"]
