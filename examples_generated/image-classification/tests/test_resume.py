"""A run that was stopped, and went on, ends as one that never stopped."""

import os
import random
import signal
from collections.abc import Iterator
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from conftest import differences, each_step, load, run_to_end
from torch import nn

import evaluate as evaluation
import train as training
from checkpoint import read_checkpoint, restore, save_checkpoint
from config import Config
from metrics import Metrics
from run_folder import KEPT


@pytest.fixture
def whole(config: Config, tmp_path) -> Config:
    """The same run, which nobody stops."""
    return replace(config, run_dir=tmp_path / "whole")


@pytest.fixture
def draws() -> Iterator[list[tuple[float, ...]]]:
    """What code of your own might draw after each step, from every random generator."""
    drawn: list[tuple[float, ...]] = []
    with each_step(after=lambda _: drawn.append((random.random(), np.random.random(), torch.rand(1).item()))):
        yield drawn


@pytest.mark.parametrize(
    "steps", [[3], [5], [2, 1, 4]], ids=["in an epoch", "at its end", "twice in an epoch and once more"]
)
def test_a_stopped_run_ends_the_same(config, whole, stop_after, draws, steps):
    expected = run_to_end(whole, eval_every=2)
    expected_draws = draws.copy()
    draws.clear()
    for count in steps:
        stop_after(count)
        with pytest.raises(SystemExit) as stopped:
            run_to_end(config, eval_every=2, resume=True)
        assert stopped.value.code == 128 + signal.SIGTERM
    resumed = run_to_end(config, eval_every=2, resume=True)
    assert differences(expected, resumed) == []
    assert draws == expected_draws
    assert differences(load(whole.run_dir / "best.pt"), load(config.run_dir / "best.pt")) == []
    assert (config.run_dir / "metrics.jsonl").read_bytes() == (whole.run_dir / "metrics.jsonl").read_bytes()


def test_a_checkpoint_holds_all_that_the_next_step_depends_on(config):
    assert set(run_to_end(config)["classes"]) == {
        "model",
        "optimizer",
        "scheduler",
        "train_loss",
        "progress",
        "metrics_file",
    }


def test_the_number_of_workers_does_not_matter(config, whole, stop_after):
    expected = run_to_end(whole)
    stop_after(3)
    with pytest.raises(SystemExit):
        run_to_end(config, num_workers=2)
    assert differences(expected, run_to_end(config, num_workers=1, resume=True)) == []


@pytest.mark.parametrize("eval_every", [0, 2], ids=["at the end of an epoch", "in an epoch"])
def test_a_stop_during_evaluation_loses_nothing(config, whole, monkeypatch, eval_every):
    class Interrupted(Metrics):
        def update(self, *batch):
            signal.raise_signal(signal.SIGTERM)
            super().update(*batch)

    expected = run_to_end(whole, eval_every=eval_every)
    with monkeypatch.context() as patch, pytest.raises(SystemExit):
        patch.setattr(training, "Metrics", Interrupted)
        run_to_end(config, eval_every=eval_every)
    assert differences(expected, run_to_end(config, eval_every=eval_every, resume=True)) == []
    assert (config.run_dir / "metrics.jsonl").read_bytes() == (whole.run_dir / "metrics.jsonl").read_bytes()


def test_a_kill_loses_only_what_came_after_the_checkpoint(config, whole, monkeypatch):
    expected = run_to_end(whole)

    def killed(path, *rest, **about):
        if path.name == "last.pt" and rest[0]["progress"].epoch == 2:
            raise KeyboardInterrupt  # stands for SIGKILL: best.pt and the metrics are written, last.pt is not
        save_checkpoint(path, *rest, **about)

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(training, "save_checkpoint", killed)
        run_to_end(config)
    assert differences(expected, run_to_end(config, resume=True)) == []
    assert (config.run_dir / "metrics.jsonl").read_bytes() == (whole.run_dir / "metrics.jsonl").read_bytes()


def test_the_random_generator_of_the_device_goes_on_too(monkeypatch, tmp_path):
    """Dropout draws there. Something else stands for the device: what counts is that its state makes the way."""
    states = [torch.arange(8, dtype=torch.uint8)]
    device = SimpleNamespace(get_rng_state=lambda: states[-1], set_rng_state=states.append)
    monkeypatch.setattr(torch.accelerator, "current_accelerator", lambda: torch.device("cuda"))
    monkeypatch.setattr(torch, "get_device_module", lambda _: device)
    path, state = tmp_path / "last.pt", {"model": nn.Linear(2, 2)}
    save_checkpoint(path, state, config={})
    states.append(torch.zeros(8, dtype=torch.uint8))  # what it holds in a new process
    restore(read_checkpoint(path), state, path, new_settings=False)
    assert torch.equal(states[-1], states[0])


