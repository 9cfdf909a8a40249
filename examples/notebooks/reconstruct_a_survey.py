# ---
# jupyter:
#   jupytext:
#     text_representation: {extension: .py, format_name: percent}
#   kernelspec: {display_name: Python 3, language: python, name: python3}
# ---

# %% [markdown]
# # A survey of randomized answers, reconstructed
# Everybody randomizes their own answer before it is sent. Nobody learns what a single person answered, and yet the
# distribution comes back, with bands.

# %%
import numpy as np
import pyarrow as pa

import sfumato as sf

spec = sf.NoiseSpec.from_toml("""
format = 1
domain = { kind = "labels", values = ["never", "sometimes", "often", "too much"] }
law = { name = "response", epsilon = 1.5 }
""")
print(spec.describe())

# %% [markdown]
# ## Ask 4,000 people
# Their true answers are made up here, so that we can see what comes back. Only `sent` ever leaves a person.

# %%
rng = np.random.default_rng(7)
shares = [0.25, 0.45, 0.2, 0.1]
truth = rng.choice(["never", "sometimes", "often", "too much"], 4_000, p=shares)
sent = pa.table({"drinks": spec.randomize(truth, rng)})
{"sent the truth": float(np.mean(np.asarray(sent["drinks"]) == truth))}

# %% [markdown]
# ## What one answer tells
# If it was 10 % likely that a person drinks too much, it is at most this likely after any answer.

# %%
told = sf.breach(spec, property="x == 'too much'", prior=np.array([0.3, 0.4, 0.2, 0.1])).to_json()
{name: told[name] for name in ("prior", "posterior", "gamma", "epsilon", "verdict")}

# %% [markdown]
# ## The distribution behind the answers
# *In brackets where the truth lies, 95 % of the time.* The naive count of what was sent is far off.

# %%
found = sf.reconstruct(sent, "drinks", spec)
print(found.describe())

# %%
naive = [float(np.mean(np.asarray(sent["drinks"]) == value)) for value in spec.domain.values]
{"true": shares, "counted": np.round(naive, 3).tolist(), "reconstructed": np.round(found.probability, 3).tolist()}
