"""Are the data as the model and the loss take them, and is val apart from train? For check.py."""

import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from textwrap import shorten

import torch
from torch import Tensor

from batches import BadData, EpochBatches
from check_setup import Finding, Project, listed
from data import read_table

SECONDS = 3
"""For each split; what is not reached by then is not looked at."""


def one_sample(project: Project) -> Iterator[Finding]:
    """A row as the file has it and as the model sees it: only a person sees whether they belong together."""
    file, index = project.config.data_dir / "train.csv", project.indices[0]
    cells = ", ".join(f"{name} {cell}" for name, cell in read_table(file).iloc[index].items())
    yield "ok", f"line {index + 2} of {file}: {shorten(cells, 400, placeholder=' …')}"
    features = " ".join(f"{feature:.3g}" for feature in project.features[0].tolist())
    target = project.preprocessing.classes[int(project.labels[0])]
    yield "ok", f"the model sees it as {shorten(features, 400, placeholder=' …')} and is to say {target}"


def constant_columns(project: Project) -> Iterator[Finding]:
    """A column that never differs says nothing, and often means that something went wrong when the file was made."""
    file = project.config.data_dir / "train.csv"
    columns = read_table(file).drop(columns=[project.config.target, *project.config.ignore])
    constant = [name for name in columns if columns[name].nunique(dropna=False) == 1]
    if constant:
        ignored = " ".join([*project.config.ignore, *constant])
        seen = f"{file}: {listed(constant)} never differs from row to row"
        yield "warning", f"{seen}, so it says nothing; correct it, or give --ignore {ignored}"


def one_batch(project: Project) -> Iterator[Finding]:
    """Shapes, types and ranges of the first batch."""
    yield from about_batch(project.features, project.labels)


def about_batch(features: Tensor, labels: Tensor) -> Iterator[Finding]:
    of_inputs = list(about_inputs(features))
    yield from of_inputs
    if not any(verdict == "wrong" for verdict, _ in of_inputs):  # the targets are compared with their shape
        yield from about_targets(features, labels)


def about_inputs(features: Tensor) -> Iterator[Finding]:
    seen = described("features", features)
    if features.dtype != torch.float32:
        yield "wrong", f"{seen}: the model's weights are float32, and features must be; convert them in data.py"
    elif not features.isfinite().all():
        yield "wrong", f"{seen}: NaN or infinity would go from here into every weight; look for it in the data"
    elif features.min() == features.max():
        yield "warning", f"{seen}: all the same number, so there is nothing to see; look for it in data.py"
    elif features.abs().max() > 20:
        yield "warning", f"{seen}: large numbers make for large, unsteady steps; scale them in data.py"
    elif features.std() < 0.01:
        yield "warning", f"{seen}: small numbers make for small, slow steps; scale them in data.py"
    else:
        yield "ok", seen


def about_targets(features: Tensor, labels: Tensor) -> Iterator[Finding]:
    seen = described("labels", labels)
    if labels.dtype != torch.float32 or labels.shape != (len(features),):
        yield "wrong", f"{seen}: the loss takes labels (N,) of type float32; correct them in data.py"
    elif not ((labels == 0) | (labels == 1)).all():
        yield "wrong", f"{seen}: a label is 0 or 1; correct them in data.py"
    else:
        yield "ok", seen


def described(name: str, tensor: Tensor) -> str:
    low, high = tensor.aminmax()
    return f"{name} {tuple(tensor.shape)} {str(tensor.dtype).removeprefix('torch.')} from {low:.4g} to {high:.4g}"


@dataclass
class Look:
    """What a look at the rows of a split has found."""

    split: str
    size: int
    indices: list[int]  # of those that were looked at
    contents: list[int]  # a number for what is in each; the same for the same
    counts: Tensor  # how often each class is a target
    fault: str = ""


def every_sample(project: Project) -> Iterator[Finding]:
    """All rows of both splits, or as many of them as some seconds allow."""
    looks = [look_through(project, split) for split in project.splits]
    for look in looks:
        if look.fault:
            yield "wrong", look.fault
    if any(look.fault for look in looks):
        return
    train, val = looks
    numbers = " and ".join(f"{len(look.indices):,} of {look.size:,} in {look.split}" for look in looks)
    yield "ok", f"looked at {numbers}: each one finite and in range"
    yield from classes(project, train, val)
    yield from in_both_splits(project, train, val)


def look_through(project: Project, split: str) -> Look:
    dataset, started = project.splits[split], time.monotonic()
    look = Look(split, len(dataset), [], [], torch.zeros(2, dtype=torch.int64))
    # Shuffled: where the time does not suffice for all of them, the first ones may all be of one kind.
    for seed, indices in EpochBatches(len(dataset), 64, project.config.seed):
        if time.monotonic() - started > SECONDS:
            break
        try:
            features, labels = dataset[seed, indices]
            if faults(features, labels):
                look.fault = first_fault(project, split, indices)
                break
        except BadData as error:
            raise SystemExit(str(error)) from None
        look.indices += indices
        look.contents += [hash(one.contiguous().numpy().tobytes()) for one in features]
        look.counts += torch.bincount(labels.long(), minlength=2)
    return look


def faults(features: Tensor, labels: Tensor) -> list[str]:
    return [line for verdict, line in about_batch(features, labels) if verdict == "wrong"]


def first_fault(project: Project, split: str, indices: list[int]) -> str:
    """Which one it is, of a batch in which something is wrong."""
    for index in indices:
        if found := faults(*project.splits[split][0, [index]]):
            break
    return f"{place(project, split, index)}: {found[0]}"


def place(project: Project, split: str, index: int) -> str:
    return f"line {index + 2} of {project.config.data_dir / split}.csv"


def classes(project: Project, train: Look, val: Look) -> Iterator[Finding]:
    """A class that validation lacks is never measured."""
    names = project.preprocessing.classes
    missing = [name for name, count in zip(names, val.counts.tolist(), strict=True) if not count]
    if missing and len(val.indices) == val.size:
        seen = f"val has no rows of {listed(missing)}"
        yield "warning", f"{seen}: nothing says how well it is learnt; add some, or leave it out"
    fewest, most = int(train.counts.argmin()), int(train.counts.argmax())
    seen = f"from {train.counts[fewest]:,} of {names[fewest]} to {train.counts[most]:,} of {names[most]}"
    yield "ok", f"rows of a class in train: {seen}"


def in_both_splits(project: Project, train: Look, val: Look) -> Iterator[Finding]:
    """What was learnt by heart in training is no measure of anything in validation."""
    in_train = Counter(train.contents)
    shared = [index for index, content in zip(val.indices, val.contents, strict=True) if content in in_train]
    # Some data repeat themselves by nature; then a split does not share more with the other than with itself.
    repeated = sum(count for count in in_train.values() if count > 1)
    if len(shared) / len(val.contents) > 2 * repeated / len(train.contents):
        number = f"{len(shared):,} of {len(val.contents):,} validation rows are training rows too"
        example = place(project, "val", min(shared))
        yield "warning", f"{number}, such as {example}: they make the scores too good; leave them in one split alone"


LOOKS_AT_DATA = (one_batch, one_sample, every_sample, constant_columns)
