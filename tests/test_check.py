"""check.py finds what is planted, says so in words, and is silent about a sound project."""

import csv
import functools
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from conftest import ROOT
from modules import imported_from
from plainloop.catalogue import catalogue

pytestmark = pytest.mark.xdist_group("check")

SOUND = [
    *({"task": task} for task in catalogue()["tasks"]),
    {"task": "image-classification", "labels": "binary", "optimizer": "muon", "amp": "fp16"},
    {"task": "tabular-classification", "labels": "multilabel", "optimizer": "lbfgs"},
    {"task": "tabular-classification", "loss": "weighted-cross-entropy", "optimizer": "adafactor"},
    {"task": "tabular-regression", "loss": "gaussian-nll", "optimizer": "sgd", "gradient_accumulation": True},
    {"task": "time-series-forecasting", "loss": "quantile", "optimizer": "schedule-free-adamw", "amp": "bf16"},
    {
        "task": "text-classification",
        "labels": "binary",
        "loss": "weighted-bce",
        "optimizer": "rmsprop",
        "compile": True,
    },
]


@pytest.mark.parametrize("answers", SOUND, ids=lambda answers: "-".join(map(str, answers.values())))
def test_a_sound_project_is_silent(warm, project, answers):
    folder = project(**answers)
    before = {path for path in folder.rglob("*") if "__pycache__" not in path.parts}
    said = warm.run(folder, "check.py")
    slow = "float16 on a CPU: many times slower than float32"
    allowed = (IDLES, slow) if answers.get("amp") == "fp16" else (IDLES,)
    found = findings(said)
    assert not [line for line in found if not any(words in line for words in allowed)], said
    assert slow not in allowed or any(slow in line for line in found)
    assert said.rstrip().endswith(": python train.py, with the same flags")
    left = {path for path in folder.rglob("*") if "__pycache__" not in path.parts} - before
    assert left <= {folder / "runs", folder / "runs" / "check.png"}


IDLES = "the device idles"
"""Whether the data come in time is a matter of the machine, for a sound project too."""


def findings(said: str) -> list[str]:
    """The lines that are not in order."""
    told = said.partition("\nto fix:")[0]
    return [line for line in told.splitlines() if line.startswith(("warning", "wrong"))]


def replace(file: str, old: str, new: str) -> Callable[[Path], None]:
    """An edit of a generated file; what it looks for must stand there."""

    def edit(folder: Path) -> None:
        text = (folder / file).read_text(encoding="utf-8")
        assert old in text, f"{file} has no {old!r}"
        (folder / file).write_text(text.replace(old, new), encoding="utf-8")

    return edit


