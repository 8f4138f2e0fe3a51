"""From a text file to batches. Replace `Windows` with your own data: a batch of indices in, a batch of tensors out."""

from dataclasses import dataclass
from pathlib import Path

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from torch import Tensor
from torch.utils.data import Dataset

from batches import BatchKey
from config import Config

IGNORE = -100  # the next token where there is none: cross-entropy leaves it out, as torch does by default


@dataclass(frozen=True)
class Preprocessing:
    """What the training split decides about every text. It travels in the checkpoint."""

    tokenizer: str  # the JSON of the tokenizers library
    bytes_per_token: list[int]
    context_length: int

    @classmethod
    def fit(cls, config: Config) -> "Preprocessing":
        tokenizer = train_tokenizer(read_lines(config.data_dir / "train.txt"), config.vocabulary_size)
        # Byte-level: each character of a token stands for one byte.
        bytes_per_token = [len(tokenizer.id_to_token(i)) for i in range(tokenizer.get_vocab_size())]
        return cls(tokenizer.to_str(), bytes_per_token, config.context_length)


class Windows(Dataset[tuple[Tensor, Tensor]]):
    """data_dir/SPLIT.txt, by whole batches: tokens (N, T) and next_tokens (N, T), the same text one token later.

    The windows lie end to end: every token but the first is predicted exactly once. With `augment` each one is moved
    by up to half its length, by another number in every epoch, so that the model does not meet the same cuts again.
    """

    def __init__(self, config: Config, split: str, preprocessing: Preprocessing, *, augment: bool = False) -> None:
        file = config.data_dir / f"{split}.txt"
        self.ids = encode(read_lines(file), preprocessing)
        if len(self.ids) < 2:
            raise SystemExit(f"{file} is too short: it takes two tokens to predict one from the other")
        self.length, self.augment = preprocessing.context_length, augment

    def __getitem__(self, key: BatchKey) -> tuple[Tensor, Tensor]:
        seed, indices = key
        starts = torch.tensor(indices) * self.length
        if self.augment:
            generator = torch.Generator().manual_seed(seed)  # comes with the batch: the same after a resume
            starts += torch.randint(-(self.length // 2), self.length // 2 + 1, starts.shape, generator=generator)
            starts.clamp_(0, max(len(self.ids) - 1 - self.length, 0))  # at the ends of the text, back into it
        positions = starts[:, None] + torch.arange(self.length + 1)
        window = self.ids[positions.clamp(max=len(self.ids) - 1)]
        # Only the last window can reach beyond the text.
        next_tokens = window[:, 1:].masked_fill(positions[:, 1:] >= len(self.ids), IGNORE)
        return window[:, :-1], next_tokens

    def __len__(self) -> int:
        return -(-(len(self.ids) - 1) // self.length)


def train_tokenizer(lines: list[str], vocabulary_size: int) -> Tokenizer:
    """Byte-level BPE: it has a token for every byte, so no text is beyond it, and it comes out the same every time."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary_size,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(lines, trainer)
    return tokenizer


def encode(lines: list[str], preprocessing: Preprocessing) -> Tensor:
    """The token ids of a text."""
    tokenizer = Tokenizer.from_str(preprocessing.tokenizer)
    # Line by line, as in training: it takes far less memory than the whole text at once.
    return torch.tensor([i for encoding in tokenizer.encode_batch(lines) for i in encoding.ids])


def read_lines(file: Path) -> list[str]:
    """The lines of a text file, each with the line break at its end."""
    try:
        return file.read_text(encoding="utf-8").splitlines(keepends=True)
    except FileNotFoundError:
        raise SystemExit(f"{file} does not exist (a sample: python sample_data.py)") from None
    except UnicodeDecodeError as error:
        raise SystemExit(f"{file} is no text in UTF-8 ({error}): convert it") from None
    except OSError as error:
        raise SystemExit(f"{file} cannot be read ({error.strerror}): put a text file there") from None
