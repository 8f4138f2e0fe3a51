"""What a fault is, and the list of them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from teeth.code import Code

Facts = Mapping[str, Any]
"""Every answer of a project and what follows from them: what the templates see."""


def anywhere(_: Facts) -> bool:
    """A fault that every project can have."""
    return True


@dataclass(frozen=True)
class Fault:
    """A mistake that people make, as an edit of one file of a generated project."""

    name: str
    file: str
    edit: Callable[[Code, Facts], None]
    possible: Callable[[Facts], bool]
    caught_by: str
    """The test that is tried first, `test_step.py::test_the_order_of_a_step`; if it does not fail, all are run."""
    silent: bool
    """Whether train.py ends as if nothing were wrong."""

    def put_into(self, source: str, facts: Facts) -> str:
        """The source with the fault."""
        code = Code(source)
        self.edit(code, facts)
        return code.text


FAULTS: list[Fault] = []
"""In the order in which they are tried."""


def fault(
    name: str,
    caught_by: str,
    file: str = "train.py",
    possible: Callable[[Facts], bool] = anywhere,
    silent: bool = True,
) -> Callable[[Callable[[Code, Facts], None]], Callable[[Code, Facts], None]]:
    """Add the decorated edit to the list."""

    def add(edit: Callable[[Code, Facts], None]) -> Callable[[Code, Facts], None]:
        FAULTS.append(Fault(name, file, edit, possible, caught_by, silent))
        return edit

    return add
