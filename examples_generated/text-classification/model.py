"""The model. Replace it with yours: input_ids and attention_mask (N, T) in, logits (N, n_classes) out."""

import torch
from tokenizers import Tokenizer
from torch import Tensor, nn

from data import Preprocessing


class Model(nn.Module):
    """Each token beside its neighbours, then the mean and the maximum over the text."""

    def __init__(self, vocabulary_size: int, n_logits: int, width: int = 64) -> None:
        super().__init__()
        self.embedding = nn.Embedding(vocabulary_size, width)
        # Small at first: what is large takes long to unlearn, and most tokens are rare.
        nn.init.normal_(self.embedding.weight, std=0.1)
        # Three tokens at a time, each feature by itself: enough for "not good" to differ from "good".
        self.neighbours = nn.Conv1d(width, width, kernel_size=3, padding=1, groups=width)
        self.dropout = nn.Dropout(0.5)
        self.hidden = nn.Linear(2 * width, 2 * width)
        # No softmax: the loss takes the logits and applies it itself.
        self.head = nn.Linear(2 * width, n_logits)

    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        mask = attention_mask.unsqueeze(-1)  # (N, T, 1)
        embedded = self.embedding(input_ids) * mask  # zero behind the end, as the convolution's own padding
        mixed = self.neighbours(embedded.transpose(1, 2)).transpose(1, 2)
        # Never negative, and zero at padding, which so changes neither sum nor maximum.
        features = (embedded + mixed).relu() * mask
        mean = features.sum(dim=1) / mask.sum(dim=1).clamp(min=1)  # clamp: a text may have no tokens
        pooled = torch.cat([mean, features.amax(dim=1)], dim=1)
        hidden = pooled + self.hidden(pooled).relu()
        return self.head(self.dropout(hidden))


def make_model(preprocessing: Preprocessing) -> Model:
    """The model in the size that the data asks for."""
    vocabulary_size = Tokenizer.from_str(preprocessing.tokenizer).get_vocab_size()
    return Model(vocabulary_size, n_logits=len(preprocessing.classes))
