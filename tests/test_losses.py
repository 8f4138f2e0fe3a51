"""Every loss against its formula in double precision: the sum over a batch, and the gradient of the outputs."""

import inspect
from collections.abc import Callable
from functools import cache
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn.functional import one_hot

from modules import imported
from plainloop.questionnaire import resolve
from plainloop.space import NOT_ASKED, valid

N, CLASSES, LENGTH, SIDE = 7, 4, 5, 6
QUANTILES = [0.1, 0.5, 0.9]
CLASS_WEIGHTS = torch.tensor([0.5, 2.0, 1.0, 3.0])


def log_softmax(logits: Tensor) -> Tensor:
    """log(exp(x) / sum exp), classes last."""
    return logits - logits.exp().sum(-1, keepdim=True).log()


def log_sigmoid(logits: Tensor) -> Tensor:
    return -(1 + (-logits).exp()).log()


def counted(logits: Tensor, classes: Tensor) -> tuple[Tensor, Tensor]:
    """What is not ignored, in one row: logits (M, C), classes (M,). Masks have their classes in the second axis."""
    if logits.ndim == 4:
        logits = logits.movedim(1, -1)
    kept = (classes.flatten() >= 0) & (classes.flatten() < CLASSES)
    return logits.flatten(0, -2)[kept], classes.flatten()[kept]


def of_truth(logits: Tensor, classes: Tensor) -> Tensor:
    """log p of the true class, a number for each that counts."""
    logits, classes = counted(logits, classes)
    return log_softmax(logits)[torch.arange(len(classes)), classes]


def smoothed(logits: Tensor, classes: Tensor) -> Tensor:
    logits, classes = counted(logits, classes)
    wanted = 0.9 * one_hot(classes, CLASSES) + 0.1 / CLASSES
    return -(wanted * log_softmax(logits)).sum()


def weighted(logits: Tensor, classes: Tensor) -> Tensor:
    return -(CLASS_WEIGHTS.double()[classes] * of_truth(logits, classes)).sum()


def focal_of_classes(logits: Tensor, classes: Tensor) -> Tensor:
    log_p = of_truth(logits, classes)
    return -((1 - log_p.exp()) ** 2 * log_p).sum()


def z_loss(logits: Tensor, classes: Tensor) -> Tensor:
    kept, _ = counted(logits, classes)
    return (-of_truth(logits, classes)).sum() + 1e-4 * (kept.exp().sum(-1).log() ** 2).sum()


def bce(logits: Tensor, labels: Tensor) -> Tensor:
    return -(labels * log_sigmoid(logits) + (1 - labels) * log_sigmoid(-logits)).sum()


def pos_weights(labels: Tensor) -> Tensor:
    return torch.tensor([2.0]) if labels.ndim == 1 else torch.tensor([2.0, 0.5, 3.0, 1.0])


def weighted_bce(logits: Tensor, labels: Tensor) -> Tensor:
    weight = pos_weights(labels).double()
    return -(weight * labels * log_sigmoid(logits) + (1 - labels) * log_sigmoid(-logits)).sum()


def focal_of_labels(logits: Tensor, labels: Tensor) -> Tensor:
    log_p = labels * log_sigmoid(logits) + (1 - labels) * log_sigmoid(-logits)
    return -((1 - log_p.exp()) ** 2 * log_p).sum()


def asymmetric(logits: Tensor, labels: Tensor) -> Tensor:
    """Ridnik et al. 2021, equations 4 to 7, with gamma+ 0, gamma- 4 and margin 0.05."""
    p = 1 / (1 + (-logits).exp())
    shifted = (p - 0.05).clamp(min=0)
    yes = p.log()
    no = shifted**4 * (1 - shifted).log()
    return -(labels * yes + (1 - labels) * no).sum()


def dice(logits: Tensor, masks: Tensor) -> Tensor:
    """Milletari et al. 2016, section 3: an image at a time, the mean over the classes that its mask holds."""
    total = torch.zeros((), dtype=torch.float64)
    for image, mask in zip(logits, masks, strict=True):
        kept = mask < CLASSES
        p = log_softmax(image.movedim(0, -1))[kept].exp()
        held = mask[kept].unique()
        p, g = p[:, held], one_hot(mask[kept], CLASSES)[:, held]
        total = total + (1 - 2 * (p * g).sum(0) / ((p**2).sum(0) + g.sum(0))).mean()
    return total


def cross_entropy_dice(logits: Tensor, masks: Tensor) -> Tensor:
    """The mean over the pixels of each image, and its dice loss."""
    images = zip(logits, masks, strict=True)
    return sum(-of_truth(image[None], mask[None]).mean() for image, mask in images) + dice(logits, masks)


def gaussian_nll(outputs: Tensor, targets: Tensor) -> Tensor:
    """-log of the normal density, without its constant; a variance of 1e-6 is added."""
    mean, variance = outputs[..., 0], outputs[..., 1].exp() + 1e-6
    return ((variance.log() + (targets - mean) ** 2 / variance) / 2).sum()


