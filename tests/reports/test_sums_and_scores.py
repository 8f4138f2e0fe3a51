"""What is logged is what its name says: of all samples, in the target's unit, and not there where it is not defined."""

import csv
import math
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from torch import Tensor, nn

from in_process import at_hand, dataset_name, evaluations, preprocessing
from plainloop.catalogue import catalogue
from plainloop.examples import write_project
from plainloop.questionnaire import resolve
from plainloop.render import render
from projects import DRIVERS, read_metrics

pytestmark = pytest.mark.xdist_group("reports")

LANGUAGE = {"task": "language-modeling"}
MASKS = {"task": "image-segmentation"}
WORDS = {"task": "token-classification"}
TABLE = {"task": "tabular-regression"}
CLASSES = {"task": "tabular-classification"}
BINARY = {"task": "tabular-classification", "labels": "binary", "monitor": "metric"}
MULTILABEL = {"task": "tabular-classification", "labels": "multilabel", "monitor": "metric"}


def write(file: Path, header: list[str], rows: list[list[Any]]) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("w", newline="", encoding="utf-8") as lines:
        csv.writer(lines).writerows([header, *rows])


class Says(nn.Module):
    """A model that gives what it is given."""

    def forward(self, outputs: Tensor) -> Tensor:
        return outputs


def logits_of(loss: float, n: int) -> Tensor:
    """Of two classes, n times: those with which class 0 has this cross-entropy."""
    return torch.tensor([[0.0, math.log(math.expm1(loss))]]).repeat(n, 1)


def test_a_mean_is_over_samples_not_over_batches(project):
    """One sample of loss 2, then nine of loss 10; with padding, which counts for nothing, and without."""
    for answers, preprocessed in ((LANGUAGE, {"bytes_per_token": [1, 1]}), (CLASSES, {"classes": ["no", "yes"]})):
        with at_hand(project(**answers), "data", "evaluate", "metrics") as [data, evaluate, metrics]:
            batches = []
            for n, loss in ((1, 2.0), (9, 10.0)):
                logits, targets = logits_of(loss, 10), torch.zeros(10, dtype=torch.int64)
                if answers == LANGUAGE:
                    targets[n:] = data.IGNORE
                    batches.append((logits[None], targets[None]))
                else:
                    batches.append((logits[:n], targets[:n]))
            seen = type("Seen", (), preprocessed)
            cpu = torch.device("cpu")
            scores = metrics.Metrics(seen, cpu)
            values = evaluate.evaluate(Says(), batches, evaluate.make_criterion(), scores, cpu)
        assert values["loss"] == pytest.approx(9.2, rel=1e-2)  # in bfloat16 where there is such
        if answers == LANGUAGE:
            assert values["perplexity"] == pytest.approx(math.exp(values["loss"]), rel=1e-2)


def test_a_model_that_copies_the_next_token_has_no_loss(project, tmp_path):
    """Shifted once, by the data set, and not again by the loss."""
    for split in ("train", "val"):
        (tmp_path / f"{split}.txt").write_text("".join(map(chr, range(33, 120))), encoding="utf-8")
    names = "config", "data", "batches", "evaluate", "metrics"
    with at_hand(project(**LANGUAGE), *names) as [config, data, batches, evaluate, metrics]:
        chosen = config.Config(data_dir=tmp_path, context_length=16, vocabulary_size=256)
        fitted = data.Preprocessing.fit(chosen)
        loader = batches.evaluation_loader(data.Windows(chosen, "val", fitted), chosen)

        class Follows(nn.Module):
            def forward(self, tokens: Tensor) -> Tensor:
                following = torch.where(tokens + 1 < 256, tokens + 1, 0)
                return 100 * nn.functional.one_hot(following, 256).float()

        cpu = torch.device("cpu")
        scores = metrics.Metrics(fitted, cpu)
        values = evaluate.evaluate(Follows(), loader, evaluate.make_criterion(), scores, cpu)
    assert values == pytest.approx({"loss": 0, "bits_per_byte": 0, "perplexity": 1}, abs=1e-4)


SPLIT = [{**answers, "gradient_accumulation": True} for answers in (MASKS, WORDS)]


@pytest.mark.parametrize("answers", SPLIT, ids=lambda answers: answers["task"])
def test_accumulated_gradients_are_those_of_the_whole_batch_whatever_is_ignored(project, warm, answers):
    """By the project's own test, where batches have different numbers of pixels and words that count."""
    own = ["tests/test_step.py", "-k", "gradient_of_a_split_step", "-q", "-p", "no:cacheprovider"]
    assert "1 passed" in warm.run(project(**answers), "-m", "pytest", *own)


