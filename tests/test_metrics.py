"""Every metric against scikit-learn, over several batches, the last one smaller."""

import math
from collections.abc import Callable
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from sklearn import metrics as reference
from torch import Tensor

from modules import imported
from test_losses import projects

NAMES = ["ant", "bee", "cat", "dog"]
SIZES = (16, 16, 5)
LENGTH, SIDE = 6, 8
Batches = list[tuple[Tensor, Tensor]]


def drawn(outputs: tuple[int, ...], targets: Callable[[torch.Generator, int], Tensor]) -> Batches:
    """Batches of random outputs, and of targets with which they have something to do."""
    draw = torch.Generator().manual_seed(0)
    return [(torch.randn(n, *outputs, generator=draw), targets(draw, n)) for n in SIZES]


def joined(batches: Batches) -> tuple[np.ndarray, np.ndarray]:
    outputs, targets = (torch.cat(parts).numpy() for parts in zip(*batches, strict=True))
    return outputs, targets


def classes_of(*shape: int) -> Callable[[torch.Generator, int], Tensor]:
    """Random class numbers; the last class never comes."""
    return lambda draw, n: torch.randint(len(NAMES) - 1, (n, *shape), generator=draw)


def labels_of(*shape: int) -> Callable[[torch.Generator, int], Tensor]:
    return lambda draw, n: torch.rand(n, *shape, generator=draw).gt(0.6).float()


def of_classes(batches: Batches) -> dict[str, float]:
    logits, labels = joined(batches)
    predicted = logits.argmax(1)
    return {
        "accuracy": reference.accuracy_score(labels, predicted),
        "macro_f1": reference.f1_score(labels, predicted, average="macro"),
    }


def of_yes_or_no(batches: Batches) -> dict[str, float]:
    logits, labels = joined(batches)
    return {
        "accuracy": reference.accuracy_score(labels, logits > 0),
        "f1": reference.f1_score(labels, logits > 0),
        "auroc": reference.roc_auc_score(labels, logits),
    }


def of_labels(batches: Batches) -> dict[str, float]:
    logits, labels = joined(batches)
    return {
        "micro_f1": reference.f1_score(labels, logits > 0, average="micro"),
        "macro_f1": reference.f1_score(labels, logits > 0, average="macro"),
    }


def of_numbers(batches: Batches) -> dict[str, float]:
    outputs, targets = joined(batches)
    return {
        "mae": 3.0 * reference.mean_absolute_error(targets, outputs),
        "rmse": 3.0 * reference.root_mean_squared_error(targets, outputs),
        "r2": reference.r2_score(targets, outputs),
    }


def of_quantiles(batches: Batches) -> dict[str, float]:
    outputs, targets = joined(batches)
    low, middle, high = np.sort(outputs, axis=-1).T
    inside = (low <= targets) & (targets <= high)
    return of_numbers([(torch.from_numpy(middle), torch.from_numpy(targets))]) | {"coverage": inside.mean()}


def of_next_tokens(batches: Batches) -> dict[str, float]:
    nats = n_bytes = n_tokens = 0.0
    for logits, next_tokens in batches:
        kept = (next_tokens >= 0).flatten()
        truth = next_tokens.flatten()[kept].numpy()
        p = logits.flatten(0, 1)[kept].double().softmax(-1).numpy()
        nats += reference.log_loss(truth, p, labels=range(len(NAMES)), normalize=False)
        n_bytes += sum(len(NAMES[i]) for i in truth)
        n_tokens += len(truth)
    return {"bits_per_byte": nats / math.log(2) / n_bytes, "perplexity": math.exp(nats / n_tokens)}


def of_masks(batches: Batches) -> dict[str, float]:
    logits, masks = joined(batches)
    kept = masks.ravel() < len(NAMES)
    truth, predicted = masks.ravel()[kept], logits.argmax(1).ravel()[kept]
    return {
        "miou": reference.jaccard_score(truth, predicted, average="macro", labels=np.union1d(truth, predicted)),
        "pixel_accuracy": reference.accuracy_score(truth, predicted),
    }


PREPROCESSING = SimpleNamespace(
    classes=NAMES,
    target_mean=1.0,
    target_std=3.0,
    quantiles=[0.1, 0.5, 0.9],
    middle=1,
    bytes_per_token=[len(name) for name in NAMES],
)


def normal(*shape: int) -> Callable[[torch.Generator, int], Tensor]:
    return lambda draw, n: torch.randn(n, *shape, generator=draw)


CASES: dict[tuple[str, str], tuple[Callable[[], Batches], Callable[[Batches], dict[str, float]]]] = {
    ("class", "cross-entropy"): (lambda: drawn((len(NAMES),), classes_of()), of_classes),
    ("binary", "bce-with-logits"): (lambda: drawn((), labels_of()), of_yes_or_no),
    ("multilabel", "bce-with-logits"): (lambda: drawn((len(NAMES),), labels_of(len(NAMES))), of_labels),
    ("real", "mse"): (lambda: drawn((), normal()), of_numbers),
    ("real", "gaussian-nll"): (
        lambda: drawn((2,), normal()),
        lambda batches: of_numbers([(outputs[:, 0], targets) for outputs, targets in batches]),
    ),
    ("real", "quantile"): (lambda: drawn((3,), normal()), of_quantiles),
    ("tokens", "cross-entropy"): (lambda: drawn((LENGTH, len(NAMES)), classes_of(LENGTH)), of_next_tokens),
    ("mask", "cross-entropy"): (lambda: drawn((len(NAMES), SIDE, SIDE), classes_of(SIDE, SIDE)), of_masks),
}


@pytest.mark.parametrize(("target", "loss"), CASES, ids=["-".join(pair) for pair in CASES])
def test_it_is_what_scikit_learn_says(target, loss, tmp_path):
    make, expected = CASES[target, loss]
    with imported(tmp_path, projects()[target, loss], "data", "metrics") as [data, metrics]:
        batches = make()
        if hasattr(data, "IGNORE"):
            for _, targets in batches:
                targets.view(-1)[1::3] = data.IGNORE
        computed = metrics.Metrics(PREPROCESSING, torch.device("cpu"))
        for outputs, targets in batches:
            computed.update(outputs, targets)
        assert computed.compute() == pytest.approx(expected(batches), rel=1e-5)