def huber(outputs: Tensor, targets: Tensor) -> Tensor:
    error = (outputs - targets).abs()
    return torch.where(error <= 1, error**2 / 2, error - 0.5).sum()


def pinball(outputs: Tensor, targets: Tensor) -> Tensor:
    """Koenker and Bassett 1978: the mean over the quantiles, summed over the targets."""
    total = torch.zeros((), dtype=torch.float64)
    for i, q in enumerate(QUANTILES):
        error = targets - outputs[..., i]
        total = total + torch.where(error >= 0, q * error, (q - 1) * error).sum() / len(QUANTILES)
    return total


REFERENCES: dict[tuple[str, str], Callable[[Tensor, Tensor], Tensor]] = {
    **{(target, "cross-entropy"): lambda x, y: -of_truth(x, y).sum() for target in ("class", "mask", "tags", "tokens")},
    **{(target, "label-smoothing"): smoothed for target in ("class", "tags", "tokens")},
    **{(target, "cross-entropy-z-loss"): z_loss for target in ("tags", "tokens")},
    ("class", "weighted-cross-entropy"): weighted,
    ("class", "focal"): focal_of_classes,
    ("mask", "focal"): focal_of_classes,
    **{(target, "bce-with-logits"): bce for target in ("binary", "multilabel")},
    **{(target, "weighted-bce"): weighted_bce for target in ("binary", "multilabel")},
    **{(target, "focal"): focal_of_labels for target in ("binary", "multilabel")},
    ("multilabel", "asymmetric"): asymmetric,
    **{(target, "mse"): lambda x, y: ((x - y) ** 2).sum() for target in ("real", "series")},
    **{(target, "mae"): lambda x, y: (x - y).abs().sum() for target in ("real", "series")},
    **{(target, "huber"): huber for target in ("real", "series")},
    ("mask", "dice"): dice,
    ("mask", "cross-entropy-dice"): cross_entropy_dice,
    **{(target, "gaussian-nll"): gaussian_nll for target in ("real", "series")},
    **{(target, "quantile"): pinball for target in ("real", "series")},
}


@cache
def projects() -> dict[tuple[str, str], dict[str, Any]]:
    """For each kind of target and loss, answers that bring them together."""
    found = {}
    for combination in valid("loss"):
        answers = {key: value for key, value in combination.items() if value is not NOT_ASKED}
        found.setdefault((resolve(answers)["target"], answers["loss"]), answers)
    return found


def batch(target: str, per_target: int) -> tuple[Tensor, Tensor]:
    """Random outputs and targets, as the loss gets them."""
    draw = torch.Generator().manual_seed(0)

    def normal(*shape: int) -> Tensor:
        return 3 * torch.randn(*shape, generator=draw)

    def classes(*shape: int) -> Tensor:
        return torch.randint(CLASSES, shape, generator=draw)

    match target:
        case "class":
            return normal(N, CLASSES), classes(N)
        case "binary":
            return normal(N), classes(N).gt(1).float()
        case "multilabel":
            return normal(N, CLASSES), classes(N, CLASSES).gt(1).float()
        case "tokens" | "tags":
            return normal(N * LENGTH, CLASSES), classes(N * LENGTH)
        case "mask":
            return normal(N, CLASSES, SIDE, SIDE), classes(N, SIDE, SIDE)
        case "real" | "series":
            shape = (N,) if target == "real" else (N, LENGTH)
            return normal(*shape, per_target) if per_target > 1 else normal(*shape), normal(*shape)
    raise AssertionError(target)


def test_every_loss_has_a_reference():
    assert projects().keys() == REFERENCES.keys()


@pytest.mark.parametrize(("target", "loss"), REFERENCES, ids=["-".join(pair) for pair in REFERENCES])
def test_it_is_its_formula(target, loss, tmp_path):
    with imported(tmp_path, projects()[target, loss], "data", "evaluate") as [data, evaluate]:
        per_target = {"gaussian-nll": 2, "quantile": len(QUANTILES)}.get(loss, 1)
        outputs, targets = batch(target, per_target)
        if hasattr(data, "IGNORE"):
            targets.view(-1)[1::3] = data.IGNORE
        given = {"class_weights": CLASS_WEIGHTS, "pos_weight": pos_weights(targets), "quantiles": QUANTILES}
        names = inspect.signature(evaluate.make_criterion).parameters
        criterion = evaluate.make_criterion(*(given[name] for name in names))
        outputs.requires_grad_()
        loss_sum = criterion(outputs, targets)
        loss_sum.backward()
        exact = outputs.detach().double().requires_grad_()
        reference = REFERENCES[target, loss](exact, targets.double() if targets.is_floating_point() else targets)
        reference.backward()
        assert loss_sum.item() == pytest.approx(reference.item(), rel=1e-5)
        assert torch.allclose(outputs.grad.double(), exact.grad, rtol=1e-4, atol=1e-5)
