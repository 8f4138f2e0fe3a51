"""The committed examples on a CUDA device. Imports nothing of Plainloop and needs no Copier."""

import json
from pathlib import Path

import pytest
import torch

from projects import DRIVERS, EXAMPLES, assert_same_runs, copy_example, read_metrics, run, shrink, train_in_pieces

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="trains on a CUDA device, and there is none"),
]

MIXED = {"image-classification", "text-classification", "language-modeling"}  # AMP is on in these


@pytest.fixture(scope="module", params=EXAMPLES)
def project(request, tmp_path_factory) -> Path:
    """An example with its sample data."""
    folder = copy_example(request.param, tmp_path_factory.mktemp("example"))
    run(folder, "sample_data.py")
    return folder


@pytest.fixture(scope="module")
def trained(project) -> Path:
    """The folder of a run on the device."""
    run(project, "train.py", "--epochs", "3", "--run-dir", "runs/cuda")
    return project / "runs" / "cuda"


def val_losses(run_dir: Path) -> list[float]:
    """The validation loss of each epoch."""
    return [line["val_loss"] for line in read_metrics(run_dir) if "val_loss" in line]


def test_learns_on_the_device(trained):
    losses = val_losses(trained)
    assert losses[-1] < losses[0]
    config = json.loads((trained / "config.json").read_text(encoding="utf-8"))
    assert config["device"] == torch.cuda.get_device_name()


def test_mixed_precision_learns_what_float32_learns(project, trained):
    if project.name not in MIXED:
        pytest.skip("trains in float32 anyway")
    run(project, DRIVERS / "in_float32.py", "train.py", "--epochs", "3", "--run-dir", "runs/float32")
    mixed, reference = val_losses(trained), val_losses(project / "runs" / "float32")
    assert mixed != reference
    assert mixed == pytest.approx(reference, rel=0.1, abs=0.02)


def test_checkpoint_is_read_without_a_gpu(project, trained, monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    run(project, "evaluate.py", "--checkpoint", trained / "best.pt")


def test_resumes_exactly_with_deterministic_algorithms(project, monkeypatch):
    monkeypatch.setenv("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    shrink(project / "data")
    flags = ["--epochs", "2", "--checkpoint-every", "3", "--deterministic"]
    run(project, "train.py", "--run-dir", "runs/whole", *flags)
    steps = max(line["step"] for line in read_metrics(project / "runs" / "whole"))
    train_in_pieces(run, project, "runs/pieces", flags, epoch=steps // 2)
    assert_same_runs(project / "runs" / "whole", project / "runs" / "pieces")
