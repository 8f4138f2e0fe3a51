"""What the default project of each task reaches on its sample data, beside a simple model on the same rows.

    python bench/report.py                        all tasks, some minutes on two cores
    python bench/report.py --only tabular-binary
    python bench/report.py --seeds 1              one run of each

Each project is rendered into a temporary folder, writes its sample data there and is trained and evaluated by its own
commands, with their default flags; tables, which train in seconds, with seeds 0 to 4. Its score is that of best.pt,
which is chosen on the same validation data. The other models come from scikit-learn with its default settings, except
the language model's, which is counted here.
"""

import argparse
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import mean
from typing import Any

import numpy as np
import pandas as pd
from PIL import Image
from sklearn.base import BaseEstimator
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.feature_extraction import DictVectorizer
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.metrics import jaccard_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from plainloop.examples import write_project
from plainloop.render import render


def pixels(data: Path) -> tuple[float, str]:
    """Accuracy of logistic regression on the pixels."""
    splits = []
    for split in ("train", "val"):
        files = sorted(data.glob(f"{split}/*/*.png"))
        images = np.stack([np.asarray(Image.open(file), dtype=float).ravel() / 255 for file in files])
        splits += [images, [file.parent.name for file in files]]
    train, train_labels, val, val_labels = splits
    return LogisticRegression(max_iter=5000).fit(train, train_labels).score(val, val_labels), f"{len(val)} images"


def neighbourhoods(data: Path) -> tuple[float, str]:
    """Mean IoU of logistic regression on the 9 x 9 pixels around each; of the training pixels, every third."""
    splits = []
    for split in ("train", "val"):
        files = sorted(data.glob(f"{split}/images/*.png"))
        images = np.stack([np.pad(np.asarray(Image.open(file), dtype=np.float32) / 255, 4) for file in files])
        windows = np.lib.stride_tricks.sliding_window_view(images, (9, 9), axis=(1, 2)).reshape(-1, 81)
        masks = np.stack([np.asarray(Image.open(data / split / "masks" / file.name)) for file in files]).ravel()
        splits += [windows[masks != 255], masks[masks != 255]]  # without what is void
    train, train_classes, val, val_classes = splits
    predicted = LogisticRegression(max_iter=300).fit(train[::3], train_classes[::3]).predict(val)
    score = jaccard_score(val_classes, predicted, average="macro")
    return float(score), f"{len(files)} images"


def pixels_to_number(data: Path) -> tuple[float, str]:
    """R² of ridge regression on the pixels."""
    splits = []
    for split in ("train", "val"):
        rows = pd.read_csv(data / split / "labels.csv")
        images = [np.asarray(Image.open(data / split / file), dtype=float).ravel() / 255 for file in rows["file"]]
        splits += [np.stack(images), rows["angle"]]
    train, train_numbers, val, val_numbers = splits
    return Ridge().fit(train, train_numbers).score(val, val_numbers), f"{len(val)} images"


def table(model: BaseEstimator, target: str) -> Callable[[Path], tuple[float, str]]:
    """Accuracy or R² of a linear model on the columns of a table."""

    def score(data: Path) -> tuple[float, str]:
        numbers = make_pipeline(SimpleImputer(), StandardScaler())
        categories = make_pipeline(
            SimpleImputer(strategy="constant", fill_value="missing"), OneHotEncoder(handle_unknown="ignore")
        )
        columns = make_column_transformer(
            (numbers, make_column_selector(dtype_include="number")),
            (categories, make_column_selector(dtype_exclude="number")),
        )
        pipeline = make_pipeline(columns, model)
        train, val = pd.read_csv(data / "train.csv"), pd.read_csv(data / "val.csv")
        pipeline.fit(train.drop(columns=target), train[target])
        return pipeline.score(val.drop(columns=target), val[target]), f"{len(val)} rows"

    return score


def tf_idf(model: BaseEstimator, target: str) -> Callable[[Path], tuple[float, str]]:
    """Accuracy or R² of a linear model on the words of a text."""

    def score(data: Path) -> tuple[float, str]:
        train, val = pd.read_csv(data / "train.csv"), pd.read_csv(data / "val.csv")
        pipeline = make_pipeline(TfidfVectorizer(), model).fit(train["text"], train[target])
        return pipeline.score(val["text"], val[target]), f"{len(val)} texts"

    return score


