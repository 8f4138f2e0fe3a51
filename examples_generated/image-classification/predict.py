"""What a checkpoint sees in images: a line of CSV for each file, with its class and how probable that is.

Usage:
    python predict.py --checkpoint runs/default/best.pt FILE… > predictions.csv
"""

import csv
import sys
from dataclasses import dataclass
from pathlib import Path

import torch
import tyro

from batches import BadData
from checkpoint import load_model, read_checkpoint, saved_preprocessing
from data import Preprocessing, read_images
from model import make_model
from stopping import end_with_the_reader

BATCH_SIZE = 64  # images in one forward pass


@dataclass(frozen=True, kw_only=True)
class Arguments:
    files: tyro.conf.Positional[tuple[Path, ...]]
    """Images of any size."""
    checkpoint: Path = Path("runs/default/best.pt")
    """What train.py wrote: best.pt to use, last.pt to go on from."""


@torch.inference_mode()
def main(arguments: Arguments) -> None:
    if not arguments.files:
        raise SystemExit("name one or more image files")
    checkpoint = read_checkpoint(arguments.checkpoint)
    preprocessing = saved_preprocessing(arguments.checkpoint, checkpoint, Preprocessing)
    device = torch.accelerator.current_accelerator() or torch.device("cpu")
    model = make_model(preprocessing).to(device)
    load_model(arguments.checkpoint, checkpoint, model)
    model.eval()

    sys.stdout.reconfigure(encoding="utf-8", errors="surrogateescape")  # names as they are, in any locale
    table = csv.writer(sys.stdout, lineterminator="\n")
    table.writerow(["file", "class", "probability"])
    for start in range(0, len(arguments.files), BATCH_SIZE):
        files = arguments.files[start : start + BATCH_SIZE]
        try:
            images = read_images(files, preprocessing.image_size)
        except BadData as error:
            raise SystemExit(str(error)) from None
        probabilities, classes = model(images.to(device)).softmax(dim=1).max(dim=1)
        for file, number, probability in zip(files, classes.tolist(), probabilities.tolist(), strict=True):
            table.writerow([file, preprocessing.classes[number], f"{probability:.6f}"])


if __name__ == "__main__":
    end_with_the_reader()
    main(tyro.cli(Arguments))
