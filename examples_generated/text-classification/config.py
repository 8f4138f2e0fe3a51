"""Every setting of a run. Each is a flag too: `python train.py --lr 1e-3 --epochs 5`."""

import sys
from dataclasses import dataclass, fields
from pathlib import Path
from typing import NoReturn

# Every other number must be more than 0.
MAY_BE_ZERO = {
    "seed",
    "weight_decay",
    "num_workers",
    "eval_every",
    "checkpoint_every",
}


@dataclass(frozen=True, kw_only=True)
class Config:
    data_dir: Path = Path("data")
    """Folder with train.csv and val.csv (test.csv if there is one), each with the columns `text` and `label`."""
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

    epochs: int = 15
    """Passes over the training texts, all resumed parts counted."""
    batch_size: int = 32
    """Texts in one optimizer step."""
    lr: float = 0.005
    """Learning rate at the start."""
    weight_decay: float = 0.0
    """Added to the gradient, times the weight (an L2 penalty); biases and norms are left out."""
    lr_step_epochs: int = 5
    """Epochs from one cut of the learning rate to the next."""
    lr_decay: float = 0.1
    """What a cut multiplies the learning rate by."""
    max_grad_norm: float = 1.0
    """Gradients whose joint norm is larger are scaled down to it."""

    vocabulary_size: int = 4000
    """Different tokens at the most, the 256 bytes among them; learnt from the training texts."""
    max_length: int = 128
    """Tokens of a text that the model sees; the rest is cut off."""
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


def _refuse(message: str) -> NoReturn:
    print(message, file=sys.stderr)
    raise SystemExit(2)  # wrong flags, as an unknown one