def word_and_neighbours(data: Path) -> tuple[float, str]:
    """Entity F1 of logistic regression on a word and the two beside it."""
    splits = []
    for split in ("train", "val"):
        table = pd.read_csv(data / f"{split}.csv", keep_default_na=False)
        of_sentence = table.groupby("sentence")["word"]
        table["left"], table["right"] = of_sentence.shift(1, fill_value=""), of_sentence.shift(-1, fill_value="")
        splits += [table[["left", "word", "right"]].to_dict("records"), table]
    words, train, val_words, val = splits
    model = make_pipeline(DictVectorizer(), LogisticRegression(max_iter=5000)).fit(words, train["tag"])
    there = entities(val["sentence"], val["tag"])
    claimed = entities(val["sentence"], model.predict(val_words))
    f1 = 2 * len(there & claimed) / (len(there) + len(claimed))
    return f1, f"{val['sentence'].nunique()} sentences"


def entities(sentences: Iterable[int], tags: Iterable[str]) -> set[tuple[Any, ...]]:
    """The places of the words of each entity, its type in front."""
    found: list[list[Any]] = []
    last = None  # the sentence and the type that an I- would continue
    for place, (sentence, tag) in enumerate(zip(sentences, tags, strict=True)):
        if tag.startswith("I-") and last == (sentence, tag[2:]):
            found[-1].append(place)
        elif tag != "O":
            found.append([tag[2:], place])
        last = (sentence, tag[2:])
    return {tuple(entity) for entity in found}


def byte_trigram(data: Path) -> tuple[float, str]:
    """Bits per byte of an interpolation of byte trigrams, bigrams, single bytes and 1/256.

    The weights of the four are fitted by EM on the last tenth of the training text, with the counts of the rest.
    """
    train, val = (np.frombuffer((data / f"{split}.txt").read_bytes(), dtype=np.uint8) for split in ("train", "val"))
    cut = len(train) * 9 // 10
    estimates = ngram_probabilities(train[:cut], train[cut:])
    weights = np.full(4, 0.25)
    for _ in range(50):
        shares = weights * estimates
        weights = (shares / shares.sum(axis=1, keepdims=True)).mean(axis=0)
    return float(-np.log2(ngram_probabilities(train, val) @ weights).mean()), f"{len(val)} bytes"


