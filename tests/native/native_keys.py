"""Key generators of the kernel tests and their vectors."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from indextables.native import fxhash64

Keys = NDArray[np.uint64]


def splitmix_keys(state: int, count: int) -> Keys:
    """``count`` distinct pseudo-random keys."""
    with np.errstate(over="ignore"):
        steps = np.arange(1, count + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        z = steps + np.uint64(state)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return z ^ (z >> np.uint64(31))


def recipe_keys(recipe: dict[str, Any]) -> Keys:
    """The keys that a vector's recipe describes."""
    kind, n = recipe["gen"], recipe.get("n", 0)
    if kind == "splitmix64":
        return splitmix_keys(recipe["state"], n)
    if kind == "splitmix64 reversed":
        return splitmix_keys(recipe["state"], n)[::-1]
    if kind.startswith("splitmix64 then first"):
        keys = splitmix_keys(recipe["state"], recipe["base_n"])
        return np.concatenate([keys, keys[: recipe["d"]]])
    if kind.startswith("sequence"):
        return np.arange(n, dtype=np.uint64)
    if kind == "explicit":
        return np.array([int(key) for key in recipe["keys"]], np.uint64)
    texts = recipe.get("strings") or [f"field{i % 5}:term{i}" for i in range(n)]
    return np.array([fxhash64(text) for text in texts], np.uint64)
