"""What the model is shown: of training alone, every sample once, in any number, of any size, from any process."""

import csv
import pickle
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from torch import Tensor
from torch.utils.data import Dataset

from in_process import at_hand, dataset_name, evaluations, preprocessing
from plainloop.catalogue import catalogue
from projects import DRIVERS, Warm

pytestmark = pytest.mark.xdist_group("reports")

TASKS = list(catalogue()["tasks"])
BINARY = {"task": "tabular-classification", "labels": "binary"}
MULTILABEL = {"task": "tabular-classification", "labels": "multilabel"}
TABLE = {"task": "tabular-regression"}
TEXTS = {"task": "text-classification"}
WORDS = {"task": "token-classification"}
LANGUAGE = {"task": "language-modeling"}
SERIES = {"task": "time-series-forecasting"}


def tensors(batch: Any) -> list[Tensor]:
    """Inputs and targets, the former of one tensor or several by name."""
    inputs, targets = batch
    return [*(inputs.values() if isinstance(inputs, dict) else [inputs]), targets]


def same(one: Any, other: Any) -> bool:
    return all(torch.equal(a, b) for a, b in zip(tensors(one), tensors(other), strict=True))


def read_csv(file: Path) -> list[list[str]]:
    with file.open(newline="", encoding="utf-8") as lines:
        return list(csv.reader(lines))


def write_csv(file: Path, rows: list[list[str]]) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("w", newline="", encoding="utf-8") as lines:
        csv.writer(lines).writerows(rows)


def with_cells(file: Path, other: Path, column: str, cells: dict[int, str]) -> None:
    """Write a CSV file of which a column has other cells, by the numbers of their rows below the header."""
    header, *rows = read_csv(file)
    for number, cell in cells.items():
        rows[number][header.index(column)] = cell
    write_csv(other, [header, *rows])


def linked(data: Path, folder: Path, *splits: str) -> Path:
    """A folder that holds these splits of the data and no others."""
    folder.mkdir()
    for pattern in ("classes.txt", *(f"{split}*" for split in splits)):
        for path in data.glob(pattern):
            (folder / path.name).symlink_to(path)
    return folder


@pytest.mark.parametrize("task", TASKS)
def test_what_is_fitted_is_fitted_on_training_alone_and_needed_once(project, tmp_path, task):
    """Without the validation data it comes out the same; with it, validation needs no training data."""
    made = project(task=task)
    whole = made / "data"
    with at_hand(made, "config", "data") as [config, data]:
        fitted = preprocessing({"task": task}, made, [config, data])
        alone = config.Config(data_dir=linked(whole, tmp_path / "train", "train"))
        assert data.Preprocessing.fit(alone) == fitted
        of_split = getattr(data, dataset_name({"task": task}))
        expected = of_split(config.Config(data_dir=whole), "val", fitted)[0, [0, 1]]
        alone = config.Config(data_dir=linked(whole, tmp_path / "val", "val"))
        assert same(of_split(alone, "val", fitted)[0, [0, 1]], expected)


@pytest.mark.parametrize("split", ["train", "val"])
@pytest.mark.parametrize("task", TASKS)
def test_a_split_without_samples_is_refused_by_name(project, tmp_path, task, split):
    made = project(task=task)
    data_dir = linked(made / "data", tmp_path / "data", *{"train", "val"} - {split})
    for path in (made / "data").glob(f"{split}*"):
        if path.is_dir():
            (data_dir / path.name).mkdir()
        else:
            header = path.read_text(encoding="utf-8").splitlines()[0] if path.suffix == ".csv" else ""
            (data_dir / path.name).write_text(header, encoding="utf-8")
    with at_hand(made, "config", "data") as [config, data]:
        chosen = config.Config(data_dir=data_dir)
        with pytest.raises(SystemExit, match=rf"^[^\n]*{split}[^\n]*$"):
            if split == "train":
                data.Preprocessing.fit(chosen)
            getattr(data, dataset_name({"task": task}))(
                chosen, split, preprocessing({"task": task}, made, [config, data])
            )


