"""docs/what-breaks.md: its runs, made again, give the curves that it shows."""

import json

import numpy as np
import pytest

from evidence import FOLDER, PAGE, Laboratory
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


@pytest.mark.xdist_group("evidence")
def test_the_runs_give_the_same_curves_again(title, laboratory):
    shown = SECTIONS[title]
    committed = json.loads((FOLDER / f"{shown.slug}.json").read_text(encoding="utf-8"))
    for label, run in laboratory.curves(shown).items():
        assert run.keys() == committed[label].keys()
        for name, curve in run.items():
            before = committed[label][name]
            assert [step for step, _ in curve] == [step for step, _ in before]
            new, old = (np.array([value for _, value in each], dtype=float) for each in (curve, before))
            spread = np.nanmax(old) - np.nanmin(old) or abs(old[0])
            assert np.nanmean(np.abs(new - old)) <= TOLERANCE * spread, (label, name)


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
