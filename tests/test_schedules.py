"""Every schedule against its closed form, step by step: as the scheduler plans it and as --show-schedule prints it."""

import math
import re
from collections.abc import Callable
from typing import Any

import pytest

from modules import imported
from plainloop.catalogue import catalogue

EPOCHS, STEPS = 10, 7  # per epoch
TOTAL = EPOCHS * STEPS
PEAK = 0.01


def after_warm_up(warm_up: int, then: Callable[[int], float]) -> Callable[[int], float]:
    """A line that reaches 1 at the last step of the warm-up, and then another form."""
    return lambda step: (step + 1) / warm_up if step < warm_up else then(step)


def half_cosine(share: float) -> float:
    """From 1 at 0 down to 0 at 1."""
    return (1 + math.cos(math.pi * share)) / 2


def restarted(step: int) -> float:
    """Cosines of 10, 20 and 40 steps: three in 70, each twice as long as the one before."""
    start, length = next((start, length) for start, length in ((30, 40), (10, 20), (0, 10)) if step >= start)
    return half_cosine((step - start) / length)


def one_cycle(step: int) -> float:
    """Smith and Topin 2019, with torch's numbers: from a 25th up over 30 % of the run, down to a 250000th."""
    top = 0.3 * TOTAL - 1
    if step <= top:
        return 1 - (1 - 1 / 25) * half_cosine(step / top)
    return 1 / 250_000 + (1 - 1 / 250_000) * half_cosine((step - top) / (TOTAL - 1 - top))


def triangles(step: int) -> float:
    """Smith 2017: from a tenth up and back in 14 steps, and each time half as high."""
    cycle, place = divmod(step, 14)
    height = 1 - abs(place / 7 - 1)
    return 0.1 + 0.9 * height / 2**cycle


# The settings, and the factor on --lr at a step. Epochs are counted from 0.
FORMS: dict[str, tuple[dict[str, Any], Callable[[int], float]]] = {
    "warmup-cosine": ({}, after_warm_up(3, lambda step: half_cosine((step - 3) / (TOTAL - 3)))),
    "step": ({"lr_step_epochs": 3}, lambda step: 0.1 ** (step // STEPS // 3)),
    "multistep": ({}, lambda step: 0.1 ** sum(step // STEPS >= epoch for epoch in (6, 9))),
    "exponential": ({"lr_decay": 0.8}, lambda step: 0.8 ** (step // STEPS)),
    "polynomial": ({"lr_power": 2.0}, lambda step: (1 - step / TOTAL) ** 2),
    "cosine": ({}, lambda step: half_cosine(step // STEPS / EPOCHS)),
    "cosine-restarts": ({}, restarted),
    "warmup-linear": ({}, after_warm_up(3, lambda step: (TOTAL - step) / (TOTAL - 3))),
    "warmup-stable-decay": (
        {"warmup_steps": 5},
        after_warm_up(5, lambda step: 1 - math.sqrt(max(step - (TOTAL - 14), 0) / 14)),
    ),
    "inverse-sqrt": ({}, after_warm_up(STEPS, lambda step: math.sqrt(STEPS / (step + 1)))),
    "one-cycle": ({}, one_cycle),
    "cyclic": ({"cycle_epochs": 2}, triangles),
}
WITHOUT_A_FORM = {"constant", "plateau"}


def test_every_schedule_has_a_form():
    assert FORMS.keys() | WITHOUT_A_FORM == catalogue()["schedulers"].keys()


@pytest.mark.parametrize("scheduler", FORMS)
def test_it_is_its_closed_form(scheduler, tmp_path):
    settings, factor = FORMS[scheduler]
    answers = {"task": "tabular-regression", "scheduler": scheduler}
    with imported(tmp_path, answers, "config", "schedule") as [config, schedule]:
        chosen = config.Config(lr=PEAK, epochs=EPOCHS, **settings)
        rates = schedule.planned_rates(chosen, STEPS)
        expected = [PEAK * factor(step) for step in range(TOTAL)]
        assert rates == pytest.approx(expected, rel=1e-6, abs=1e-9)
        shown = schedule.drawn(rates, STEPS)
    table = dict(re.findall(r"^(first|highest|last) .* (\S+)$", shown, re.MULTILINE))
    notable = {"first": expected[0], "highest": max(expected), "last": expected[-1]}
    assert {name: float(rate) for name, rate in table.items()} == pytest.approx(notable, rel=1e-3)
