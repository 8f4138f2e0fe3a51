"""Every setting of a run. Each is a flag too: `python train.py --lr 1e-3 --epochs 5`."""

import sys
from dataclasses import dataclass, fields
from pathlib import Path
from typing import NoReturn

# Every other number must be more than 0.
MAY_BE_ZERO = {
    "seed",
    "weight_decay",
    "momentum",
    "num_workers",
    "eval_every",
    "checkpoint_every",
}


@dataclass(frozen=True, kw_only=True)
class Config:
    data_dir: Path = Path("data")
    """Folder with train.csv and val.csv (test.csv if there is one), each with a line of column names on top."""
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

    epochs: int = 20
    """Passes over the training rows, all resumed parts counted."""
    batch_size: int = 32
    """Rows in one optimizer step."""
    lr: float = 0.05
    """Peak learning rate."""
    weight_decay: float = 0.0005
    """Added to the gradient, times the weight (an L2 penalty); biases and norms are left out."""
    momentum: float = 0.9
    """Share of the last step's direction that the next one keeps (Nesterov)."""

    target: str = "diagnosis"
    """Column with the class; of its two, the second by name is yes."""
    ignore: tuple[str, ...] = ()
    """Columns to leave out: the number of a row, or what is known only once the target is."""
    categories: tuple[str, ...] = ()
    """Columns of numbers that are names, such as postcodes; columns of text are categories anyway."""
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