def ngram_probabilities(text: np.ndarray, held_out: np.ndarray) -> np.ndarray:
    """For each byte of `held_out` from the third: its share in `text` after two bytes, after one, after none; 1/256."""
    columns = []
    for n in (3, 2, 1):
        counts = np.bincount(codes(text, n), minlength=256**n).astype(np.float32)
        seen = codes(held_out[3 - n :], n)
        after = counts.reshape(-1, 256).sum(axis=1)[seen // 256]
        columns.append(counts[seen] / np.maximum(after, 1))
    return np.stack([*columns, np.full(len(held_out) - 2, 1 / 256)], axis=1)


def codes(text: np.ndarray, n: int) -> np.ndarray:
    """Every run of n bytes as one number, its last byte in the lowest place."""
    return sum(text[i : len(text) - n + 1 + i].astype(np.int64) * 256 ** (n - 1 - i) for i in range(n))


def lagged(data: Path) -> tuple[float, str]:
    """MAE of a ridge regression from the last 150 values to the next 20; beside it, of the last 143 over again."""
    context, horizon, season = 150, 20, 143  # as the project has them
    series = [pd.read_csv(data / f"{split}.csv")["potential_mv"].to_numpy() for split in ("train", "val")]
    train, val = (np.lib.stride_tricks.sliding_window_view(values, context + horizon) for values in series)
    past, future = val[:, :context], val[:, context:]
    forecast = Ridge().fit(train[:, :context], train[:, context:]).predict(past)
    naive = np.abs(past[:, -season:][:, np.arange(horizon) % season] - future).mean()
    return float(np.abs(forecast - future).mean()), f"{len(val)} windows (seasonal naive: {naive:.4f})"


@dataclass(frozen=True)
class Task:
    """A project, the metric that is compared, and the simple model on the same data."""

    answers: Mapping[str, Any]
    metric: str
    baseline: str
    measure_baseline: Callable[[Path], tuple[float, str]]  # its score, and how much validation data there is
    seeds: int = 1


TASKS = {
    "image-classification": Task({}, "accuracy", "logistic regression on pixels", pixels),
    "image-segmentation": Task(
        {"task": "image-segmentation"}, "miou", "logistic regression on 9 x 9 pixels", neighbourhoods
    ),
    "tabular-binary": Task(
        {"task": "tabular-classification", "labels": "binary"},
        "accuracy",
        "logistic regression",
        table(LogisticRegression(max_iter=5000), "diagnosis"),
        seeds=5,
    ),
    "tabular-multiclass": Task(
        {"task": "tabular-classification"},
        "accuracy",
        "logistic regression",
        table(LogisticRegression(max_iter=5000), "cultivar"),
        seeds=5,
    ),
    "tabular-regression": Task(
        {"task": "tabular-regression"},
        "r2",
        "linear regression",
        table(LinearRegression(), "progression"),
        seeds=5,
    ),
    "image-regression": Task({"task": "image-regression"}, "r2", "ridge regression on pixels", pixels_to_number),
    "text-classification": Task(
        {"task": "text-classification"},
        "accuracy",
        "logistic regression on TF-IDF",
        tf_idf(LogisticRegression(max_iter=5000), "label"),
    ),
    "text-regression": Task({"task": "text-regression"}, "r2", "ridge regression on TF-IDF", tf_idf(Ridge(), "value")),
    "token-classification": Task(
        {"task": "token-classification"}, "f1", "logistic regression on a word and its neighbours", word_and_neighbours
    ),
    "language-modeling": Task(
        {"task": "language-modeling"}, "bits_per_byte", "interpolated byte trigram", byte_trigram
    ),
    "time-series-forecasting": Task(
        {"task": "time-series-forecasting"}, "mae", "ridge regression on the window", lagged, seeds=3
    ),
}


def python(project: Path, *command: str) -> str:
    """What a command of the project prints."""
    result = subprocess.run([sys.executable, *command], cwd=project, capture_output=True, text=True)
    if result.returncode:
        sys.exit(f"python {' '.join(command)} ended with {result.returncode}\n{result.stdout[-2000:]}{result.stderr}")
    return result.stdout


def measure(project: Path, metric: str, seed: int) -> tuple[float, float]:
    """The metric of best.pt, and the seconds that train.py took, its start included."""
    start = time.perf_counter()
    python(project, "train.py", "--overwrite", "--seed", str(seed))
    seconds = time.perf_counter() - start
    printed = python(project, "evaluate.py", "--checkpoint", "runs/default/best.pt")
    values = dict(line.split() for line in printed.split("\n\n")[0].splitlines())
    return float(values[f"val_{metric}"]), seconds


def main() -> None:
    """Print the table, a line as soon as it is known."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", choices=TASKS, help="this task alone")
    parser.add_argument("--seeds", type=int, help="runs of each project, with seeds 0, 1, …")
    arguments = parser.parse_args()
    print("| project | metric | score (lowest to highest) | runs | simple model | its score | validation | training |")
    print("|---|---|---|---|---|---|---|---|")
    for name in [arguments.only] if arguments.only else TASKS:
        task = TASKS[name]
        with tempfile.TemporaryDirectory() as folder:
            project = Path(folder)
            write_project(project, render(task.answers))
            python(project, "sample_data.py")
            baseline, size = task.measure_baseline(project / "data")
            runs = [measure(project, task.metric, seed) for seed in range(arguments.seeds or task.seeds)]
        scores, seconds = zip(*runs, strict=True)
        print(
            f"| {name} | {task.metric} | {mean(scores):.4f} ({min(scores):.4f} to {max(scores):.4f}) | {len(runs)}"
            f" | {task.baseline} | {baseline:.4f} | {size} | {mean(seconds):.0f} s |",
            flush=True,
        )


if __name__ == "__main__":
    main()
