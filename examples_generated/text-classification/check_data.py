"""Are the data as the model and the loss take them, and is val apart from train? For check.py."""

import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from textwrap import shorten

import torch
from tokenizers import Tokenizer
from torch import Tensor

from batches import BadData, EpochBatches
from check_setup import Finding, Project, listed
from data import read_table

SECONDS = 3
"""For each split; what is not reached by then is not looked at."""


def one_sample(project: Project) -> Iterator[Finding]:
    """A text as the file has it and as the model sees it: only a person sees whether they belong together."""
    file, index = project.config.data_dir / "train.csv", project.indices[0]
    yield "ok", f"row {index + 1} of {file}: {shorten(read_table(file)['text'][index], 200, placeholder=' …')}"
    ids = project.tokens["input_ids"][0][project.tokens["attention_mask"][0].bool()].tolist()
    tokenizer = Tokenizer.from_str(project.preprocessing.tokenizer)
    tokens = "|".join(" ".join(tokenizer.decode([token]).split("\n")) for token in ids[:40])
    label = project.preprocessing.classes[int(project.labels[0])]
    yield "ok", f"the model sees its {len(ids)} tokens {tokens}{' …' if len(ids) > 40 else ''} and is to say {label}"


def one_batch(project: Project) -> Iterator[Finding]:
    """Shapes, types and ranges of the first batch."""
    yield from about_batch(project, project.tokens, project.labels)


def about_batch(project: Project, tokens: dict[str, Tensor], labels: Tensor) -> Iterator[Finding]:
    of_inputs = list(about_inputs(tokens))
    yield from of_inputs
    if not any(verdict == "wrong" for verdict, _ in of_inputs):  # the targets are compared with their shape
        yield from about_targets(project, tokens, labels)


def about_inputs(tokens: dict[str, Tensor]) -> Iterator[Finding]:
    ids, mask = tokens["input_ids"], tokens["attention_mask"]
    seen = described("input_ids", ids)
    if ids.dtype != torch.int64 or ids.ndim != 2:
        yield "wrong", f"{seen}: the model takes token numbers (N, T) of type int64; correct them in data.py"
    elif mask.shape != ids.shape or not mask.bool().any(dim=1).all():
        yield "wrong", f"{seen}: attention_mask must have that shape, and a token in every text; correct it in data.py"
    else:
        yield "ok", seen


def about_targets(project: Project, tokens: dict[str, Tensor], labels: Tensor) -> Iterator[Finding]:
    ids = tokens["input_ids"]
    seen = described("labels", labels)
    n_classes = len(project.preprocessing.classes)
    if labels.dtype != torch.int64 or labels.shape != (len(ids),):
        yield "wrong", f"{seen}: the loss takes class numbers (N,) of type int64; correct them in data.py"
    elif labels.min() < 0 or labels.max() >= n_classes:
        yield "wrong", f"{seen}: {n_classes} classes have the numbers 0 to {n_classes - 1}; correct them in data.py"
    else:
        yield "ok", seen


def described(name: str, tensor: Tensor) -> str:
    low, high = tensor.aminmax()
    return f"{name} {tuple(tensor.shape)} {str(tensor.dtype).removeprefix('torch.')} from {low:.4g} to {high:.4g}"


@dataclass
class Look:
    """What a look at the texts of a split has found."""

    split: str
    size: int
    indices: list[int]  # of those that were looked at
    contents: list[int]  # a number for what is in each; the same for the same
    counts: Tensor  # how often each class is a target
    fault: str = ""


def every_sample(project: Project) -> Iterator[Finding]:
    """All texts of both splits, or as many of them as some seconds allow."""
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
    look = Look(split, len(dataset), [], [], torch.zeros(len(project.preprocessing.classes), dtype=torch.int64))
    # Shuffled: where the time does not suffice for all of them, the first ones may all be of one kind.
    for seed, indices in EpochBatches(len(dataset), 64, project.config.seed):
        if time.monotonic() - started > SECONDS:
            break
        try:
            tokens, labels = dataset[seed, indices]
            if faults(project, tokens, labels):
                look.fault = first_fault(project, split, indices)
                break
        except BadData as error:
            raise SystemExit(str(error)) from None
        look.indices += indices
        texts = zip(tokens["input_ids"], tokens["attention_mask"].bool(), strict=True)
        look.contents += [hash(ids[mask].numpy().tobytes()) for ids, mask in texts]
        look.counts += torch.bincount(labels, minlength=len(look.counts))
    return look


def faults(project: Project, tokens: dict[str, Tensor], labels: Tensor) -> list[str]:
    return [line for verdict, line in about_batch(project, tokens, labels) if verdict == "wrong"]


def first_fault(project: Project, split: str, indices: list[int]) -> str:
    """Which one it is, of a batch in which something is wrong."""
    for index in indices:
        if found := faults(project, *project.splits[split][0, [index]]):
            break
    return f"{place(project, split, index)}: {found[0]}"


def place(project: Project, split: str, index: int) -> str:
    return f"row {index + 1} of {project.config.data_dir / split}.csv"


def classes(project: Project, train: Look, val: Look) -> Iterator[Finding]:
    """A class that validation lacks is never measured."""
    names = project.preprocessing.classes
    missing = [name for name, count in zip(names, val.counts.tolist(), strict=True) if not count]
    if missing and len(val.indices) == val.size:
        seen = f"val has no texts of {listed(missing)}"
        yield "warning", f"{seen}: nothing says how well it is learnt; add some, or leave it out"
    fewest, most = int(train.counts.argmin()), int(train.counts.argmax())
    seen = f"from {train.counts[fewest]:,} of {names[fewest]} to {train.counts[most]:,} of {names[most]}"
    yield "ok", f"texts of a class in train: {seen}"


def in_both_splits(project: Project, train: Look, val: Look) -> Iterator[Finding]:
    """What was learnt by heart in training is no measure of anything in validation."""
    in_train = Counter(train.contents)
    shared = [index for index, content in zip(val.indices, val.contents, strict=True) if content in in_train]
    # Some data repeat themselves by nature; then a split does not share more with the other than with itself.
    repeated = sum(count for count in in_train.values() if count > 1)
    if len(shared) / len(val.contents) > 2 * repeated / len(train.contents):
        number = f"{len(shared):,} of {len(val.contents):,} validation texts are training texts too"
        example = place(project, "val", min(shared))
        yield "warning", f"{number}, such as {example}: they make the scores too good; leave them in one split alone"


LOOKS_AT_DATA = (one_batch, one_sample, every_sample)
