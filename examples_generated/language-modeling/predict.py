"""How a checkpoint goes on from a text: prints the text and what the model adds.

Usage:
    python predict.py --checkpoint runs/default/best.pt --prompt "def main("
"""

from dataclasses import dataclass
from pathlib import Path

import torch
import tyro
from tokenizers import Tokenizer

from checkpoint import load_model, read_checkpoint, saved_preprocessing
from data import Preprocessing, encode
from model import make_model
from stopping import end_with_the_reader


@dataclass(frozen=True, kw_only=True)
class Arguments:
    prompt: str
    """The text to go on from."""
    checkpoint: Path = Path("runs/default/best.pt")
    """What train.py wrote: best.pt to use, last.pt to go on from."""
    length: int = 200
    """Tokens to add."""
    temperature: float = 0.8
    """1: as probable as the model says; less: safer; 0: always the most probable token."""
    seed: int = 0
    """Another one, another text."""


@torch.inference_mode()
def main(arguments: Arguments) -> None:
    if arguments.temperature < 0:
        raise SystemExit(f"--temperature {arguments.temperature:g}: it must be 0 or more")
    checkpoint = read_checkpoint(arguments.checkpoint)
    preprocessing = saved_preprocessing(arguments.checkpoint, checkpoint, Preprocessing)
    device = torch.accelerator.current_accelerator() or torch.device("cpu")
    model = make_model(preprocessing).to(device)
    load_model(arguments.checkpoint, checkpoint, model)
    model.eval()

    token_ids = encode(arguments.prompt.splitlines(keepends=True), preprocessing)
    if len(token_ids) == 0:
        raise SystemExit("--prompt is empty: the model needs something to go on from")
    generator = torch.Generator().manual_seed(arguments.seed)
    for _ in range(arguments.length):
        tokens = token_ids[None, -preprocessing.context_length :].to(device)
        logits = model(tokens)[0, -1].float().cpu()
        if arguments.temperature == 0:
            next_token = logits.argmax(keepdim=True)
        else:
            next_token = (logits / arguments.temperature).softmax(dim=0).multinomial(1, generator=generator)
        token_ids = torch.cat([token_ids, next_token])
    print(Tokenizer.from_str(preprocessing.tokenizer).decode(token_ids.tolist()))


if __name__ == "__main__":
    end_with_the_reader()
    main(tyro.cli(Arguments))
