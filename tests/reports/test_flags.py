"""Flags that are taken wrongly, too late, or for something else than they are."""

import dataclasses
import re
import types
from pathlib import Path
from typing import Union, get_args, get_origin, get_type_hints

import pytest

from modules import imported
from projects import read_metrics
from tracing import trace, values_of

pytestmark = pytest.mark.xdist_group("reports of flags")

STOPS_EARLY = {
    "task": "image-segmentation",
    "scheduler": "plateau",
    "gradient_accumulation": True,
    "gradient_clipping": "value",
}
AVERAGES = {"task": "language-modeling", "scheduler": "warmup-stable-decay", "ema": True, "optimizer": "sgd"}
SERIES = {"task": "time-series-forecasting", "loss": "quantile", "scheduler": "multistep", "early_stopping": True}
UNLIKE = [STOPS_EARLY, AVERAGES, SERIES]


def numbers(config: type) -> dict[str, type]:
    """The settings that are a number, or several."""
    found = {}
    for name, hint in get_type_hints(config).items():
        kinds = get_args(hint) if get_origin(hint) in (Union, types.UnionType) else [hint]
        for kind in kinds:
            kind = get_args(kind)[0] if get_origin(kind) is tuple else kind
            if kind in (int, float):
                found[name] = kind
    return found


@pytest.mark.parametrize("answers", UNLIKE, ids=lambda answers: answers["task"])
def test_no_number_is_taken_that_makes_no_sense(answers, tmp_path, capsys):
    """Before anything is read: exit status 2, and one line with the flag and what it must be."""
    with imported(tmp_path, answers, "config") as [config]:
        of_kind = numbers(config.Config)
        assert len(of_kind) > 10
        several = {f.name for f in dataclasses.fields(config.Config) if "tuple" in str(f.type)}
        for name, kind in of_kind.items():
            wrong = [-1, *([] if name in config.MAY_BE_ZERO else [0]), 2**63]
            wrong += [float("nan"), float("inf"), -float("inf")] if kind is float else []
            for value in wrong:
                with pytest.raises(SystemExit) as refused:
                    config.Config(**{name: (value, value) if name in several else value})
                assert refused.value.code == 2, (name, value)
                line = capsys.readouterr().err.strip()
                assert "\n" not in line
                assert line.startswith(f"--{name.replace('_', '-')} "), (name, value)


@pytest.mark.parametrize(
    "flags",
    [
        ["--resume", "False"],
        ["--lr", "fast"],
        ["--accumulate", "5"],
    ],
    ids=" ".join,
)
def test_a_wrong_flag_is_named_before_data_are_read(project, warm, tmp_path, flags):
    output = warm.run(project(**STOPS_EARLY), "train.py", "--data-dir", tmp_path / "none", *flags, status=2)
    assert "Traceback" not in output
    assert flags[0] in output or flags[1] in output
    assert "none" not in output


def test_a_switch_is_on_or_off(tmp_path):
    """No text is taken for yes, as bool("False") would be."""
    import tyro

    with imported(tmp_path, STOPS_EARLY, "config") as [config]:
        switches = [name for name, hint in get_type_hints(config.Config).items() if hint is bool]
        assert {"resume", "overwrite", "deterministic"} <= set(switches)
        for name in switches:
            flag = name.replace("_", "-")
            for argument, value in ((f"--{flag}", True), (f"--no-{flag}", False)):
                assert getattr(tyro.cli(config.Config, args=[argument]), name) is value
            with pytest.raises(SystemExit):
                tyro.cli(config.Config, args=[f"--{flag}", "False"])


def test_a_run_shorter_than_its_intervals_is_evaluated_and_saved(project, warm, tmp_path):
    places = ["--run-dir", tmp_path / "run", "--epochs", "1", "--batch-size", "256"]
    intervals = ["--eval-every", "1000", "--checkpoint-every", "1000", "--log-every", "1000"]
    events = trace(warm, project(task="tabular-regression"), tmp_path / "log", "train.py", *places, *intervals)
    assert len(values_of(events, "step")) == 2
    assert [line["step"] for line in read_metrics(tmp_path / "run") if "val_loss" in line] == [2]
    assert (tmp_path / "run" / "best.pt").exists()
    assert (tmp_path / "run" / "last.pt").exists()


def test_the_unit_of_patience_is_said(tmp_path):
    with imported(tmp_path, STOPS_EARLY, "config") as [config]:
        text = Path(config.__file__).read_text(encoding="utf-8")
    for name in ("patience", "lr_patience"):
        assert re.search(rf'^    {name}: int = \d+\n    """Evaluations without a better val_loss', text, re.MULTILINE)