@pytest.mark.parametrize("accumulation", [False, True], ids=["a batch a step", "accumulated"])
def test_a_batch_of_nothing_but_void_changes_no_sum(tmp_path, monkeypatch, accumulation):
    """Two annotated pixels at the edge: the shift of training images often moves them out."""
    made = tmp_path / "project"
    write_project(made, render({**MASKS, "loss": "focal", "gradient_accumulation": accumulation}))
    draw = np.random.default_rng(0)
    for split in ("train", "val"):
        for kind in ("images", "masks"):
            (tmp_path / split / kind).mkdir(parents=True)
        for i in range(12):
            mask = np.full((16, 16), 255, np.uint8)
            mask[0, 5:7] = i % 2, 1
            Image.fromarray(mask).save(tmp_path / split / "masks" / f"{i}.png")
            image = draw.integers(256, size=(16, 16), dtype=np.uint8)
            Image.fromarray(image).save(tmp_path / split / "images" / f"{i}.png")
    taken = []
    backward = torch.Tensor.backward
    monkeypatch.setattr(torch.Tensor, "backward", lambda loss: taken.append(loss.item()) or backward(loss))
    with at_hand(made, "config", "train") as [config, train]:
        settings = {"data_dir": tmp_path, "run_dir": tmp_path / "run", "epochs": 2, "image_size": 16}
        settings |= {"batch_size": 1, "log_every": 1, "num_workers": 0} | ({"accumulate": 1} if accumulation else {})
        train.train(config.Config(**settings))
    assert len(taken) == 24
    assert 0 in taken
    assert np.isfinite(taken).all()
    losses = [line["loss"] for line in read_metrics(tmp_path / "run") if "loss" in line]
    assert None in losses  # the loss of nothing is not 0 but undefined
    assert all(np.isfinite(loss) for loss in losses if loss is not None)
    for line in evaluations(tmp_path / "run"):
        assert np.isfinite([line["train_loss"], line["val_loss"], line["val_miou"]]).all()
    weights = torch.load(tmp_path / "run/last.pt", weights_only=True)["model"]
    assert all(tensor.isfinite().all() for tensor in weights.values())


def test_a_mask_whose_pixels_go_when_it_is_scaled_is_named(project, warm, tmp_path):
    made = project(**MASKS)
    mask = np.full((32, 32), 255, np.uint8)
    mask[0, 0:2] = 0, 1
    for kind, pixels in (("images", np.zeros((32, 32), np.uint8)), ("masks", mask)):
        for split in ("train", "val"):
            (tmp_path / split / kind).mkdir(parents=True)
            Image.fromarray(pixels).save(tmp_path / split / kind / "0.png")
    flags = ["--data-dir", tmp_path, "--run-dir", tmp_path / "run", "--num-workers", "0", "--image-size"]
    said = warm.run(made, "train.py", *flags, "8", status=1).splitlines()[-1]
    assert "masks/0.png is void throughout at 8 x 8 pixels" in said
    assert "8 is the least" in warm.run(made, "train.py", *flags, "4", status=1).splitlines()[-1]


# In each, validation data on which a metric is not defined: of one class, without a yes, always the same number.
ALIKE = {
    "one of two classes": (BINARY, "diagnosis", "benign", "val_auroc"),
    "no yes at all": (MULTILABEL, "overweight", "0", None),
    "one number": ({**TABLE, "monitor": "metric"}, "progression", "100", "val_r2"),
}


@pytest.mark.parametrize(("answers", "column", "cell", "undefined"), ALIKE.values(), ids=ALIKE)
def test_a_metric_that_is_not_defined_is_left_out_and_ends_nothing(
    project, warm, tmp_path, answers, column, cell, undefined
):
    made = project(**answers)
    data = tmp_path / "data"
    shutil.copytree(made / "data", data)
    with (data / "val.csv").open(newline="", encoding="utf-8") as lines:
        header, *rows = csv.reader(lines)
    for row in rows:
        row[header.index(column)] = cell
    write(data / "val.csv", header, rows)
    warm.run(made, "train.py", "--data-dir", data, "--run-dir", tmp_path / "run", "--epochs", "1")
    for line in evaluations(tmp_path / "run"):
        assert [name for name, value in line.items() if value is None] == ([undefined] if undefined else [])
    assert (tmp_path / "run/best.pt").exists()
    said = warm.run(made, "evaluate.py", "--checkpoint", tmp_path / "run/best.pt", "--data-dir", data)
    assert "nan" in said or not undefined


