"""docs/what-breaks.md: its runs, made again, give the curves that it shows."""

import json

import numpy as np
import pytest

from evidence import FOLDER, PAGE, Curve, Laboratory
from teeth.faults import FAULTS
from what_breaks import FAULTS_SHOWN, LESSONS, NOT_SHOWN

SECTIONS = {shown.title: shown for shown in [*LESSONS, *FAULTS_SHOWN]}
TOLERANCE = 0.1
"""Of a curve's range, on the average over its points: other processors round otherwise, and training amplifies it."""


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    share, shares = metafunc.config.getoption("evidence")
    if "title" in metafunc.fixturenames:
        metafunc.parametrize("title", list(SECTIONS)[share - 1 :: shares])


@pytest.fixture(scope="module")
def laboratory(tmp_path_factory):
    laboratory = Laboratory(tmp_path_factory.mktemp("laboratory"))
    yield laboratory
    laboratory.warm.close()


def same_shape(curve: Curve, before: Curve, logarithmic: bool = False, breaks_off: bool = False) -> bool:
    """Whether a picture would show the same, with or without a logarithmic scale.

    A run that breaks off because its loss is not finite may do so a step earlier or later on another machine.
    """
    new, old = dict(curve), dict(before)
    steps = sorted(new.keys() & old.keys())
    if len(steps) < (1 - TOLERANCE if breaks_off else 1) * max(len(new), len(old)):
        return False
    new, old = (np.array([values[step] for step in steps], dtype=float) for values in (new, old))
    finite = np.isfinite(new) & np.isfinite(old)
    if not breaks_off and (np.isfinite(new) | np.isfinite(old) != finite).any():
        return False
    new, old = (np.log10(each[finite]) if logarithmic else each[finite] for each in (new, old))
    spread = np.ptp(old) or abs(old[0])
    return bool(np.mean(np.abs(new - old)) <= TOLERANCE * spread)


@pytest.mark.xdist_group("evidence")
def test_the_runs_give_the_same_curves_again(title, laboratory):
    shown = SECTIONS[title]
    committed = json.loads((FOLDER / f"{shown.slug}.json").read_text(encoding="utf-8"))
    for label, run in laboratory.curves(shown).items():
        assert run.keys() == committed[label].keys()
        for name, curve in run.items():
            before = [(step, value) for step, value in committed[label][name]]
            breaks_off = shown.runs[label].status != 0
            assert same_shape(curve, before, name in shown.logarithmic, breaks_off), (label, name)


DECADES = [(step, 10.0**-step) for step in range(10)]


def test_another_curve_is_noticed():
    line = [(step, float(step)) for step in range(10)]
    assert same_shape(line, line)
    assert not same_shape([(step, 1.3 * value) for step, value in line], line)
    assert not same_shape(line[:-1], line)
    assert not same_shape([(step + 1, value) for step, value in line], line)


def test_another_curve_is_noticed_where_the_picture_is_logarithmic():
    early = [(step, value if step < 2 else 1e-2) for step, value in DECADES]
    assert same_shape(early, DECADES)
    assert not same_shape(early, DECADES, logarithmic=True)
    assert same_shape([(step, 1.5 * value) for step, value in DECADES], DECADES, logarithmic=True)


def test_a_number_that_is_not_finite_must_be_so_again_unless_it_ends_the_run():
    ended = [*DECADES, (10, None)]
    assert same_shape(ended, ended)
    earlier = [*DECADES[:-1], (9, None)]
    assert not same_shape(earlier, ended)
    assert not same_shape(earlier, DECADES)
    assert same_shape(earlier, ended, breaks_off=True)
    assert not same_shape(DECADES[:5], ended, breaks_off=True)
    assert not same_shape([(step, 1.0) for step, _ in DECADES], ended, logarithmic=True, breaks_off=True)


def test_the_page_has_every_section_with_its_picture():
    page = PAGE.read_text(encoding="utf-8")
    for title, shown in SECTIONS.items():
        assert f"### {title}\n" in page
        assert f"(what-breaks/{shown.slug}.svg)" in page
    assert {file.stem for file in FOLDER.iterdir()} == {shown.slug for shown in SECTIONS.values()}


def test_every_fault_is_shown_or_named():
    shown = {run.fault for section in SECTIONS.values() for run in section.runs.values()} - {""}
    unseen = {name for names in NOT_SHOWN.values() for name in names}
    assert shown.isdisjoint(unseen)
    assert {fault.name for fault in FAULTS} == shown | unseen
