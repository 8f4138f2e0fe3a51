"""From CSV files to batches. Replace `Texts` with your own data: a batch of indices in, a batch of tensors out."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd
import torch
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import Dataset

from batches import BatchKey
from config import Config


@dataclass(frozen=True)
class Preprocessing:
    """What the training split decides about every text. It travels in the checkpoint."""

    classes: list[str]
    tokenizer: str  # the JSON of the tokenizers library
    max_length: int

    @classmethod
    def fit(cls, config: Config) -> "Preprocessing":
        table = read_table(config.data_dir / "train.csv")
        classes = sorted(set(table["label"]))
        if len(classes) == 1:
            raise SystemExit(f"{config.data_dir / 'train.csv'} has the label {classes[0]} alone: nothing to tell apart")
        return cls(classes, train_tokenizer(table["text"], config.vocabulary_size), config.max_length)


class Texts(Dataset[tuple[dict[str, Tensor], Tensor]]):
    """data_dir/SPLIT.csv, by whole batches: tokens as `pad` makes them, labels (N,), class numbers."""

    def __init__(self, config: Config, split: str, preprocessing: Preprocessing) -> None:
        file = config.data_dir / f"{split}.csv"
        table = read_table(file)
        strangers = sorted(set(table["label"]) - set(preprocessing.classes))
        if strangers:
            raise SystemExit(f"{file}: no training text has the label {', '.join(strangers[:5])}")
        labels = [preprocessing.classes.index(label) for label in table["label"]]
        self.labels = torch.tensor(labels)
        self.token_ids = encode(table["text"], preprocessing)

    def __getitem__(self, key: BatchKey) -> tuple[dict[str, Tensor], Tensor]:
        _, indices = key
        return pad([self.token_ids[i] for i in indices]), self.labels[indices]

    def __len__(self) -> int:
        return len(self.token_ids)


def train_tokenizer(texts: Sequence[str], vocabulary_size: int) -> str:
    """Byte-level BPE: it has a token for every byte, so no text is beyond it, and it comes out the same every time."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.normalizer = normalizers.Lowercase()
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel()
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary_size,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    return tokenizer.to_str()


def encode(texts: Sequence[str], preprocessing: Preprocessing) -> list[Tensor]:
    """The token ids of each text."""
    tokenizer = Tokenizer.from_str(preprocessing.tokenizer)
    tokenizer.enable_truncation(preprocessing.max_length)
    return [torch.tensor(encoding.ids, dtype=torch.int64) for encoding in tokenizer.encode_batch(list(texts))]


def pad(token_ids: Sequence[Tensor]) -> dict[str, Tensor]:
    """input_ids (N, T), T being the length of the longest text, and attention_mask (N, T), True where there is text."""
    lengths = torch.tensor([len(ids) for ids in token_ids])
    # Filled up with token 0, which is one like any other: the mask tells them apart.
    input_ids = pad_sequence(token_ids, batch_first=True)
    if input_ids.shape[1] == 0:
        input_ids = torch.zeros(len(token_ids), 1, dtype=torch.int64)  # nothing but empty texts, all of it padding
    return {"input_ids": input_ids, "attention_mask": torch.arange(input_ids.shape[1]) < lengths[:, None]}


def read_table(file: Path) -> pd.DataFrame:
    """The rows of a CSV file, every cell as a string."""
    try:
        # keep_default_na: "None" and "NA" are texts, too.
        table = pd.read_csv(file, dtype=str, keep_default_na=False)
    except FileNotFoundError:
        raise SystemExit(f"{file} does not exist (a sample: python sample_data.py)") from None
    except (OSError, ValueError) as error:
        reason = " ".join(str(error).split())
        raise SystemExit(f"{file} cannot be read as CSV in UTF-8 ({reason}): correct it") from None
    for column in ("text", "label"):
        if column not in table.columns:
            raise SystemExit(f"{file} has no column `{column}`, only {', '.join(table.columns)}: add it")
    if table.empty:
        raise SystemExit(f"{file} has no rows: put some below its header")
    if not isinstance(table.index, pd.RangeIndex):  # pandas takes the cells that are too many for row names
        raise SystemExit(f"{file} has more cells in a row than names in its header: quote texts that hold commas")
    for column in ("text", "label"):
        empty = table[column].str.strip() == ""
        if empty.any():
            raise SystemExit(f"{file}, row {empty.idxmax() + 1} below the header: its {column} is empty: fill it in")
    return table