SPELLINGS = {
    "0 and 1": (BINARY, ["0", "1"]),
    "0.0 and 1.0": (BINARY, ["0.0", "1.0"]),
    "False and True": (BINARY, ["False", "True"]),
    "no and yes": (BINARY, ["no", "yes"]),
    "numbers of classes": (CLASSES, ["0", "1", "2"]),
    "numbers with a point": (CLASSES, ["0.0", "1.0", "2.0"]),
    "names": (CLASSES, ["ant", "bee", "cat"]),
    "whole numbers": (TABLE, ["1", "2", "3"]),
    "labels": (MULTILABEL, ["0", "1"]),
    "labels with a point": (MULTILABEL, ["0.0", "1.0"]),
}


@pytest.mark.parametrize(("answers", "cells"), SPELLINGS.values(), ids=SPELLINGS)
def test_what_a_label_looks_like_in_the_file_does_not_decide_its_type(project, tmp_path, answers, cells):
    made = project(**answers)
    names = {"binary": ["y"], "multilabel": ["y", "z"]}.get(answers.get("labels"), ["y"])
    rows = [[i, *([cells[i % len(cells)]] * len(names))] for i in range(12)]  # a column of whole numbers, too
    write(tmp_path / "train.csv", ["x", *names], rows)
    with at_hand(made, "config", "data", "model", "evaluate") as [config, data, model, evaluate]:
        target = tuple(names) if len(names) > 1 else names[0]
        chosen = config.Config(data_dir=tmp_path, target=target)
        fitted = data.Preprocessing.fit(chosen)
        features, targets = data.Rows(chosen, "train", fitted)[0, list(range(12))]
        assert features.dtype == torch.float32
        assert targets.dtype == (torch.int64 if answers == CLASSES else torch.float32)
        loss = evaluate.make_criterion()(model.make_model(fitted)(features), targets)
        loss.backward()
        assert loss.isfinite()


def gives_logits(answers: dict[str, str]) -> bool:
    return catalogue()["targets"][resolve(answers)["target"]]["given"].startswith("logits")


KINDS = [*({"task": task} for task in catalogue()["tasks"]), BINARY, MULTILABEL]


@pytest.mark.parametrize("answers", [*filter(gives_logits, KINDS)], ids=lambda answers: "-".join(answers.values()))
def test_a_model_gives_logits_not_probabilities(project, answers):
    """Probabilities would go through softmax or sigmoid twice: the loss takes logits, of any size and sign."""
    made = project(**answers)
    with at_hand(made, "config", "data", "model") as [config, data, model]:
        chosen = config.Config(data_dir=made / "data")
        fitted = preprocessing(answers, made, [config, data])
        inputs, _ = getattr(data, dataset_name(answers))(chosen, "val", fitted)[0, [0, 1, 2]]
        torch.manual_seed(0)
        net = model.make_model(fitted)
        lows, highs = [], []
        with torch.no_grad():
            for scale in (1000, -1):  # of the last layer, so of what comes out
                for parameter in list(net.parameters())[-2:]:
                    parameter.mul_(scale)
                logits = net(**inputs) if isinstance(inputs, dict) else net(inputs)
                lows.append(logits.min())
                highs.append(logits.max())
    assert min(lows) < 0
    assert max(highs) > 1


UNITS = [TABLE, {"task": "image-regression"}, {"task": "time-series-forecasting"}]


@pytest.mark.parametrize("answers", UNITS, ids=lambda answers: answers["task"])
def test_errors_are_in_the_unit_of_the_target(project, tmp_path, answers):
    """Of a target a thousand times as large, the same model's errors are a thousand times as large."""
    made = project(**answers)
    with at_hand(made, "config", "data", "metrics") as [config, data, metrics]:
        errors = []
        for folder in (made / "data", a_thousandfold(made, tmp_path, config.Config())):
            chosen = config.Config(data_dir=folder)
            fitted = data.Preprocessing.fit(chosen)
            name = dataset_name(answers)
            batch = getattr(data, name)(chosen, "val", fitted)[0, list(range(20))]
            scores = metrics.Metrics(fitted, torch.device("cpu"))
            seen = [batch[0]] if name == "Windows" else []
            scores.update(torch.zeros_like(batch[1]), batch[1], *seen)
            errors.append(scores.compute())
    for name in ("mae", "rmse"):
        assert errors[0][name] > 0
        assert errors[1][name] == pytest.approx(1000 * errors[0][name], rel=1e-4)


