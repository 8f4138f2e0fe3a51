"""Sums that stay on the device until they are read."""

import math
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from data import IGNORE, Preprocessing


class NonFiniteLoss(Exception):
    """A training loss was infinite or NaN, `steps_ago` optimizer steps ago."""

    def __init__(self, steps_ago: int) -> None:
        super().__init__(f"{steps_ago} steps ago")
        self.steps_ago = steps_ago


class TrainLoss:
    """The training loss, as sums over the epoch and since the last line of metrics.jsonl.

    A step hands over its loss as a tensor, unread: item() would make the CPU wait for the device at every step.
    They are read together, and added in double precision.
    """

    def __init__(self) -> None:
        self.unread: list[tuple[Tensor, int]] = []
        self.epoch = [0.0, 0]  # the loss of all tokens, and their number
        self.interval = [0.0, 0]

    def add(self, loss_sum: Tensor, count: int) -> None:
        """One optimizer step: its loss, summed over `count` tokens."""
        self.unread.append((loss_sum.detach(), count))  # detach() lets go of the graph

    def read(self) -> None:
        """Wait for the device and take in the losses of all steps up to here."""
        if not self.unread:
            return
        losses = torch.stack([loss for loss, _ in self.unread]).tolist()
        for i, (loss, (_, count)) in enumerate(zip(losses, self.unread, strict=True)):
            if not math.isfinite(loss):
                raise NonFiniteLoss(steps_ago=len(losses) - 1 - i)
            for sums in (self.epoch, self.interval):
                sums[0] += loss
                sums[1] += count
        self.unread.clear()

    def of_interval(self) -> float:
        """Mean since this was last asked for."""
        self.read()
        (total, count), self.interval = self.interval, [0.0, 0]
        return total / count if count else math.nan

    def of_epoch(self) -> float:
        """Mean over the epoch so far: every one of the tokens counts the same, whatever its batch."""
        self.read()
        return self.epoch[0] / self.epoch[1] if self.epoch[1] else math.nan

    def start_epoch(self) -> None:
        self.epoch = [0.0, 0]

    def state_dict(self) -> dict[str, Any]:
        self.read()
        return {"epoch": self.epoch, "interval": self.interval}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.epoch, self.interval = list(state["epoch"]), list(state["interval"])


class Metrics:
    """Bits per byte and perplexity of logits (N, T, vocabulary) against next tokens (N, T), padding left out.

    Bits per byte compares models with different vocabularies; perplexity is per token and does not.
    """

    def __init__(self, preprocessing: Preprocessing, device: torch.device) -> None:
        self.bytes_per_token = torch.tensor(preprocessing.bytes_per_token, device=device)
        self.unread: list[Tensor] = []

    def update(self, logits: Tensor, next_tokens: Tensor) -> None:
        # Not the training loss, which may be smoothed: the plain negative log-likelihood, in nats.
        nats = cross_entropy(logits.flatten(0, 1).float(), next_tokens.flatten(), ignore_index=IGNORE, reduction="sum")
        real = next_tokens != IGNORE
        n_bytes = self.bytes_per_token[next_tokens.clamp(min=0)] * real
        self.unread.append(torch.stack([nats, real.sum(), n_bytes.sum()]))

    def compute(self) -> dict[str, float]:
        """The first is the one that decides which checkpoint is best, where that is not the loss."""
        # Added in double precision, on the CPU: not every device has it.
        nats, n_tokens, n_bytes = torch.stack(self.unread).cpu().double().sum(0).tolist()
        return {"bits_per_byte": nats / math.log(2) / n_bytes, "perplexity": math.exp(min(nats / n_tokens, 700))}
