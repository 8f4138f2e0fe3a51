"""A user's mistake in the data or the settings of a task ends train.py with one line, which names the place."""

import csv
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

pytestmark = pytest.mark.xdist_group("bad input")


def edit_csv(file: Path, edit: Callable[[list[list[str]]], list[list[str]]]) -> None:
    with file.open(newline="", encoding="utf-8") as lines:
        rows = edit(list(csv.reader(lines)))
    with file.open("w", newline="", encoding="utf-8") as lines:
        csv.writer(lines, lineterminator="\n").writerows(rows)


def mask(data: Path) -> tuple[Path, np.ndarray]:
    file = min(data.glob("train/masks/*.png"))
    return file, np.array(Image.open(file))


def unknown_class(data: Path) -> None:
    (data / "classes.txt").write_text("".join(f"class {i}\n" for i in range(11)))
    file, values = mask(data)
    values[0, 0] = 77
    Image.fromarray(values).save(file)


def other_size(data: Path) -> None:
    file, values = mask(data)
    Image.fromarray(values[:-2]).save(file)


def coloured(data: Path) -> None:
    file, _ = mask(data)
    Image.open(file).convert("RGB").save(file)


def all_void(data: Path) -> None:
    file, values = mask(data)
    Image.fromarray(np.full_like(values, 255)).save(file)


def rows_edited(name: str, edit: Callable[[list[list[str]]], list[list[str]]]) -> Callable[[Path], None]:
    return lambda data: edit_csv(data / name, edit)


def with_cell(row: int, column: int, text: str) -> Callable[[list[list[str]]], list[list[str]]]:
    def edit(rows: list[list[str]]) -> list[list[str]]:
        rows[row][column] = text
        return rows

    return edit


SEGMENTATION = {"task": "image-segmentation"}
REGRESSION = {"task": "image-regression"}
LABELS = {"task": "image-classification", "labels": "multilabel"}
TEXTS = {"task": "text-regression"}
WORDS = {"task": "token-classification"}
SERIES = {"task": "time-series-forecasting"}

MISTAKES = {
    "a mask with an unknown class": (SEGMENTATION, unknown_class, ["masks/", "77", "classes"]),
    "a mask of another size": (SEGMENTATION, other_size, ["masks/", "must be the same"]),
    "a mask in colour": (SEGMENTATION, coloured, ["masks/", "RGB"]),
    "a mask without a class": (SEGMENTATION, all_void, ["masks/", "void throughout"]),
    "an image without a mask": (SEGMENTATION, lambda data: mask(data)[0].unlink(), ["has no mask"]),
    "labels of an image that is not there": (
        REGRESSION,
        rows_edited("train/labels.csv", with_cell(3, 0, "nowhere.png")),
        ["labels.csv, line 4", "nowhere.png"],
    ),
    "a value that is no number": (
        REGRESSION,
        rows_edited("train/labels.csv", with_cell(3, 1, "much")),
        ["labels.csv, line 4"],
    ),
    "a label that is neither 0 nor 1": (
        LABELS,
        rows_edited("train/labels.csv", with_cell(3, 1, "2")),
        ["labels.csv, line 4", "0 or 1"],
    ),
    "a text without a number": (TEXTS, rows_edited("train.csv", with_cell(3, 1, "long")), ["train.csv", "long"]),
    "a tag that training lacks": (WORDS, rows_edited("val.csv", with_cell(3, 2, "B-moon")), ["val.csv", "B-moon"]),
    "words without their column": (WORDS, rows_edited("train.csv", with_cell(0, 1, "token")), ["train.csv", "word"]),
    "a series shorter than one window": (
        SERIES,
        rows_edited("val.csv", lambda rows: rows[:30]),
        ["val.csv", "29 rows"],
    ),
    "a series with a cell that is no number": (
        SERIES,
        rows_edited("train.csv", with_cell(9, 1, "high")),
        ["train.csv, line 10", "high"],
    ),
}


@pytest.mark.parametrize(("answers", "break_it", "said"), MISTAKES.values(), ids=MISTAKES)
def test_a_mistake_in_the_data(project, warm, tmp_path, answers, break_it, said):
    made = project(**answers)
    shutil.copytree(made / "data", tmp_path / "data")
    break_it(tmp_path / "data")
    flags = ["--data-dir", tmp_path / "data", "--run-dir", tmp_path / "run", "--epochs", "1", "--num-workers", "0"]
    output = warm.run(made, "train.py", *flags, status=1).strip()
    assert "Traceback" not in output
    for words in said:
        assert words in output.splitlines()[-1]


@pytest.mark.parametrize(
    "quantiles", [["0", "0.5"], ["0.5", "1"], ["0.9", "0.1"], ["0.5", "0.5"], ["0.5", "nan"]], ids=" ".join
)
def test_quantiles_that_are_none(project, warm, quantiles):
    made = project(task="tabular-regression", loss="quantile")
    output = warm.run(made, "train.py", "--quantiles", *quantiles, status=2).strip()
    assert "\n" not in output
    assert "--quantiles" in output