@pytest.mark.parametrize("task", TASKS)
def test_a_data_set_goes_into_a_process_of_any_kind(project, task):
    """macOS and Windows start their workers anew: all that these work with is pickled."""
    made = project(task=task)
    with at_hand(made, "config", "data", "batches") as [config, data, batches]:
        chosen = config.Config(data_dir=made / "data", num_workers=1)
        val = getattr(data, dataset_name({"task": task}))(
            chosen, "val", preprocessing({"task": task}, made, [config, data])
        )
        loader = batches.training_loader(val, chosen)
        there, *_ = pickle.loads(pickle.dumps([loader.dataset, loader.collate_fn, loader.worker_init_fn]))
        key = next(iter(loader.sampler))
        assert same(there[key], val[key])


def test_training_with_workers_that_start_anew(project, warm, tmp_path):
    made = project(task="tabular-regression")
    train = ["train.py", "--epochs", "1", "--batch-size", "256"]
    warm.run(made, *train, "--run-dir", tmp_path / "forked")
    said = warm.run(made, DRIVERS / "spawn.py", *train, "--run-dir", tmp_path / "spawned", "--num-workers", "1")
    assert said.count("parameters on") == 1  # of this process: the workers do not train
    assert (tmp_path / "forked/metrics.jsonl").read_bytes() == (tmp_path / "spawned/metrics.jsonl").read_bytes()


AUGMENTED = [task for task, facts in catalogue()["tasks"].items() if facts.get("augments")]


@pytest.mark.parametrize("task", AUGMENTED)
def test_augmentation_differs_by_batch_and_epoch_and_by_nothing_else(project, task):
    """Not by worker, whatever its own generators hold; and validation has none."""
    made = project(task=task)
    with at_hand(made, "config", "data", "batches") as [config, data, batches]:
        chosen = config.Config(data_dir=made / "data", batch_size=16)
        fitted = preprocessing({"task": task}, made, [config, data])
        whole = getattr(data, dataset_name({"task": task}))(chosen, "train", fitted, augment=True)
        val = getattr(data, dataset_name({"task": task}))(chosen, "val", fitted)
        whole = Few(whole, 64)

        seeds = []

        def epoch(number: int, workers: int) -> dict[int, Tensor]:
            """The input of each sample, by its number."""
            settings = config.Config(batch_size=16, num_workers=workers)
            loader = batches.training_loader(whole, settings)
            loader.sampler.start_at(number, 0)
            taken = {}
            for (seed, indices), batch in zip(loader.sampler, loader, strict=True):
                seeds.append(seed)
                taken |= dict(zip(indices, batch[0], strict=True))
            return taken

        first, again, next_one = epoch(0, 2), epoch(0, 0), epoch(1, 2)
        assert len(first) == 64
        assert seeds[:4] == seeds[4:8]
        assert len(set(seeds[4:])) == 8
        assert all(torch.equal(first[i], again[i]) for i in first)
        assert sum(not torch.equal(first[i], next_one[i]) for i in first) > 48  # some chance leaves as they were
        assert not same(whole[1, [0] * 8], whole[2, [0] * 8])
        assert same(val[1, [0, 1]], val[2, [0, 1]])


class Few(Dataset):
    """The first samples of a data set."""

    def __init__(self, whole: Dataset, size: int) -> None:
        self.whole, self.size = whole, size

    def __getitem__(self, key: tuple[int, list[int]]) -> Any:
        return self.whole[key]

    def __len__(self) -> int:
        return self.size


class Draws(Dataset):
    """What a batch would draw from the generators of its process."""

    def __getitem__(self, key: tuple[int, list[int]]) -> Tensor:
        return torch.tensor([random.random(), np.random.random(), torch.rand(1).item()], dtype=torch.float64)

    def __len__(self) -> int:
        return 8


def test_workers_do_not_draw_the_same_numbers(project):
    """Of generators that own code may use though the batch brings a seed: by torch's seeds, which nothing overrides."""
    with at_hand(project(**TABLE), "config", "batches") as [config, batches]:
        loader = batches.training_loader(Draws(), config.Config(batch_size=1, num_workers=2))
        draws = torch.stack([draw for _ in range(2) for draw in loader])  # two epochs of the same workers
    for of_a_generator in draws.T:
        assert len(of_a_generator.unique()) == 16


