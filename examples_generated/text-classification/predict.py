"""What a checkpoint makes of texts: a line of CSV for each line of a file, its class and how probable that is.

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
from data import Preprocessing, encode, pad
from model import make_model
from stopping import end_with_the_reader

BATCH_SIZE = 64  # texts in one forward pass


@dataclass(frozen=True, kw_only=True)
class Arguments:
    files: tyro.conf.Positional[tuple[Path, ...]]
    """Text files in UTF-8, one text a line."""
    checkpoint: Path = Path("runs/default/best.pt")
    """What train.py wrote: best.pt to use, last.pt to go on from."""


@torch.inference_mode()
def main(arguments: Arguments) -> None:
    if not arguments.files:
        raise SystemExit("name one or more text files")
    checkpoint = read_checkpoint(arguments.checkpoint)
    preprocessing = saved_preprocessing(arguments.checkpoint, checkpoint, Preprocessing)
    device = torch.accelerator.current_accelerator() or torch.device("cpu")
    model = make_model(preprocessing).to(device)
    load_model(arguments.checkpoint, checkpoint, model)
    model.eval()

    # All files, before the first line is written: a mistake in one leaves no table that ends in its middle.
    texts = [read_lines(file) for file in arguments.files]
    sys.stdout.reconfigure(encoding="utf-8", errors="surrogateescape")  # names as they are, in any locale
    table = csv.writer(sys.stdout, lineterminator="\n")
    classes = preprocessing.classes
    table.writerow(["file", "line", "class", "probability"])
    for file, lines in zip(arguments.files, texts, strict=True):
        token_ids = encode(lines, preprocessing)
        for start in range(0, len(token_ids), BATCH_SIZE):
            tokens = pad(token_ids[start : start + BATCH_SIZE])
            logits = model(**{name: tensor.to(device) for name, tensor in tokens.items()})
            probabilities, numbers = logits.softmax(dim=1).max(dim=1)
            rows = zip(numbers.tolist(), probabilities.tolist(), strict=True)
            for line, (number, probability) in enumerate(rows, start + 1):
                table.writerow([file, line, classes[number], f"{probability:.6f}"])


def read_lines(file: Path) -> list[str]:
    try:
        with file.open(encoding="utf-8") as lines:
            return [line.rstrip("\n") for line in lines]
    except FileNotFoundError:
        raise SystemExit(f"{file} does not exist") from None
    except UnicodeDecodeError as error:
        raise SystemExit(f"{file} is no text in UTF-8 ({error}): convert it") from None
    except OSError as error:
        raise SystemExit(f"{file} cannot be read ({error.strerror}): name a text file") from None


if __name__ == "__main__":
    end_with_the_reader()
    main(tyro.cli(Arguments))
