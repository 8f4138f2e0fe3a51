"""Are the data as the model and the loss take them, and is val apart from train? For check.py."""

import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

import torch
from tokenizers import Tokenizer
from torch import Tensor

from batches import BadData, EpochBatches
from check_setup import Finding, Project
from data import IGNORE

SECONDS = 3
"""For each split; what is not reached by then is not looked at."""


def one_sample(project: Project) -> Iterator[Finding]:
    """The start of a window as the model sees it: only a person sees whether it reads well."""
    tokenizer = Tokenizer.from_str(project.preprocessing.tokenizer)
    tokens, next_tokens = project.tokens[0].tolist(), project.next_tokens[0].tolist()
    yield "ok", f"a window of {len(tokens)} tokens begins {tokenizer.decode(tokens)[:200]!r}"
    pairs = [pair for pair in zip(tokens, next_tokens, strict=True) if pair[1] != IGNORE][:8]
    named = [f"{tokenizer.decode([token])!r} by {tokenizer.decode([following])!r}" for token, following in pairs]
    yield "ok", f"the model is to follow {', '.join(named)} …"


def repeated_text(project: Project) -> Iterator[Finding]:
    """Text that both splits hold, wherever it stands in them: windows alone would miss it."""
    train, val = (stretches(windows.ids[:5_000_000]) for windows in project.splits.values())
    shared = torch.isin(val, train).double().mean()
    # Some texts repeat themselves by nature; then a split does not share more with the other than with itself.
    repeated = 1 - len(train.unique()) / max(len(train), 1)
    if shared > 0.05 + 2 * repeated:
        seen = f"{100 * shared:.0f}% of val.txt, in stretches of 64 tokens, stand in train.txt too"
        yield "warning", f"{seen}: they make the scores too good; leave them in one of the two"


def stretches(ids: Tensor) -> Tensor:
    """A number for the 64 tokens from each place in a text; the same for the same tokens."""
    numbers = torch.zeros(max(len(ids) - 63, 0), dtype=torch.int64)
    for offset in range(64):
        numbers = numbers * 1_000_003 + ids[offset : offset + len(numbers)]
    return numbers


def one_batch(project: Project) -> Iterator[Finding]:
    """Shapes, types and ranges of the first batch."""
    yield from about_batch(project, project.tokens, project.next_tokens)


def about_batch(project: Project, tokens: Tensor, next_tokens: Tensor) -> Iterator[Finding]:
    of_inputs = list(about_inputs(project, tokens))
    yield from of_inputs
    if not any(verdict == "wrong" for verdict, _ in of_inputs):  # the targets are compared with their shape
        yield from about_targets(tokens, next_tokens)


def about_inputs(project: Project, tokens: Tensor) -> Iterator[Finding]:
    vocabulary = len(project.preprocessing.bytes_per_token)
    seen = described("tokens", tokens)
    if tokens.dtype != torch.int64 or tokens.ndim != 2:
        yield "wrong", f"{seen}: the model takes token numbers (N, T) of type int64; correct them in data.py"
    elif tokens.min() < 0 or tokens.max() >= vocabulary:
        yield "wrong", f"{seen}: {vocabulary} tokens have the numbers 0 to {vocabulary - 1}; correct them in data.py"
    else:
        yield "ok", seen


def about_targets(tokens: Tensor, next_tokens: Tensor) -> Iterator[Finding]:
    seen = described("next_tokens", next_tokens)
    if next_tokens.dtype != torch.int64 or next_tokens.shape != tokens.shape:
        yield "wrong", f"{seen}: they must be like tokens in shape and type; correct them in data.py"
    elif (next_tokens[:, :-1] != tokens[:, 1:])[next_tokens[:, :-1] != IGNORE].any():
        yield "wrong", f"{seen}: they are not tokens moved by one, so the model learns something else; see data.py"
    else:
        yield "ok", seen


def described(name: str, tensor: Tensor) -> str:
    low, high = tensor.aminmax()
    return f"{name} {tuple(tensor.shape)} {str(tensor.dtype).removeprefix('torch.')} from {low:.4g} to {high:.4g}"


@dataclass
class Look:
    """What a look at the windows of a split has found."""

    split: str
    size: int
    indices: list[int]  # of those that were looked at
    contents: list[int]  # a number for what is in each; the same for the same
    fault: str = ""


def every_sample(project: Project) -> Iterator[Finding]:
    """All windows of both splits, or as many of them as some seconds allow."""
    looks = [look_through(project, split) for split in project.splits]
    for look in looks:
        if look.fault:
            yield "wrong", look.fault
    if any(look.fault for look in looks):
        return
    train, val = looks
    numbers = " and ".join(f"{len(look.indices):,} of {look.size:,} in {look.split}" for look in looks)
    yield "ok", f"looked at {numbers}: each one finite and in range"
    yield from in_both_splits(project, train, val)


def look_through(project: Project, split: str) -> Look:
    dataset, started = project.splits[split], time.monotonic()
    look = Look(split, len(dataset), [], [])
    # Shuffled: where the time does not suffice for all of them, the first ones may all be of one kind.
    for seed, indices in EpochBatches(len(dataset), 64, project.config.seed):
        if time.monotonic() - started > SECONDS:
            break
        try:
            tokens, next_tokens = dataset[seed, indices]
            if faults(project, tokens, next_tokens):
                look.fault = first_fault(project, split, indices)
                break
        except BadData as error:
            raise SystemExit(str(error)) from None
        look.indices += indices
        look.contents += [hash(one.contiguous().numpy().tobytes()) for one in tokens]
    return look


def faults(project: Project, tokens: Tensor, next_tokens: Tensor) -> list[str]:
    return [line for verdict, line in about_batch(project, tokens, next_tokens) if verdict == "wrong"]


def first_fault(project: Project, split: str, indices: list[int]) -> str:
    """Which one it is, of a batch in which something is wrong."""
    for index in indices:
        if found := faults(project, *project.splits[split][0, [index]]):
            break
    return f"{place(project, split, index)}: {found[0]}"


def place(project: Project, split: str, index: int) -> str:
    return f"window {index + 1} of {project.config.data_dir / split}.txt"


def in_both_splits(project: Project, train: Look, val: Look) -> Iterator[Finding]:
    """What was learnt by heart in training is no measure of anything in validation."""
    in_train = Counter(train.contents)
    shared = [index for index, content in zip(val.indices, val.contents, strict=True) if content in in_train]
    # Some data repeat themselves by nature; then a split does not share more with the other than with itself.
    repeated = sum(count for count in in_train.values() if count > 1)
    if len(shared) / len(val.contents) > 2 * repeated / len(train.contents):
        number = f"{len(shared):,} of {len(val.contents):,} validation windows are training windows too"
        example = place(project, "val", min(shared))
        yield "warning", f"{number}, such as {example}: they make the scores too good; leave them in one split alone"


LOOKS_AT_DATA = (one_batch, one_sample, every_sample, repeated_text)
