"""What a run keeps does not grow, and what it needs of the machine is asked for at its start."""

import os

import pytest
import torch

from in_process import at_hand
from projects import DRIVERS, run

pytestmark = pytest.mark.xdist_group("reports")

KEPT = {
    "a step a batch": {"task": "tabular-regression"},
    "accumulated, with an average": {"task": "tabular-classification", "gradient_accumulation": True, "ema": True},
}


@pytest.mark.parametrize("answers", KEPT.values(), ids=KEPT)
def test_no_graph_outlives_its_step(project, warm, tmp_path, answers):
    flags = ["--epochs", "2", "--batch-size", "8", "--log-every", "1000", "--run-dir", tmp_path]
    said = warm.run(project(**answers), DRIVERS / "graphs.py", "train.py", *flags).splitlines()[-1]
    graphs = [int(number) for number in said.split()[1:]]
    assert len(graphs) > 30
    assert len(set(graphs)) == 1


def test_without_a_compiler_compiling_is_refused_with_the_way_out(project, tmp_path, monkeypatch):
    made = project(task="tabular-classification", compile=True)
    monkeypatch.setenv("CXX", str(tmp_path / "no compiler"))
    done = run(made, "train.py", "--epochs", "1", "--run-dir", tmp_path / "run", status=1)
    assert "Traceback" not in done.stderr
    assert "--compile-backend aot_eager" in done.stderr.strip().splitlines()[-1]


def test_deterministic_runs_set_what_cublas_asks_for(project, tmp_path, monkeypatch):
    """Before a device is looked for: cuBLAS reads it once."""
    made = project(task="tabular-regression")
    monkeypatch.setenv("CUBLAS_WORKSPACE_CONFIG", "")  # and gone, so that it is put back as it was
    monkeypatch.delenv("CUBLAS_WORKSPACE_CONFIG")
    found = []
    current = torch.accelerator.current_accelerator

    def look(*arguments: bool, **named: bool) -> torch.device | None:
        found.append((os.environ.get("CUBLAS_WORKSPACE_CONFIG"), torch.are_deterministic_algorithms_enabled()))
        return current(*arguments, **named)

    with at_hand(made, "config", "train") as [config, train]:
        monkeypatch.setattr(torch.accelerator, "current_accelerator", look)
        settings = config.Config(data_dir=made / "data", run_dir=tmp_path, epochs=1, batch_size=512, deterministic=True)
        try:
            train.train(settings)
        finally:
            torch.use_deterministic_algorithms(False)
    assert set(found) == {(":4096:8", True)}