def first_rows_into_val(folder: Path) -> None:
    """Rows of training that are in validation too."""
    train, val = (folder / "data" / f"{split}.csv" for split in ("train", "val"))
    with train.open(newline="", encoding="utf-8") as file:
        rows = list(csv.reader(file))[1:40]
    with val.open("a", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows(rows)


def an_image_into_val(folder: Path) -> None:
    shutil.copy(next((folder / "data/train/3").iterdir()), folder / "data/val/3/again.png")


def an_image_and_its_mask_into_val(folder: Path) -> None:
    for kind in ("images", "masks"):
        shutil.copy(folder / f"data/train/{kind}/0000.png", folder / f"data/val/{kind}/again.png")


def text_into_val(folder: Path) -> None:
    text = (folder / "data/train.txt").read_text(encoding="utf-8")
    (folder / "data/val.txt").write_text(text[5_001:60_000], encoding="utf-8")


def train_reaches_into_val(folder: Path) -> None:
    train, val = (folder / "data" / f"{split}.csv" for split in ("train", "val"))
    lines = val.read_text(encoding="utf-8").splitlines(keepends=True)
    train.write_text(train.read_text(encoding="utf-8") + "".join(lines[1:50]), encoding="utf-8")


def a_column(values: Callable[[int], str]) -> Callable[[Path], None]:
    """A column more in a table, of these cells."""

    def edit(folder: Path) -> None:
        for split in ("train", "val"):
            file = folder / "data" / f"{split}.csv"
            header, *lines = file.read_text(encoding="utf-8").splitlines()
            lines = [f"{values(i)},{line}" for i, line in enumerate(lines)]
            file.write_text("\n".join([f"added,{header}", *lines]) + "\n", encoding="utf-8")

    return edit


def no_sample_of_a_label(folder: Path) -> None:
    file = folder / "data/train/labels.csv"
    with file.open(newline="", encoding="utf-8") as opened:
        header, *rows = csv.reader(opened)
    with file.open("w", newline="", encoding="utf-8") as opened:
        csv.writer(opened).writerows([header, *([*row[:-1], "0"] for row in rows)])


def drop_class(split: str) -> Callable[[Path], None]:
    return lambda folder: shutil.rmtree(folder / "data" / split / "3")


TABLE = {"task": "tabular-classification"}
BINARY = {"task": "tabular-classification", "labels": "binary"}
NUMBER = {"task": "tabular-regression"}
IMAGES = {"task": "image-classification"}
LABELLED = {"task": "image-classification", "labels": "multilabel"}
MASKS = {"task": "image-segmentation"}
TEXTS = {"task": "text-classification"}
WORDS = {"task": "token-classification"}
CORPUS = {"task": "language-modeling"}
SERIES = {"task": "time-series-forecasting"}

FORWARD = "return self.head(self.layers(features))"

OUT_OF_MEMORY = replace("model.py", FORWARD, 'raise __import__("torch").OutOfMemoryError')

# name: answers, edits, flags, status, words of the one finding
PLANTS = {
    # the model
    "layers in a list": (
        TABLE,
        [
            replace("model.py", "self.layers = nn.Sequential(", "self.layers = list(("),
            replace(
                "model.py", "            nn.Dropout(0.3),\n        )\n", "            nn.Dropout(0.3),\n        ))\n"
            ),
            replace(
                "model.py",
                FORWARD,
                "for layer in self.layers:\n            features = layer(features)\n        return self.head(features)",
            ),
        ],
        [],
        1,
        "model.layers[0], model.layers[1], model.layers[2] and 3 more: layers that the model does not know",
    ),
    "one layer in a dictionary": (
        IMAGES,
        [
            replace(
                "model.py",
                "self.head = nn",
                'self.more = {"head": nn.Linear(n_logits, n_logits)}\n        self.head = nn',
            ),
            replace(
                "model.py",
                "return self.head(self.features(images))",
                'return self.more["head"](self.head(self.features(images)))',
            ),
        ],
        [],
        1,
        "model.more['head']: layers that the model does not know",
    ),
    "a tensor that is no parameter": (
        TABLE,
        [
            replace(
                "model.py", "self.layers =", "self.scale = torch.ones(1, requires_grad=True)\n        self.layers ="
            ),
            replace("model.py", "from torch import", "import torch\nfrom torch import"),
            replace("model.py", FORWARD, "return self.head(self.layers(features)) * self.scale"),
        ],
        [],
        1,
        "model.scale: tensors that the model does not know",
    ),
    "a layer outside of the model": (
        TABLE,
        [
            replace("model.py", "\n\nclass Model", "\n\nLAYER = nn.Linear(3, 3)\n\n\nclass Model"),
            replace("model.py", FORWARD, "return LAYER(self.head(self.layers(features)))"),
        ],
        [],
        1,
        "2 tensors that the model does not hold get a gradient",
    ),
    "no parameters": (
        IMAGES,
        [
            replace(
                "model.py",
                "return Model(n_logits=len(preprocessing.classes))",
                "return nn.Sequential(nn.Flatten(), nn.AdaptiveAvgPool1d(10))",
            )
        ],
        [],
        1,
        "the model has 0 parameters",
    ),
    "a frozen layer": (
        TABLE,
        [replace("model.py", "self.head = nn", "self.layers[0].requires_grad_(False)\n        self.head = nn")],
        [],
        0,
        "layers.0.weight, layers.0.bias: frozen",
    ),
    "all frozen": (
        IMAGES,
        [
            replace(
                "model.py",
                "return Model(n_logits=len(preprocessing.classes))",
                "return Model(n_logits=len(preprocessing.classes)).requires_grad_(False)",
            )
        ],
        [],
        1,
        "parameters are frozen: nothing would be trained",
    ),
    "a detach": (
        TABLE,
        [replace("model.py", FORWARD, "return self.head(self.layers(features).detach())")],
        [],
        1,
        "layers.0.weight, layers.0.bias, layers.3.weight and 1 more: no gradient reaches them, so they never change",
    ),
    "a detach in a transformer": (
        WORDS,
        [replace("model.py", "x = block(x, attention_mask)", "x = block(x, attention_mask).detach()")],
        [],
        1,
        "no gradient reaches them, so they never change",
    ),
    "a forward pass without gradients": (
        TABLE,
        [
            replace("model.py", "    def forward(", "    @torch.no_grad()\n    def forward("),
            replace("model.py", "from torch import", "import torch\nfrom torch import"),
        ],
        [],
        1,
        "layers.0.weight, layers.0.bias, layers.3.weight and 3 more: used under no_grad() alone",
    ),
    "half of a forward pass without gradients": (
        IMAGES,
        [
            replace(
                "model.py",
                "return self.head(self.features(images))",
                "with torch.no_grad():\n            x = self.features(images)\n        return self.head(x)",
            ),
            replace("model.py", "from torch import", "import torch\nfrom torch import"),
        ],
        [],
        1,
        "used under no_grad() alone",
    ),
    "an unused branch": (
        TABLE,
        [replace("model.py", "self.head = nn", "self.branch = nn.Linear(width, width)\n        self.head = nn")],
        [],
        0,
        "branch.weight, branch.bias: no part of the forward pass",
    ),
    "an unused branch of a text model": (
        TEXTS,
        [replace("model.py", "mixed = self.neighbours(embedded.transpose(1, 2)).transpose(1, 2)", "mixed = embedded")],
        [],
        0,
        "neighbours.weight, neighbours.bias: no part of the forward pass",
    ),
    "a gradient of NaN": (
        NUMBER,
        [
            replace(
                "model.py",
                "return self.head(self.layers(features)).squeeze(-1)",
                "x = self.head(self.layers(features)).squeeze(-1)\n        return x + (x - x).sqrt()",
            )
        ],
        [],
        1,
        "NaN or infinity for a gradient, which ruins them",
    ),
    "a softmax": (
        TABLE,
        [replace("model.py", FORWARD, FORWARD + ".softmax(dim=1)")],
        [],
        1,
        "the model ends in softmax",
    ),
    "a softmax by hand": (
        TABLE,
        [
            replace(
                "model.py",
                FORWARD,
                "x = self.head(self.layers(features)).exp()\n        return x / x.sum(dim=1, keepdim=True)",
            )
        ],
        [],
        1,
        "the outputs of the model are probabilities",
    ),
    "a softmax over masks": (
        MASKS,
        [replace("model.py", "return self.head(full)", "return self.head(full).softmax(dim=1)")],
        [],
        1,
        "the model ends in softmax",
    ),
    "a softmax over tags": (
        WORDS,
        [replace("model.py", "return self.head(self.norm(x))", "return self.head(self.norm(x)).softmax(dim=-1)")],
        [],
        1,
        "the model ends in softmax",
    ),
    "a sigmoid": (
        BINARY,
        [replace("model.py", ".squeeze(-1)", ".squeeze(-1).sigmoid()")],
        [],
        1,
        "the model ends in sigmoid, and the loss applies its own to what it is given: it would learn slowly and never"
        " be sure; leave the sigmoid out of model.py",
    ),
    "a ReLU before a number": (
        NUMBER,
        [replace("model.py", ".squeeze(-1)", ".relu().squeeze(-1)")],
        [],
        1,
        "the model ends in relu, so it only gives 0 and up, and targets are standard deviations",
    ),
    "a tanh before a quantile": (
        {**SERIES, "loss": "quantile"},
        [
            replace("model.py", "return last + self.head(x)", "return last + self.head(x).tanh()"),
            replace("model.py", "return last + ", "return "),
        ],
        [],
        1,
        "the model ends in tanh, so it only gives -1 to 1, and quantiles are in standard deviations",
    ),
    "a column in place of a row": (
        NUMBER,
        [replace("model.py", ".squeeze(-1)", "")],
        [],
        1,
        "would be compared with targets as N",
    ),
    "too many outputs": (
        TABLE,
        [replace("model.py", "nn.Linear(width, n_logits)", "nn.Linear(width, n_logits + 1)")],
        [],
        1,
        "but the loss takes (32, 3)",
    ),
    "a layer of another size": (
        TABLE,
        [replace("model.py", "nn.Linear(width, n_logits)", "nn.Linear(width + 1, n_logits)")],
        [],
        1,
        "model.py, line ",
    ),
    "a forward pass of other arguments": (
        TEXTS,
        [replace("model.py", "attention_mask: Tensor", "padding: Tensor")],
        [],
        1,
        "unexpected keyword argument 'attention_mask'; correct model.py or data.py",
    ),
    "a layer that the model does not have": (
        TABLE,
        [replace("model.py", FORWARD, "return self.haed(self.layers(features))")],
        [],
        1,
        "return self.haed(self.layers(features)): 'Model' object has no attribute 'haed'",
    ),
    "a tensor on another device": (
        IMAGES,
        [
            replace("model.py", "self.head = nn", 'self.scale = torch.ones(1, device="meta")\n        self.head = nn'),
            replace("model.py", "from torch import", "import torch\nfrom torch import"),
            replace(
                "model.py",
                "return self.head(self.features(images))",
                "return self.head(self.features(images)) * self.scale",
            ),
        ],
        [],
        1,
        "model.scale is on meta, and the batches come on cpu",
    ),
    "a parameter on another device": (
        TABLE,
        [replace("model.py", "nn.Linear(width, n_logits)", 'nn.Linear(width, n_logits, device="meta")')],
        [],
        1,
        "head.weight, head.bias: on the device meta, where tensors have no numbers, so they cannot be moved",
    ),
    "a buffer on another device": (
        TABLE,
        [
            replace(
                "model.py",
                "self.head = nn",
                'self.register_buffer("scale", self.layers[0].bias.to("meta"))\n        self.head = nn',
            )
        ],
        [],
        1,
        "scale: on the device meta",
    ),
    "outputs on another device": (
        TABLE,
        [replace("model.py", FORWARD, FORWARD + '.to("meta")')],
        [],
        1,
        "logits on meta, labels on cpu",
    ),
    "NaN from the model": (
        TABLE,
        [replace("model.py", FORWARD, FORWARD + ' * float("nan")')],
        [],
        1,
        "NaN or infinity in the logits, none in the batch",
    ),
    "large logits": (
        TABLE,
        [replace("model.py", FORWARD, FORWARD + " * 1000")],
        [],
        0,
        "too large logits",
    ),
    "an answer in the input": (
        BINARY,
        [
            replace("data.py", "self.labels = torch", "self.features[:, 0] = self.labels = torch"),
            replace("model.py", ".squeeze(-1)", ".squeeze(-1) + 8 * features[:, 0] - 4"),
        ],
        [],
        0,
        "it seems to know the answer",
    ),
    "a loss that is a mean": (
        TABLE,
        [replace("evaluate.py", 'reduction="sum"', 'reduction="mean"')],
        [],
        1,
        "give the loss reduction sum",
    ),
    "an optimizer without the head": (
        TABLE,
        [
            replace(
                "train.py",
                "for parameter in model.parameters() if parameter.requires_grad",
                "for parameter in model.layers.parameters() if parameter.requires_grad",
            )
        ],
        [],
        1,
        "head.weight, head.bias: not in the optimizer",
    ),
    "an optimizer with more than the model": (
        TABLE,
        [
            replace(
                "train.py",
                "    groups = [",
                "    parameters.append(torch.nn.Parameter(torch.zeros(3)))\n    groups = [",
            )
        ],
        [],
        1,
        "the optimizer holds 1 tensors that are no trained parameters",
    ),
    # the data
    "images from 0 to 255": (
        IMAGES,
        [replace("data.py", ".float() / 255", ".float()")],
        [],
        0,
        "from 0 to 255: large numbers",
    ),
    "images that are hardly different from 0": (
        IMAGES,
        [replace("data.py", ".float() / 255", ".float() / 255**2")],
        [],
        0,
        "small numbers",
    ),
    "images that are black": (
        IMAGES,
        [replace("data.py", ".float() / 255", ".float() * 0")],
        [],
        0,
        "all the same number, so there is nothing to see",
    ),
    "inputs of another type": (
        TABLE,
        [replace("data.py", "self.features[rows]", "self.features[rows].double()")],
        [],
        1,
        "the model's weights are float32, and features must be",
    ),
    "a history of another type": (
        SERIES,
        [replace("data.py", "windows[:, : self.context_length]", "windows[:, : self.context_length].double()")],
        [],
        1,
        "the model takes history (",
    ),
    "token numbers of another type": (
        TEXTS,
        [replace("data.py", '{"input_ids": input_ids,', '{"input_ids": input_ids.int(),')],
        [],
        1,
        "the model takes token numbers (N, T) of type int64",
    ),
    "tokens of another type": (
        CORPUS,
        [replace("data.py", "return window[:, :-1]", "return window[:, :-1].int()")],
        [],
        1,
        "the model takes token numbers (N, T) of type int64",
    ),
    "tokens in one row": (
        CORPUS,
        [replace("data.py", "return window[:, :-1]", "return window[:, :-1].flatten()")],
        [],
        1,
        "the model takes token numbers (N, T) of type int64",
    ),
    "tokens that the vocabulary lacks": (
        CORPUS,
        [replace("data.py", "return window[:, :-1]", "return window[:, :-1] + 100_000")],
        [],
        1,
        "tokens have the numbers 0 to ",
    ),
    "an attention mask that is cut short": (
        TEXTS,
        [replace("data.py", "torch.arange(input_ids.shape[1]) <", "torch.arange(input_ids.shape[1] - 1) <")],
        [],
        1,
        "attention_mask must have that shape, and a token in every text",
    ),
    "an attention mask that is cut short, for words": (
        WORDS,
        [replace("data.py", "torch.arange(input_ids.shape[1]) <", "torch.arange(input_ids.shape[1] - 1) <")],
        [],
        1,
        "attention_mask must have that shape, and a token in every sentence",
    ),
    "targets far from 0": (
        NUMBER,
        [replace("data.py", "self.targets[rows]", "self.targets[rows] + 100")],
        [],
        0,
        "far from 0, where the model starts",
    ),
    "a future far from the history": (
        SERIES,
        [replace("data.py", "windows[:, self.context_length :, 0]", "windows[:, self.context_length :, 0] + 100")],
        [],
        0,
        "far from the training mean, where the model starts",
    ),
    "numbers as the file has them": (
        NUMBER,
        [replace("data.py", "columns.append(((numbers - mean) / std).fillna(0))", "columns.append(numbers.fillna(0))")],
        [],
        1,
        "large numbers make for large, unsteady steps",
    ),
    "classes from 1": (
        TABLE,
        [replace("data.py", "preprocessing.classes.index(name) for", "preprocessing.classes.index(name) + 1 for")],
        [],
        1,
        "3 classes have the numbers 0 to 2",
    ),
    "tags from 1": (
        WORDS,
        [replace("data.py", "number_of = {tag: number for", "number_of = {tag: number + 1 for")],
        [],
        1,
        "10 tags have the numbers 0 to 9",
    ),
    "labels of another type": (
        TABLE,
        [replace("data.py", "self.labels[rows]", "self.labels[rows].float()")],
        [],
        1,
        "the loss takes class numbers (N,) of type int64",
    ),
    "a label that is neither 0 nor 1": (
        BINARY,
        [replace("data.py", "self.labels[rows]", "self.labels[rows] + 1")],
        [],
        1,
        "a label is 0 or 1",
    ),
    "a label of several that is neither 0 nor 1": (
        LABELLED,
        [replace("data.py", "self.labels[indices]", "self.labels[indices] * 2")],
        [],
        1,
        "a label is 0 or 1",
    ),
    "binary labels of another type": (
        BINARY,
        [replace("data.py", "self.labels[rows]", "self.labels[rows].long()")],
        [],
        1,
        "the loss takes labels (N,) of type float32",
    ),
    "several labels of another type": (
        LABELLED,
        [replace("data.py", "self.labels[indices]", "self.labels[indices].long()")],
        [],
        1,
        "the loss takes labels (N, n_labels) of type float32",
    ),
    "masks of another type": (
        MASKS,
        [replace("data.py", "for _, mask in pairs])).long()", "for _, mask in pairs]))")],
        [],
        1,
        "the loss takes class numbers (N, H, W) of type int64",
    ),
    "masks of void alone": (
        MASKS,
        [replace("data.py", "for _, mask in pairs])).long()", "for _, mask in pairs])).long() * 0 + IGNORE")],
        [],
        1,
        "every pixel is void (255), so there is nothing to learn",
    ),
    "mask classes from 1": (
        MASKS,
        [replace("data.py", "for _, mask in pairs])).long()", "for _, mask in pairs])).long() + 1")],
        [],
        1,
        "classes have the numbers 0 to ",
    ),
    "tags of another type": (
        WORDS,
        [replace("data.py", "for i in indices]), tags", "for i in indices]), tags.int()")],
        [],
        1,
        "they must be like input_ids in shape and type",
    ),
    "padding with tags": (
        WORDS,
        [replace("data.py", "padding_value=IGNORE", "padding_value=0")],
        [],
        1,
        "padding has tags that are not -100, so the loss counts it",
    ),
    "next tokens of another type": (
        CORPUS,
        [replace("data.py", "return window[:, :-1], next_tokens", "return window[:, :-1], next_tokens.int()")],
        [],
        1,
        "they must be like tokens in shape and type",
    ),
    "next tokens that are the tokens": (
        CORPUS,
        [replace("data.py", "return window[:, :-1], next_tokens", "return window[:, :-1], window[:, :-1]")],
        [],
        1,
        "they are not tokens moved by one",
    ),
    "a future of another type": (
        SERIES,
        [replace("data.py", "windows[:, self.context_length :, 0]", "windows[:, self.context_length :, 0].double()")],
        [],
        1,
        "the loss takes future (",
    ),
    "a future of NaN": (
        SERIES,
        [
            replace(
                "data.py", "windows[:, self.context_length :, 0]", "windows[:, self.context_length :, 0] * torch.nan"
            )
        ],
        [],
        1,
        ", 20) float32 from nan to nan: NaN or infinity",
    ),
    "targets of NaN": (
        NUMBER,
        [replace("data.py", "self.targets[rows]", "self.targets[rows] * torch.nan")],
        [],
        1,
        "float32 from nan to nan: NaN or infinity",
    ),
    "targets of another type": (
        NUMBER,
        [replace("data.py", "self.targets[rows]", "self.targets[rows].double()")],
        [],
        1,
        "the loss takes targets (N,) of type float32",
    ),
    "NaN in one row": (
        TABLE,
        [
            replace(
                "data.py",
                "self.features = preprocessing.features(table, file)",
                "self.features = preprocessing.features(table, file)\n"
                "        self.features[7, 2] = torch.nan if split == 'train' else 0",
            )
        ],
        [],
        1,
        "data/train.csv: features (1, 18) float32 from nan to nan: NaN or infinity",
    ),
    "NaN in one window": (
        SERIES,
        [
            replace(
                "data.py",
                "series = preprocessing.scale(read_table(file), file)",
                "series = preprocessing.scale(read_table(file), file)\n"
                "        series[-1] = torch.nan if split == 'train' else 0",
            )
        ],
        [],
        1,
        "NaN or infinity",
    ),
    "an image in both splits": (
        IMAGES,
        [an_image_into_val],
        [],
        0,
        "1 of 361 validation images are training images too, such as data/val/3/again.png",
    ),
    "an image with a mask in both splits": (
        MASKS,
        [an_image_and_its_mask_into_val],
        [],
        0,
        "such as data/val/images/again.png",
    ),
    "rows in both splits": (
        TABLE,
        [first_rows_into_val],
        [],
        0,
        "39 of 75 validation rows are training rows too, such as line 38 of data/val.csv",
    ),
    "texts in both splits": (
        TEXTS,
        [first_rows_into_val],
        [],
        0,
        "39 of 434 validation texts are training texts too, such as row 396",
    ),
    "a corpus in both splits": (
        CORPUS,
        [text_into_val],
        [],
        0,
        "of val.txt, in stretches of 64 tokens, stand in train.txt too",
    ),
    "a series that overlaps": (SERIES, [train_reaches_into_val], [], 0, "before train.csv ends"),
    "a constant column": (TABLE, [a_column(lambda i: "7")], [], 0, "added never differs from row to row"),
    "another constant column": (
        TABLE,
        [a_column(lambda i: "7")],
        ["--ignore", "ash"],
        0,
        "or give --ignore ash added",
    ),
    "an empty column": (NUMBER, [a_column(lambda i: "")], [], 0, "added never differs from row to row"),
    "a class that training lacks": (IMAGES, [drop_class("train")], [], 1, "no training images of 3"),
    "a class that validation lacks": (IMAGES, [drop_class("val")], [], 0, "val has no images of 3"),
    "a label that training lacks": (LABELLED, [no_sample_of_a_label], [], 0, "it cannot be learnt"),
    # the run
    "a warm-up of more than all": (
        {**TABLE, "optimizer": "schedule-free-adamw"},
        [],
        ["--warmup-steps", "100000"],
        0,
        "over 100,000 steps, and the run has ",
    ),
    "a learning rate of 100": (
        TABLE,
        [],
        ["--lr", "100"],
        1,
        "the learning rate of 100 is too high; try --lr 10 or less",
    ),
    "a learning rate of 100 for images": (IMAGES, [], ["--lr", "100"], 1, "the learning rate of 100 is too high"),
    "a learning rate of 100 with SGD": (
        {**NUMBER, "optimizer": "sgd"},
        [],
        ["--lr", "100"],
        1,
        "the learning rate of 100 is too high",
    ),
    "a learning rate of almost 0": (TABLE, [], ["--lr", "1e-8"], 0, "not learnt by heart"),
    "a batch of more than all": (
        TABLE,
        [],
        ["--batch-size", "1000"],
        0,
        "--batch-size 1000 is more than the 142 training rows",
    ),
    "more workers than cores": (
        TABLE,
        [],
        ["--num-workers", str(2 * (os.cpu_count() or 1) + 1)],
        0,
        "they hinder each other",
    ),
    "data that are slow": (
        TABLE,
        [replace("data.py", "rows = torch", '__import__("time").sleep(0.2)\n        rows = torch')],
        ["--num-workers", "0"],
        0,
        IDLES,
    ),
    "float16 on a CPU": ({**TABLE, "amp": "fp16"}, [], [], 0, "float16 on a CPU: many times slower"),
    "too little memory": (
        TABLE,
        [OUT_OF_MEMORY],
        [],
        1,
        "is out of memory, as train.py would be; lower --batch-size 32",
    ),
    "too little memory for an accumulated batch": (
        {**TABLE, "gradient_accumulation": True},
        [OUT_OF_MEMORY],
        [],
        1,
        "is out of memory, as train.py would be; raise --accumulate ",
    ),
    "too little memory for all rows at once": (
        {**TABLE, "optimizer": "lbfgs"},
        [OUT_OF_MEMORY],
        [],
        1,
        "is out of memory, as train.py would be; set --batch-size below 142",
    ),
}

# Where a fault makes another one: what may be said beside it.
FOLLOWS = {
    "images from 0 to 255": ("too large logits",),
    "images that are black": ("not learnt by heart",),
    "large logits": ("not learnt by heart",),
    "an answer in the input": ("not learnt by heart",),
    "targets far from 0": ("not learnt by heart",),
    "a future far from the history": ("not learnt by heart",),
    "numbers as the file has them": ("too large predictions", "too high", "not learnt by heart"),
}


FORM = re.compile(
    r"(wrong|warning) +.+(: |, (as|but|so|which) ).+; "
    r"(add|convert|correct|give|leave|let|look|lower|make|raise|scale|see|set|train|try|use) .+"
)
"""What was seen, why it matters, and what to do."""


@pytest.fixture(scope="session")
def said_of(warm, project, tmp_path_factory) -> Callable[[str], str]:
    """A function that plants a fault, and gives what check.py says of it; asked once."""

    @functools.cache
    def of(name: str) -> str:
        answers, edits, flags, status, _ = PLANTS[name]
        ignore = shutil.ignore_patterns("runs", "__pycache__")
        folder = shutil.copytree(project(**answers), tmp_path_factory.mktemp("planted") / "project", ignore=ignore)
        for edit in edits:
            edit(folder)
        return warm.run(folder, "check.py", *flags, status=status)

    return of


@pytest.mark.parametrize("name", PLANTS)
def test_a_planted_fault_is_found(said_of, name):
    said, words = said_of(name), PLANTS[name][-1]
    assert "Traceback" not in said
    found = [line for line in findings(said) if words == IDLES or IDLES not in line]
    assert words in (found or said.splitlines())[0], said  # data.py refuses some by itself
    follows = FOLLOWS.get(name, ())
    others = [line for line in found[1:] if not any(word in line for word in follows)]
    assert not others, said


@pytest.mark.parametrize("name", PLANTS)
def test_a_finding_says_what_was_seen_why_it_matters_and_what_to_do(said_of, name):
    assert not [line for line in findings(said_of(name)) if not FORM.fullmatch(line)]


def test_every_finding_is_of_a_planted_fault(said_of):
    """Those that check.py has for one task or another, as they stand in its templates."""
    found = [line for name in PLANTS for line in findings(said_of(name))]
    templates = [*ROOT.glob("template/project/check*.jinja"), *ROOT.glob("template/parts/*/*/check*.jinja")]
    templates += ROOT.glob("template/parts/checks/*.jinja")
    written = [line for file in templates for line in file.read_text(encoding="utf-8").splitlines()]
    written = {
        match[1] for line in written if (match := re.search(r'(?:yield |\()"(?:wrong|warning)", (.*?)\)*,?$', line))
    }
    written.remove("look.fault")  # a finding about one sample, put together elsewhere
    assert len(written) > 40
    never = [text for text in written if not any(re.search(pattern(text), line) for line in found)]
    assert not never, "\n".join(never)


def pattern(text: str) -> str:
    """What matches a finding, of the string that it is written as: names in braces stand for anything."""
    fixed = re.split(r"\{\{.*?\}\}|\{.*?\}", text.removeprefix("f").strip('"'))
    return ".+".join(map(re.escape, fixed)) + "$"


def test_a_programming_error_keeps_its_traceback(warm, project, tmp_path):
    folder = shutil.copytree(project(**TABLE), tmp_path / "project", ignore=shutil.ignore_patterns("runs"))
    replace("model.py", "self.head = nn.Linear", "self.head = nn.Linaer")(folder)
    said = warm.run(folder, "check.py", status=1)
    assert "Traceback" in said
    assert "Linaer" in said


def test_no_gradient_takes_up_memory_once_the_model_has_been_looked_at(project, monkeypatch):
    """Each trial that follows has a model and gradients of its own; the device must hold no others."""
    folder = project(**TABLE)
    monkeypatch.chdir(folder)
    with imported_from(folder, "check_setup", "check_model", "config") as [setup, looks, config]:
        made = setup.put_together(config.Config())
        moved = []
        monkeypatch.setattr(made.model, "cpu", lambda: moved.append(True))
        for look_at in looks.LOOKS_AT_MODEL:
            assert not moved
            assert not [finding for finding in look_at(made) if finding[0] != "ok"]
        assert moved
        assert all(parameter.grad is None for parameter in made.model.parameters())
        assert not hasattr(made, "logits"), "it holds all activations"


def test_a_closed_output_ends_it_without_a_word(project):
    with subprocess.Popen(
        [sys.executable, "check.py"],
        cwd=project(**TABLE),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        process.stdout.close()  # as `head` does
        said = process.stderr.read()
    assert process.returncode == 1
    assert not said


def test_a_folder_that_cannot_be_written_gets_one_line(warm, project, tmp_path):
    no_folder = tmp_path / "file"
    no_folder.touch()
    said = warm.run(project(**IMAGES), "check.py", "--run-dir", no_folder / "run", status=1)
    assert f"{no_folder / 'check.png'} cannot be written" in said
    assert "Traceback" not in said


def test_the_sheet_of_images_goes_beside_the_run(warm, project, tmp_path):
    said = warm.run(project(**IMAGES), "check.py", "--run-dir", tmp_path / "runs" / "one")
    assert (tmp_path / "runs" / "check.png").exists(), said


def test_the_same_is_said_again(warm, project, tmp_path):
    """But for what the clock says; no look ends because its seconds are over."""
    folder = shutil.copytree(project(**IMAGES), tmp_path / "project", ignore=shutil.ignore_patterns("runs"))
    replace("check_data.py", "SECONDS = 3", "SECONDS = 600")(folder)
    replace("check_training.py", "SECONDS = 5", "SECONDS = 600")(folder)
    one, two = (
        [
            line
            for line in warm.run(folder, "check.py").partition("\nto fix:")[0].splitlines()
            if "waiting for data" not in line and not line.startswith(("next:", "if these"))
        ]
        for _ in range(2)
    )
    assert one == two
