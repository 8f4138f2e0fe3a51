"""Every setting of a run. Each is a flag too: `python train.py --lr 1e-3 --epochs 5`."""

import sys
from dataclasses import dataclass, fields
from pathlib import Path
from typing import NoReturn

# Every other number must be more than 0.
MAY_BE_ZERO = {
    "seed",
    "weight_decay",
    "warmup_steps",
    "num_workers",
    "eval_every",
    "checkpoint_every",
}


@dataclass(frozen=True, kw_only=True)
class Config:
    data_dir: Path = Path("data")
    """Folder with train.txt and val.txt (test.txt if there is one), in UTF-8."""
    run_dir: Path = Path("runs/default")
    """Where this run keeps its checkpoints and its metrics."""
    resume: bool = False
    """Go on from run_dir/last.pt: the run ends as if it had never stopped. Without a last.pt it starts."""
    init_from: Path | None = None
    """Start a new run from the weights of this checkpoint, those that fit."""
    overwrite: bool = False
    """Start anew in a run folder that has been used."""
    accept_changes: bool = False
    """Go on although settings differ from those of last.pt: they are meant."""
    show_schedule: bool = False
    """Show the learning rate of the whole run, and train nothing."""

    epochs: int = 3
    """Passes over the training windows, all resumed parts counted."""
    batch_size: int = 16
    """Windows in one optimizer step."""
    accumulate: int = 4
    """Forward passes that one optimizer step is split into: less memory; see README.md for what stays the same."""
    activation_checkpointing: bool = False
    """Compute each block again in the backward pass, instead of keeping it: less memory, a third slower."""
    lr: float = 0.003
    """Peak learning rate."""
    weight_decay: float = 0.05
    """Shrinks the weights at every step, apart from the gradient; biases and norms are left out."""
    warmup_steps: int | None = None
    """Optimizer steps over which the learning rate climbs from 0 to lr; by default a twentieth of the run."""
    max_grad_norm: float = 1.0
    """Gradients whose joint norm is larger are scaled down to it."""

    vocabulary_size: int = 1024
    """Different tokens at the most, the 256 bytes among them; learnt from the training text."""
    context_length: int = 64
    """Tokens in one window: the model predicts each from those before it in the window."""
    num_workers: int = 0
    """Processes that prepare batches while the device computes; 0 prepares them in between."""
    seed: int = 0
    """Same seed, same machine, same settings: same result."""
    deterministic: bool = False
    """Only algorithms that always give the same bits; slower on a GPU, and the CPU needs no such thing."""

    log_every: int = 50
    """Optimizer steps from one line of the training loss in metrics.jsonl to the next."""
    eval_every: int = 0
    """Optimizer steps from one evaluation to the next; 0: at the end of each epoch, where there is one in any case."""
    checkpoint_every: int = 0
    """Optimizer steps from one last.pt to the next; 0: at the end of each epoch, where there is one in any case."""

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if type(value) in (int, float) and not (value > 0 or (value == 0 and field.name in MAY_BE_ZERO)):
                least = "0 or more" if field.name in MAY_BE_ZERO else "more than 0"
                _refuse(f"--{field.name.replace('_', '-')} {value}: it must be {least}")
            if type(value) in (int, float) and not value < 2**63:
                _refuse(f"--{field.name.replace('_', '-')} {value}: it is too large")
        if self.resume and self.overwrite:
            _refuse("--resume goes on, --overwrite starts anew: give one of them")
        if self.resume and self.init_from:
            _refuse("--resume goes on, --init-from starts anew: give one of them")
        if self.batch_size % self.accumulate:
            _refuse(f"--batch-size {self.batch_size} does not divide into --accumulate {self.accumulate} equal parts")


def _refuse(message: str) -> NoReturn:
    print(message, file=sys.stderr)
    raise SystemExit(2)  # wrong flags, as an unknown one
