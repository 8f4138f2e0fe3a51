"""Which parameters decay, and which are Muon's, by their names."""

from collections.abc import Callable
from itertools import chain
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

import pytest

from modules import imported
from plainloop.catalogue import catalogue

pytestmark = pytest.mark.xdist_group("parameter groups")  # these tests share the sample data


class Groups(NamedTuple):
    """What make_optimizer() makes of the sample model's parameters, by their names."""

    of_names: list[list[str]]
    decays: list[float]
    muons: set[str]
    dimensions: dict[str, int]
    weight_decay: float


@pytest.fixture(scope="module")
def sample(tmp_path_factory) -> Callable[[str, ModuleType], Path]:
    """A folder with the sample data of a task, written once."""
    folder = tmp_path_factory.mktemp("samples")

    def of(task: str, sample_data: ModuleType) -> Path:
        if not (folder / task).exists():
            sample_data.write_sample(folder / task)
        return folder / task

    return of


@pytest.fixture
def grouped(tmp_path, sample) -> Callable[..., Groups]:
    def by(**answers: str) -> Groups:
        names = "sample_data", "train", "config", "data", "model"
        with imported(tmp_path, answers, *names) as [sample_data, train, config, data, model]:
            settings = config.Config(data_dir=sample(answers["task"], sample_data))
            made = model.make_model(data.Preprocessing.fit(settings))
            optimizer = train.make_optimizer(made, settings)
        name_of = {parameter: name for name, parameter in made.named_parameters()}
        muon = optimizer.muon.param_groups if hasattr(optimizer, "muon") else []
        return Groups(
            [[name_of[parameter] for parameter in group["params"]] for group in optimizer.param_groups],
            [group["weight_decay"] for group in optimizer.param_groups],
            {name_of[parameter] for group in muon for parameter in group["params"]},
            {name: parameter.ndim for name, parameter in made.named_parameters()},
            settings.weight_decay,
        )

    return by


@pytest.mark.parametrize("task", catalogue()["tasks"])
def test_matrices_and_kernels_decay_and_nothing_else(task, grouped):
    groups = grouped(task=task)
    assert sorted(chain(*groups.of_names)) == sorted(groups.dimensions)
    assert set(groups.decays) == {0.0, groups.weight_decay}
    pairs = zip(groups.of_names, groups.decays, strict=True)
    decayed = {name for names, decay in pairs if decay for name in names}
    assert decayed == {name for name, dimensions in groups.dimensions.items() if dimensions >= 2}
    assert not any(name.endswith("bias") or "norm" in name for name in decayed)


PIXELS = {"features.5.weight"}
TABLE = {"layers.0.weight", "layers.3.weight"}
TEXT = {"hidden.weight"}
TRANSFORMER = {
    f"blocks.{i}.{layer}.weight"
    for i in (0, 1)
    for layer in ("queries_keys_values", "attention_out", "mlp_in", "mlp_out")
}
# Of each sample model: its weights of two dimensions but for embeddings, positions and the last layer.
HIDDEN = {
    "image-classification": PIXELS,
    "image-segmentation": {"hidden.weight"},
    "image-regression": PIXELS,
    "tabular-classification": TABLE,
    "tabular-regression": TABLE,
    "text-classification": TEXT,
    "text-regression": TEXT,
    "token-classification": TRANSFORMER,
    "language-modeling": TRANSFORMER,
    "time-series-forecasting": {"enter.weight", *(f"blocks.{i}.layers.{j}.weight" for i in (0, 1) for j in (1, 3))},
}


@pytest.mark.parametrize("task", catalogue()["tasks"])
def test_muon_steps_hidden_matrices_and_adamw_the_rest(task, grouped):
    groups = grouped(task=task, optimizer="muon")
    assert groups.muons == HIDDEN[task]
    assert sorted(chain(*groups.of_names)) == sorted(groups.dimensions)