def part_of(data: Path, folder: Path, **sizes: int) -> Path:
    """A folder with so many samples of each split. Of images in classes: of two for training, of one to validate on."""
    for names in data.glob("classes.txt"):
        folder.mkdir()
        (folder / names.name).write_bytes(names.read_bytes())
    for split, size in sizes.items():
        for file in data.glob(f"{split}.csv"):
            write_csv(folder / file.name, read_csv(file)[: size + 1])
        for file in data.glob(f"{split}/labels.csv"):
            write_csv(folder / split / file.name, read_csv(file)[: size + 1])
        for file in data.glob(f"{split}.txt"):
            folder.mkdir(exist_ok=True)
            (folder / file.name).write_text(file.read_text(encoding="utf-8")[: 40 * size], encoding="utf-8")
        folders = [path for path in [data / split, *sorted(data.glob(f"{split}/*/"))] if list(path.glob("*.png"))]
        for path in folders if folders and folders[0].name == "images" else folders[: 1 + (split == "train")]:
            for image in sorted(path.glob("*.png"))[:size]:
                copy = folder / image.relative_to(data)
                copy.parent.mkdir(parents=True, exist_ok=True)
                copy.write_bytes(image.read_bytes())
    return folder


ONE_BY_ONE = [*({"task": task} for task in TASKS), BINARY, MULTILABEL]


@pytest.mark.parametrize("answers", ONE_BY_ONE, ids=lambda answers: "-".join(answers.values()))
def test_batches_of_one_sample_and_one_sample_to_validate_on(project, warm, tmp_path, answers):
    """No dimension is lost, nothing is compared with everything, and batch norm has what it takes."""
    made = project(**answers)
    [line], said = trained_on_few(made, warm, tmp_path, answers, "1")
    assert " 1 validation" in said
    assert np.isfinite([line["train_loss"], line["val_loss"]]).all()


@pytest.mark.parametrize("answers", [{"task": "image-classification"}, WORDS], ids=["images", "words"])
def test_fewer_samples_than_a_batch_make_one_step(project, warm, tmp_path, answers):
    [line], said = trained_on_few(project(**answers), warm, tmp_path, answers, "512")
    assert "1 epochs of 1 steps" in said
    assert line["step"] == 1


def trained_on_few(
    made: Path, warm: Warm, tmp_path: Path, answers: dict[str, str], batch_size: str
) -> tuple[list[dict[str, Any]], str]:
    """The evaluations of an epoch, and what train.py said."""
    train, val = {
        "time-series-forecasting": (8, 6),
        "token-classification": (40, 1),
        "text-classification": (40, 1),
    }.get(answers["task"], (5, 1))
    flags = ["--epochs", "1", "--num-workers", "0", "--batch-size", batch_size, "--run-dir", tmp_path / "run"]
    flags += ["--data-dir", part_of(made / "data", tmp_path / "data", train=train, val=val)]
    if answers == SERIES:
        flags += ["--context-length", "4", "--horizon", "2", "--season", "2"]
    said = warm.run(made, DRIVERS / "strict.py", "train.py", *flags)
    return evaluations(tmp_path / "run"), said


def contents(made: Path, split: str) -> set[Any]:
    """The samples of a split, as they are in the files."""
    data = made / "data"
    if images := sorted(data.glob(f"{split}/**/*.png")):
        return {Image.open(image).tobytes() for image in images if image.parent.name != "masks"}
    return {tuple(row) for row in read_csv(data / f"{split}.csv")[1:]}


# Those of which a sample is more than a word or a line of source code, which may well be in both.
@pytest.mark.parametrize("task", [task for task in TASKS if task not in (LANGUAGE["task"], WORDS["task"])])
def test_no_sample_to_validate_on_is_trained_on(project, task):
    made = project(task=task)
    assert len(contents(made, "val")) > 30
    assert not contents(made, "train") & contents(made, "val")