def test_a_save_that_fails_leaves_the_last_checkpoint(config, monkeypatch):
    before = run_to_end(config)
    monkeypatch.setattr("os.fsync", lambda _: (_ for _ in ()).throw(OSError(28, "No space left on device")))
    with pytest.raises(SystemExit, match="No space left on device"):
        save_checkpoint(config.run_dir / "last.pt", {"model": torch.nn.Linear(2, 2)})
    assert differences(before, load(config.run_dir / "last.pt")) == []
    assert not list(config.run_dir.glob("*.tmp"))


def test_other_settings_are_refused_unless_they_are_meant(config):
    run_to_end(config)
    with pytest.raises(SystemExit, match="--lr .* then, .* now"):
        run_to_end(config, lr=2 * config.lr, resume=True)
    run_to_end(config, lr=2 * config.lr, resume=True, accept_changes=True)


def test_settings_that_are_meant_hold_from_the_next_step_on(config, whole, stop_after, rates):
    new = {"lr": 2 * config.lr, "epochs": 3}
    run_to_end(whole, **new)
    expected = rates.copy()
    rates.clear()
    stop_after(7)  # in the second epoch
    with pytest.raises(SystemExit):
        run_to_end(config)
    run_to_end(config, **new, resume=True, accept_changes=True)
    assert rates[7:] == expected[7:]


def test_what_a_run_keeps_to_its_end_cannot_be_changed(config):
    last = run_to_end(config)
    for name in KEPT:
        torch.save(last | {"config": last["config"] | {name: "another"}}, config.run_dir / "last.pt")
        with pytest.raises(SystemExit, match="the run goes on with no other"):
            run_to_end(config, resume=True, accept_changes=True)


def test_another_schedule_is_refused(config):
    run_to_end(config)
    last = load(config.run_dir / "last.pt")
    torch.save(last | {"schedule": "another"}, config.run_dir / "last.pt")
    with pytest.raises(SystemExit, match="made with another schedule"):
        run_to_end(config, resume=True)


def test_a_used_folder_is_not_overwritten_by_accident(config):
    run_to_end(config)
    with pytest.raises(SystemExit, match="--resume, or start anew with --overwrite"):
        run_to_end(config)
    run_to_end(config, overwrite=True)


def test_a_finished_run_stays_as_it_is(config, capsys):
    def files() -> dict[str, bytes]:
        return {file.name: file.read_bytes() for file in config.run_dir.iterdir()}

    run_to_end(config)
    before = files()
    run_to_end(config, resume=True)
    assert files() == before
    assert "finished after 2 epochs" in capsys.readouterr().out


def test_a_new_run_can_start_from_saved_weights(config, tmp_path):
    run_to_end(config)
    run_to_end(config, run_dir=tmp_path / "next", init_from=config.run_dir / "best.pt", lr=1e-12)
    start = load(tmp_path / "next" / "last.pt")["model"]
    for name, weights in load(config.run_dir / "best.pt")["model"].items():
        if weights.is_floating_point() and "running" not in name:
            assert start[name].allclose(weights, atol=1e-6), name


@pytest.mark.parametrize("size", [0, 1000, None], ids=["empty", "truncated", "foreign"])
def test_a_broken_checkpoint_gets_one_line(config, size):
    run_to_end(config)
    last = config.run_dir / "last.pt"
    if size is None:
        torch.save({"weights": torch.zeros(2)}, last)
    else:
        last.write_bytes(last.read_bytes()[:size])
    with pytest.raises(SystemExit, match="checkpoint") as refused:
        run_to_end(config, resume=True)
    assert "\n" not in str(refused.value)


def test_reading_a_checkpoint_runs_no_code(tmp_path):
    class Code:
        def __reduce__(self):
            return os.mkdir, (str(tmp_path / "it ran"),)

    torch.save({"model": Code()}, tmp_path / "foreign.pt")
    with pytest.raises(SystemExit, match="checkpoint"):
        read_checkpoint(tmp_path / "foreign.pt")
    assert not (tmp_path / "it ran").exists()


def test_a_checkpoint_from_a_gpu_is_read_on_the_cpu(tmp_path, monkeypatch):
    """Where there is no GPU, and where there is: the model alone decides where its weights go."""
    path = tmp_path / "last.pt"
    with monkeypatch.context() as patch:
        patch.setattr("torch.serialization.location_tag", lambda _: "cuda:0")
        save_checkpoint(path, {"model": torch.nn.Linear(2, 2)}, config={})
    assert {weights.device.type for weights in read_checkpoint(path)["model"].values()} == {"cpu"}


def test_a_checkpoint_that_lacks_weights_is_refused(config):
    def lack_one(weights):
        return dict(list(weights.items())[1:])

    last, best = run_to_end(config, epochs=1), load(config.run_dir / "best.pt")
    torch.save(last | {"model": lack_one(last["model"])}, config.run_dir / "last.pt")
    with pytest.raises(SystemExit, match="its model does not fit"):
        run_to_end(config, epochs=1, resume=True)
    torch.save(best | {"model": lack_one(best["model"])}, config.run_dir / "best.pt")
    with pytest.raises(SystemExit, match="is of another model"):
        evaluation.main(evaluation.Arguments(checkpoint=config.run_dir / "best.pt", data_dir=config.data_dir))
