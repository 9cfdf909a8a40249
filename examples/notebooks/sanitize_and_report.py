# ---
# jupyter:
#   jupytext:
#     text_representation: {extension: .py, format_name: percent}
#   kernelspec: {display_name: Python 3, language: python, name: python3}
# ---

# %% [markdown]
# # Sanitize a frame, and read its report
# A table of made-up patients becomes one that can be mined in its place. Everything shows itself: a schema, a
# release, a certificate, a report.

# %%
import numpy as np
import pyarrow as pa

import sfumato as sf

rng = np.random.default_rng(7)
people = 1_200
age = rng.integers(18, 90, people)
stay = rng.geometric(0.2, people)
table = pa.table(
    {
        "patient": [f"P{number:05d}" for number in range(people)],
        "age": age,
        "ward": rng.choice(["surgery", "medicine", "geriatrics"], people, p=[0.4, 0.4, 0.2]),
        "stay": stay,
        "cost": (300 + 5 * age + 450 * stay * rng.uniform(0.8, 1.2, people)).round(2),
        "back": rng.random(people) < 0.05 + 0.004 * age,
    }
)

# %% [markdown]
# ## What each column is, and what will happen to it
# `patient` differs in every row and will be dropped. Nothing is taken silently: the last column says why.

# %%
schema = sf.inspect(table, target="back")
schema

# %% [markdown]
# ## The release
# Every value is drawn from a group of at least 50 people with similar values. A third of the people are the control
# group: attacks on members are compared with attacks on people whose records were not used.

# %%
release = sf.sanitize(table, sf.Chain(leaf=50), schema=schema, holdout=0.33)
release

# %% [markdown]
# ## Claims, and claims that do not follow

# %%
release.certificate

# %% [markdown]
# ## What was measured
# The card at the top is the verdict. With a control group of 400 people, an excess of 5 % is hardly significant,
# and the verdict says that it *cannot tell*.

# %%
print(release.report.summary())

# %%
release.report

# %% [markdown]
# ## Keep it
# `release.save("out")` writes `out/release`, which leaves, and `out/owner`, which stays.
