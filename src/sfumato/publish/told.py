"""What a run is told: a mechanism, a method with its parameters, or the recipe of an earlier run."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sfumato.core.errors import LevelError, OptionError
from sfumato.engines.outcome import Recipe
from sfumato.engines.plan import Plan
from sfumato.mechanisms.chain.mechanism import Chain
from sfumato.mechanisms.geometry.key import Key
from sfumato.mechanisms.methods import all_parameters, make_mechanism, usual_k, usual_method
from sfumato.mechanisms.protocol import Mechanism
from sfumato.publish.judge import policy_of
from sfumato.publish.policy import Policy
from sfumato.tables.cells import plain
from sfumato.tables.persons import persons_of_table
from sfumato.tables.recoding import count_holders
from sfumato.tables.schema import Field, Kind

__all__ = ["as_told", "for_few_people", "load_recipe", "method_of"]

_LEVELLED = ("chain", "condense", "condense-paper")
"""Methods whose floor of all levels is lower where something says what each record asks for."""
_COLUMNS = {"identifiers": "identifier", "person": "person", "weight": "weight", "public": "public"}


def as_told(
    mechanism: Mechanism | None,
    method: str | None,
    parameters: Mapping[str, Any],
    told: dict[str, Any],
    recipe: Recipe | str | Path | None,
    policy: Policy | str | Path | None,
) -> tuple[Mechanism, dict[str, Any], Policy | str | Path | None]:
    """Mechanism, choices and policy of a run: a recipe's, where there is one, and those that may be told beside it."""
    if recipe is None:
        return _chosen(mechanism, method, parameters, told), told, policy
    recipe = load_recipe(recipe, {**parameters, **told, "mechanism": mechanism, "method": method})
    for name in ("schema", "level", "strata", "holdout", "seed", "no_rules", "rare", "rows", "where", "keep_persons"):
        said = getattr(recipe, name)
        if name in told:
            told[name] = said if told[name] is None else told[name]
        elif said not in (None, False):
            raise OptionError(f"the recipe says {name!r}, which needs all rows at once; a file goes in batches")
    mechanism = make_mechanism(recipe.method, {**recipe.parameters, **_with_key(parameters)})
    return mechanism, told, policy_of(recipe) if policy is None else policy


def method_of(parameters: Mapping[str, Any], rows: int) -> str:
    """Method where none is named, of a table of so many rows or more."""
    return usual_method([name for name, value in parameters.items() if value is not None], rows)


def for_few_people(plan: Plan, arrow: pa.Table) -> Plan:
    """Plan of a chain of which nobody said k, with what is usual for so many people as will be inside.

    It stays as it is where a class of the target would be rare then, or a leaf be larger than was told.
    """
    chain, share = plan.mechanism, 1.0 - plan.holdout if isinstance(plan.holdout, float) else 1.0
    assert isinstance(chain, Chain)
    persons = persons_of_table(arrow, plan.schema)
    people = arrow.num_rows if persons is None else int(persons.max(initial=-1)) + 1
    k = max(chain.k, min(usual_k(int(share * people)), chain.leaf))
    if k == chain.k:
        return plan
    target = plan.schema.target
    if target is not None and target.kind not in (Kind.CONTINUOUS, Kind.INTEGER, Kind.DATE):
        smallest = _smallest_class(arrow, target, persons)
        if share * smallest - 3 * math.sqrt(share * (1.0 - share) * smallest) < k:
            return plan
    return dataclasses.replace(plan, mechanism=dataclasses.replace(chain, k=k))


def _smallest_class(arrow: pa.Table, target: Field, persons: np.ndarray[Any, np.dtype[np.int64]] | None) -> int:
    """Persons of the smallest class of the target."""
    classes = pc.dictionary_encode(plain(arrow.column(target.name)))
    codes = pc.fill_null(classes.indices, -1).to_numpy(zero_copy_only=False).astype(np.int64)
    return int(count_holders(codes, len(classes.dictionary), persons).min(initial=arrow.num_rows))


def _chosen(
    mechanism: Mechanism | None, method: str | None, parameters: Mapping[str, Any], told: Mapping[str, Any]
) -> Mechanism:
    """Mechanism that was given, or the one of the method's name and parameters."""
    if mechanism is not None:
        if method is not None or parameters:
            name = next(iter(parameters), "method")
            raise OptionError(f"a mechanism was given, which says what {name!r} says; leave one of them out")
        return mechanism
    assert method is not None
    settled = _with_key(parameters)
    if method in _LEVELLED and settled.get("k") is None:
        settled["k"] = _usual_k(told, allow_level_1=settled.get("allow_level_1") is True)
    if settled.get("k") == 1 and settled.get("allow_level_1") is None and "allow_level_1" in all_parameters():
        raise LevelError("k is 1, which is no protection; take --k 2 or more, or say --allow-level-1 as well")
    return make_mechanism(method, settled)


def _with_key(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Parameters that were told, a key read where its file was; a recipe holds none."""
    key = parameters.get("key")
    return {**parameters, "key": Key.load(key)} if isinstance(key, str | Path) else dict(parameters)


def _usual_k(told: Mapping[str, Any], *, allow_level_1: bool) -> int:
    if told.get("level") is None and not (allow_level_1 and told["schema"] is not None):
        return 10
    return 1 if allow_level_1 else 2


def load_recipe(recipe: Recipe | str | Path, told: Mapping[str, Any]) -> Recipe:
    """Recipe that is to be run again, read once it is sure that nothing else says what it says."""
    for name in (
        "mechanism",
        "method",
        *all_parameters(),
        "level",
        "strata",
        "target",
        *_COLUMNS,
        "schema",
        "no_rules",
        "rare",
        "rows",
        "where",
        "keep_persons",
    ):
        if told.get(name) not in (None, (), []):
            option = _COLUMNS.get(name, name).replace("_", "-")
            raise OptionError(f"--recipe already says what --{option} says; edit the recipe or leave one out")
    return recipe if isinstance(recipe, Recipe) else Recipe.load(recipe)