@pytest.mark.parametrize(
    ("answers", "column", "cells"),
    [
        (TABLE, "sex", {0: "C", 1: "", 2: "Ω"}),
        (TEXTS, "text", {0: "Ωξ 北京 🙂", 1: "\u200b", 2: "zzyzx"}),
        (WORDS, "word", {0: "Ωξ", 1: "🙂", 2: "\u200b"}),
    ],
    ids=["a category", "texts", "words"],
)
def test_what_training_has_not_seen(project, warm, tmp_path, answers, column, cells):
    made = project(**answers)
    data = part_of(made / "data", tmp_path / "data", train=200, val=50)
    with_cells(data / "val.csv", data / "val.csv", column, cells)
    warm.run(made, "train.py", "--epochs", "1", "--data-dir", data, "--run-dir", tmp_path / "run")
    [line] = evaluations(tmp_path / "run")
    assert all(np.isfinite(value) for value in line.values())


def test_cells_that_are_missing(project, tmp_path):
    """In a column of numbers and in one of categories: in both splits, or in one alone."""
    made = project(**TABLE)
    header, *rows = read_csv(made / "data" / "train.csv")
    full = [row for row in rows if "" not in row]
    with at_hand(made, "config", "data", "model") as [config, data, model]:
        for splits in (["train", "val"], ["train"], ["val"]):
            for split in ("train", "val"):
                file = tmp_path / f"{split}.csv"
                write_csv(file, [header, *full])
                if split in splits:
                    with_cells(file, file, "sex", {0: "", 3: "", 5: "NA"})
                    with_cells(file, file, "bmi", {0: "", 4: "nan"})
            chosen = config.Config(data_dir=tmp_path)
            fitted = data.Preprocessing.fit(chosen)
            assert ("" in fitted.categories["sex"]) == ("bmi" in fitted.gaps) == ("train" in splits)
            for split in ("train", "val"):
                features = data.Rows(chosen, split, fitted).features
                assert features.shape == (len(full), fitted.n_features)
                assert features.isfinite().all()
                assert model.make_model(fitted)(features).isfinite().all()


def alphabet(folder: Path, size: int) -> Path:
    """In both splits a text of so many tokens, each the one before plus 1: a byte each, and no two to be merged."""
    for split in ("train", "val"):
        (folder / f"{split}.txt").write_text("".join(chr(33 + i) for i in range(size)), encoding="utf-8")
    return folder


@pytest.mark.parametrize(("size", "windows"), [(10, 3), (9, 2), (5, 1), (3, 1)])
def test_every_token_but_the_first_is_predicted_once_from_the_one_before(project, tmp_path, size, windows):
    """A text shorter than a window too: what is missing of it counts for nothing."""
    made = project(**LANGUAGE)
    with at_hand(made, "config", "data") as [config, data]:
        chosen = config.Config(data_dir=alphabet(tmp_path, size), context_length=4, vocabulary_size=256)
        fitted = data.Preprocessing.fit(chosen)
        val = data.Windows(chosen, "val", fitted)
        assert len(val.ids) == size
        assert len(val) == windows
        tokens, next_tokens = val[0, list(range(windows))]
        real = next_tokens != data.IGNORE
        assert next_tokens[real].tolist() == val.ids[1:].tolist()
        assert (next_tokens[real] == tokens[real] + 1).all()

        train = data.Windows(chosen, "train", fitted, augment=True)
        starts = set()
        for seed in range(200):
            tokens, next_tokens = train[seed, list(range(windows))]
            real = next_tokens != data.IGNORE
            assert (next_tokens[real] == tokens[real] + 1).all()
            assert real[:, 0].all()
            starts |= set((tokens[:, 0] - val.ids[0]).tolist())
        assert starts == set(range(max(size - 5, 0) + 1))


def test_a_text_of_one_token_is_refused(project, warm, tmp_path):
    made = project(**LANGUAGE)
    said = warm.run(
        made, "train.py", "--data-dir", alphabet(tmp_path, 1), "--run-dir", tmp_path / "run", status=1
    ).strip()
    assert "train.txt is too short" in said.splitlines()[-1]