def a_thousandfold(made: Path, folder: Path, config: Any) -> Path:
    """The same data, the target of every sample 1000 times as large."""
    for file in (*(made / "data").glob("*.csv"), *(made / "data").glob("*/labels.csv")):
        with file.open(newline="", encoding="utf-8") as lines:
            header, *rows = csv.reader(lines)
        column = header.index(getattr(config, "target", "value")) if file.name != "labels.csv" else 1
        for row in rows:
            row[column] = str(1000 * float(row[column]))
        write(folder / file.relative_to(made / "data"), header, rows)
        for image in file.parent.glob("*.png"):
            (folder / file.parent.name / image.name).symlink_to(image)
    return folder


CRITERIA = [
    {**CLASSES, "loss": "label-smoothing"},
    {**CLASSES, "labels": "binary", "loss": "weighted-bce"},
]


@pytest.mark.parametrize("answers", CRITERIA, ids=lambda answers: answers["loss"])
def test_training_and_validation_loss_are_the_same_measure(project, warm, tmp_path, answers):
    """On the same data, with weights that stand still and no dropout, they are one number."""
    made = project(**answers)
    data = tmp_path / "data"
    data.mkdir()
    for split in ("train", "val"):
        shutil.copy(made / "data/train.csv", data / f"{split}.csv")
    flags = ["--data-dir", data, "--run-dir", tmp_path / "run", "--epochs", "1", "--lr", "1e-12"]
    warm.run(made, DRIVERS / "without_dropout.py", "train.py", *flags)
    [line] = evaluations(tmp_path / "run")
    assert line["train_loss"] == pytest.approx(line["val_loss"], rel=1e-4)


@pytest.mark.parametrize("answers", [BINARY, MULTILABEL], ids=["binary", "multilabel"])
def test_yes_begins_at_a_probability_of_one_half(project, warm, tmp_path, answers):
    """That is a logit of 0, not of 0.5: in the metrics and in predict.py."""
    made = project(**answers)
    with at_hand(made, "metrics") as [metrics]:
        seen = type("Seen", (), {"classes": ["no", "yes"]})
        scores = metrics.Metrics(seen, torch.device("cpu"))
        logits = torch.tensor([0.1, -0.1, 0.1, -0.1])
        labels = torch.tensor([1.0, 0.0, 1.0, 0.0])
        pair = (logits, labels) if answers == BINARY else (logits.view(2, 2), labels.view(2, 2))
        scores.update(*pair)
        values = scores.compute()
        assert next(iter(values.values())) == 1.0
    warm.run(made, "train.py", "--epochs", "1", "--lr", "1e-3", "--run-dir", tmp_path / "run")
    said = warm.run(made, "predict.py", "--checkpoint", tmp_path / "run/best.pt", made / "data/val.csv")
    header, *rows = csv.reader(said.splitlines())
    for column, name in enumerate(header):
        if "probability" in name:
            probabilities = np.array([float(row[column]) for row in rows])
            of_label = name.removesuffix("_probability")
            said_yes = [row[header.index("class" if answers == BINARY else of_label)] for row in rows]
            yes = name.removeprefix("probability_of_") if answers == BINARY else "1"
            assert [cell == yes for cell in said_yes] == (probabilities > 0.5).tolist()
            between = (probabilities > 0.5) & (probabilities < 0.6225)  # a logit above 0, but below 0.5
            assert between.any()


@pytest.mark.parametrize("loss", ["mse", "mae", "huber"])
def test_a_line_is_learnt(project, warm, tmp_path, loss):
    """Compared as (N, 1) with (N), a model would learn the mean of all targets."""
    made = project(**TABLE, loss=loss)
    draw = np.random.default_rng(0)
    for split, n in (("train", 400), ("val", 100)):
        numbers = draw.normal(size=n)
        write(tmp_path / f"{split}.csv", ["x", "y"], [[x, 3 * x] for x in numbers])
    flags = ["--data-dir", tmp_path, "--target", "y", "--run-dir", tmp_path / "run", "--epochs", "15"]
    warm.run(made, DRIVERS / "strict.py", "train.py", *flags)
    best = min(line["val_mae"] for line in evaluations(tmp_path / "run"))
    assert best < 0.5  # of the mean: 2.4
