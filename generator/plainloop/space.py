"""Which values of the questions go together.

Nothing of it is stated here: it is read off the questionnaire, by asking it.
"""

from collections.abc import Iterator
from functools import cache
from itertools import combinations
from typing import Any

from jinja2 import meta

from plainloop.jinja import environment
from plainloop.questionnaire import Question, questionnaire, resolve

NOT_ASKED = None
"""Stands for the answer to a question that has no meaning for the other answers."""

Combination = dict[str, Any]
Pair = tuple[tuple[str, Any], tuple[str, Any]]


@cache
def keys() -> tuple[str, ...]:
    """The questions with a fixed set of values, in the order asked."""
    return tuple(
        name
        for name, question in questionnaire().items()
        if not question.computed and (question.choices or question.type == "bool")
    )


def _names(value: Any) -> set[str]:
    """The questions that a value of copier.yml reads."""
    if not isinstance(value, str):
        return set()
    return meta.find_undeclared_variables(environment().parse(value)) & questionnaire().keys()


@cache
def depends_on(name: str) -> tuple[str, ...]:
    """The answers that decide what a question offers, those that decide over these too, in the order asked."""
    question = questionnaire()[name]
    sources = [question.default] if question.computed else [question.choices, question.when, question.validator]
    names = set().union(*map(_names, sources)) - {name}
    names = names.union(*map(depends_on, names))
    return tuple(key for key in keys() if key in names)


def _values(question: Question, combination: Combination) -> list[Any]:
    """The values that a question takes after these answers."""
    context = resolve({name: value for name, value in combination.items() if value is not NOT_ASKED})
    if not question.is_asked(context):
        return [NOT_ASKED]
    if question.type == "bool" and not question.choices:
        return [False, True]
    return [choice.value for choice in question.offered(context) if not choice.refusal]


def _extend(names: list[str]) -> Iterator[Combination]:
    """Every valid combination of values of questions that depend on no others than these."""
    if not names:
        yield {}
        return
    *earlier, last = names
    for combination in _extend(earlier):
        for value in _values(questionnaire()[last], combination):
            yield {**combination, last: value}


@cache
def valid(*names: str) -> tuple[Combination, ...]:
    """Every valid combination of values of these questions and of all that they depend on."""
    needed = set(names).union(*map(depends_on, names))
    return tuple(_extend([key for key in keys() if key in needed]))


def values(name: str) -> list[Any]:
    """Every value that a question takes for some project."""
    return list(dict.fromkeys(combination[name] for combination in valid(name)))


def feasible_pairs() -> set[Pair]:
    """Every pair of values that occurs together in some project."""
    return {
        ((one, combination[one]), (other, combination[other]))
        for one, other in combinations(keys(), 2)
        for combination in valid(one, other)
    }
