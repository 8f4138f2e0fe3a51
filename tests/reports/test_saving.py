"""What is on the disk at any moment is whole, safe to load, and fits only the model that it is of."""

import ast
import os
import shutil
import signal
import stat
from types import SimpleNamespace

import pytest
import torch
from torch import nn

from in_process import at_hand, evaluations, load
from projects import DRIVERS, assert_same_runs

pytestmark = pytest.mark.xdist_group("reports")

TABLE = {"task": "tabular-classification"}
AVERAGED = {"task": "tabular-regression", "ema": True, "optimizer": "sgd", "scheduler": "plateau"}


# In the first epoch best.pt is saved, then last.pt; in the second the loss is still lower, so again.
@pytest.mark.parametrize(
    ("answers", "number", "save"), [(TABLE, "3", "best"), (AVERAGED, "4", "last")], ids=["best.pt", "last.pt"]
)
def test_a_kill_in_the_middle_of_a_save_leaves_the_checkpoint_before(project, warm, tmp_path, answers, number, save):
    made, killed = project(**answers), tmp_path / "killed"
    flags = ["--epochs", "2"]
    warm.run(made, "train.py", "--run-dir", tmp_path / "whole", *flags)
    train = ["train.py", "--run-dir", killed, *flags]
    warm.run(made, DRIVERS / "kill_saving.py", number, *train, status=-signal.SIGKILL)
    assert [file.name for file in killed.glob("*.tmp")] == [f"{save}.tmp"]
    assert load(killed / f"{save}.pt")["progress"]["step"] == load(killed / "last.pt")["progress"]["step"]
    assert load(killed / "last.pt")["progress"]["epoch"] == 1
    warm.run(made, *train, "--resume")
    assert not list(killed.glob("*.tmp"))
    assert_same_runs(tmp_path / "whole", killed)


@pytest.mark.parametrize(("umask", "mode"), [(0o022, 0o644), (0o027, 0o640)], ids=["022", "027"])
def test_who_may_read_a_checkpoint_is_up_to_the_umask(project, tmp_path, umask, mode):
    with at_hand(project(**TABLE), "checkpoint") as [checkpoint]:
        before = os.umask(umask)
        try:
            for _ in range(2):  # a new file, and one that takes the place of another
                checkpoint.save_checkpoint(tmp_path / "last.pt", {"model": nn.Linear(2, 2)}, config={})
                assert stat.S_IMODE((tmp_path / "last.pt").stat().st_mode) == mode
        finally:
            os.umask(before)


@pytest.mark.parametrize("answers", [TABLE, AVERAGED], ids=["classes", "an average"])
def test_weights_that_are_no_longer_finite_replace_nothing(project, tmp_path, answers):
    with at_hand(project(**answers), "checkpoint") as [checkpoint]:
        file = tmp_path / "last.pt"
        state = {"model": nn.BatchNorm1d(2)}
        if "ema" in answers:
            state["ema"] = SimpleNamespace(state_dict=lambda: {"model": average.state_dict()})
        average = nn.BatchNorm1d(2)
        checkpoint.save_checkpoint(file, state)
        before = file.read_bytes()
        (average if "ema" in answers else state["model"]).running_var[1] = torch.inf  # a buffer, no parameter
        with pytest.raises(SystemExit, match="running_var is no longer finite"):
            checkpoint.save_checkpoint(file, state)
        assert file.read_bytes() == before


def test_a_run_goes_on_from_what_it_saved_before_its_loss_was_nan(project, warm, tmp_path):
    made = project(**AVERAGED)
    flags = ["--epochs", "3"]
    warm.run(made, "train.py", "--run-dir", tmp_path / "whole", *flags)
    spoil = [DRIVERS / "spoil.py", "30", "train.py", "--run-dir", tmp_path / "spoilt", *flags]
    said = warm.run(made, *spoil, status=1).splitlines()[-1]
    assert "the loss of step 30 is not finite" in said
    for name in ("best.pt", "last.pt"):
        assert all(weights.isfinite().all() for weights in load(tmp_path / "spoilt" / name)["model"].values())
    warm.run(made, "train.py", "--run-dir", tmp_path / "spoilt", *flags, "--resume")
    assert_same_runs(tmp_path / "whole", tmp_path / "spoilt")


def test_compiled_or_not_a_checkpoint_is_the_same(project, warm, tmp_path):
    plain, compiled = project(**TABLE), project(**TABLE, compile=True)
    backend = {plain: [], compiled: ["--compile-backend", "aot_eager"]}
    for one, other in ((plain, compiled), (compiled, plain)):
        run_dir = tmp_path / one.name
        warm.run(one, "train.py", "--run-dir", run_dir, "--epochs", "1", *backend[one])
        said = warm.run(other, "evaluate.py", "--checkpoint", run_dir / "best.pt").split()
        assert float(said[said.index("val_loss") + 1]) == pytest.approx(evaluations(run_dir)[-1]["val_loss"], abs=2e-6)
        names = load(run_dir / "last.pt")["model"].keys()
        assert not any("_orig_mod" in name or name.startswith("module.") for name in names)
        more = ["--epochs", "2", "--resume", "--accept-changes"]
        warm.run(other, "train.py", "--run-dir", run_dir, *more, *backend[other])
        assert [line["epoch"] for line in evaluations(run_dir)] == [1, 2]


@pytest.mark.parametrize("answers", [TABLE, {"task": "image-segmentation", "amp": "fp16"}], ids=["a table", "masks"])
def test_every_checkpoint_is_read_in_one_place_safely_and_onto_the_cpu(project, answers):
    calls = [
        (file.name, {word.arg: word.value.value for word in node.keywords if isinstance(word.value, ast.Constant)})
        for file in sorted(project(**answers).glob("*.py"))
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "torch.load"
    ]
    assert calls == [("checkpoint.py", {"map_location": "cpu", "weights_only": True})]


@pytest.mark.parametrize("name", ["python", "numpy", "torch"])
def test_a_random_state_that_cannot_be_put_back_is_not_passed_over(project, tmp_path, name):
    with at_hand(project(**TABLE), "checkpoint") as [checkpoint]:
        checkpoint.save_checkpoint(tmp_path / "last.pt", {"model": nn.Linear(2, 2)}, config={})
        saved = checkpoint.read_checkpoint(tmp_path / "last.pt")
        saved["random"][name] = saved["random"][name][:2]
        with pytest.raises(SystemExit, match="states of its random generators"):
            checkpoint.restore(saved, {"model": nn.Linear(2, 2)}, tmp_path / "last.pt", new_settings=False)


@pytest.mark.parametrize("answers", [TABLE, AVERAGED], ids=["classes", "an average"])
def test_a_model_of_another_width_takes_nothing_from_it_unasked(project, warm, tmp_path, answers):
    made = tmp_path / "wider"
    shutil.copytree(project(**answers), made)
    warm.run(made, "train.py", "--epochs", "1")
    model = (made / "model.py").read_text(encoding="utf-8")
    assert "width: int = 64" in model
    (made / "model.py").write_text(model.replace("width: int = 64", "width: int = 48"), encoding="utf-8")
    for command in (["train.py", "--epochs", "1", "--resume"], ["evaluate.py"]):
        said = warm.run(made, *command, status=1).strip().splitlines()
        assert "Traceback" not in said[0]
        assert "layers.0.weight" in said[-1]
    said = warm.run(made, "train.py", "--epochs", "1", "--run-dir", "runs/new", "--init-from", "runs/default/last.pt")
    assert "left as initialised: head.weight" in said
