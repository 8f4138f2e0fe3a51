"""What test_teeth.py has found, as tables in Markdown."""

from collections.abc import Iterable

Caught = tuple[str, str, str]
"""A fault, the form of the project that it was put into, and the test of that project that failed."""


def by_fault(caught: Iterable[Caught]) -> list[str]:
    """Each fault, the tests that caught it, and in which forms."""
    rows: dict[tuple[str, str], list[str]] = {}
    for fault, form, test in caught:
        rows.setdefault((fault, test), []).append(form)
    lines = [f"| {fault} | {', '.join(forms)} | `{test}` |" for (fault, test), forms in rows.items()]
    return ["| fault | in | caught by |", "|---|---|---|", *lines]


def by_test(caught: Iterable[Caught]) -> list[str]:
    """Each test, and the faults that it caught, with the number of forms: a page."""
    rows: dict[str, dict[str, int]] = {}
    for fault, _, test in caught:
        faults = rows.setdefault(test.partition("::")[2], {})
        faults[fault] = faults.get(fault, 0) + 1
    return ["| test | the faults that it catches, and in how many forms |", "|---|---|"] + [
        f"| `{test}` | {'; '.join(f'{fault} ({forms})' for fault, forms in faults.items())} |"
        for test, faults in sorted(rows.items(), key=lambda row: -sum(row[1].values()))
    ]
