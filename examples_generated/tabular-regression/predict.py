"""What a checkpoint makes of a CSV file: a line for each row, with the number in the target's own unit.

Usage:
    python predict.py --checkpoint runs/default/best.pt FILE… > predictions.csv
"""

import csv
import sys
from dataclasses import dataclass
from pathlib import Path

import torch
import tyro

from checkpoint import load_model, read_checkpoint, saved_preprocessing
from data import Preprocessing, read_table
from model import make_model
from stopping import end_with_the_reader


@dataclass(frozen=True, kw_only=True)
class Arguments:
    files: tyro.conf.Positional[tuple[Path, ...]]
    """CSV files with the columns of the training data. The target's is not needed."""
    checkpoint: Path = Path("runs/default/best.pt")
    """What train.py wrote: best.pt to use, last.pt to go on from."""
    batch_size: int = 4096
    """Rows in one forward pass."""


@torch.inference_mode()
def main(arguments: Arguments) -> None:
    if not arguments.files:
        raise SystemExit("name one or more CSV files")
    checkpoint = read_checkpoint(arguments.checkpoint)
    preprocessing = saved_preprocessing(arguments.checkpoint, checkpoint, Preprocessing)
    device = torch.accelerator.current_accelerator() or torch.device("cpu")
    model = make_model(preprocessing).to(device)
    load_model(arguments.checkpoint, checkpoint, model)
    model.eval()

    # All files, before the first line is written: a mistake in one leaves no table that ends in its middle.
    tables = [preprocessing.features(read_table(file), file) for file in arguments.files]
    sys.stdout.reconfigure(encoding="utf-8", errors="surrogateescape")  # names as they are, in any locale
    table = csv.writer(sys.stdout, lineterminator="\n")
    table.writerow(["file", "row", "prediction"])
    for file, features in zip(arguments.files, tables, strict=True):
        predictions = torch.cat([model(part.to(device)) for part in features.split(arguments.batch_size)])
        predictions = predictions * preprocessing.target_std + preprocessing.target_mean
        for row, prediction in enumerate(predictions.tolist(), 1):
            table.writerow([file, row, f"{prediction:.6g}"])


if __name__ == "__main__":
    end_with_the_reader()
    main(tyro.cli(Arguments))
