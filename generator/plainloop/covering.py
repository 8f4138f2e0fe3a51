"""Few projects that between them hold every pair of values: what the tests generate."""

from collections.abc import Sequence
from itertools import combinations
from typing import Any

from covertable import make

from plainloop.space import NOT_ASKED, depends_on, keys, valid, values


def _together(names: tuple[str, ...]) -> dict[str, Any]:
    """The constraint, in the library's terms, that the values of these questions go together."""
    allowed = {tuple(combination[name] for name in names) for combination in valid(*names)}
    return {"operator": "fn", "requires": names, "evaluate": lambda row: tuple(row[name] for name in names) in allowed}


def covering_array(strength: int = 2, names: Sequence[str] = ()) -> list[dict[str, Any]]:
    """Answers to as few projects as a greedy search finds; the same list every time.

    Every `strength` values that can go together do so in one of them. `names`: the questions, all by default.
    """
    names = names or keys()
    dependent = [(*depends_on(key), key) for key in names if depends_on(key)]
    # The library looks ahead one value at a time, so it is told which pairs go together too.
    groups = dict.fromkeys([*(pair for group in dependent for pair in combinations(group, 2)), *dependent])
    rows = make({key: values(key) for key in names}, strength=strength, constraints=[_together(g) for g in groups])
    return [{key: row[key] for key in names if row[key] is not NOT_ASKED} for row in rows]
