"""The model. Replace it with yours: tokens (N, T) in, logits (N, T, vocabulary) for the next tokens out."""

import math

from torch import Tensor, nn
from torch.nn.functional import linear, scaled_dot_product_attention
from torch.utils.checkpoint import checkpoint

from data import Preprocessing


class Block(nn.Module):
    """Every position takes in what it needs from those before it, then works on what it has."""

    def __init__(self, width: int, heads: int, dropout: float) -> None:
        super().__init__()
        self.heads = heads
        self.attention_norm = nn.LayerNorm(width)
        self.queries_keys_values = nn.Linear(width, 3 * width)
        self.attention_out = nn.Linear(width, width)
        self.mlp_norm = nn.LayerNorm(width)
        self.mlp_in = nn.Linear(width, 4 * width)
        self.mlp_out = nn.Linear(4 * width, width)
        self.activation = nn.GELU()
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        # Norms come first in each branch, and the sum goes straight through: deep stacks train without tricks.
        x = x + self.dropout(self.attention(self.attention_norm(x)))
        return x + self.dropout(self.mlp_out(self.activation(self.mlp_in(self.mlp_norm(x)))))

    def attention(self, x: Tensor) -> Tensor:
        n, length, width = x.shape
        heads = self.queries_keys_values(x).view(n, length, 3, self.heads, width // self.heads)
        queries, keys, values = heads.permute(2, 0, 3, 1, 4)
        # Causal: no position sees a later one. So padding, which comes last, needs no mask of its own.
        mixed = scaled_dot_product_attention(queries, keys, values, is_causal=True)
        return self.attention_out(mixed.transpose(1, 2).reshape(n, length, width))


class Model(nn.Module):
    """A causal transformer in the manner of GPT-2."""

    def __init__(
        self,
        vocabulary_size: int,
        context_length: int,
        width: int = 64,
        depth: int = 2,
        heads: int = 4,
        *,
        recompute: bool = False,
    ) -> None:
        super().__init__()
        self.recompute = recompute  # the blocks in the backward pass, instead of keeping what they have computed
        self.tokens = nn.Embedding(vocabulary_size, width)
        self.positions = nn.Embedding(context_length, width)
        self.blocks = nn.Sequential(*(Block(width, heads, dropout=0.1) for _ in range(depth)))
        self.norm = nn.LayerNorm(width)
        for name, parameter in self.named_parameters():
            if name.endswith("_out.weight"):
                nn.init.normal_(parameter, std=0.02 / math.sqrt(2 * depth))  # 2 × depth branches add up
            elif parameter.ndim == 2:
                nn.init.normal_(parameter, std=0.02)
            elif name.endswith("bias"):
                nn.init.zeros_(parameter)

    def forward(self, tokens: Tensor) -> Tensor:
        x = self.tokens(tokens) + self.positions.weight[: tokens.shape[1]]
        for block in self.blocks:
            # Puts the random generator back for the second time: dropout drops the same.
            x = checkpoint(block, x, use_reentrant=False) if self.recompute else block(x)
        x = self.norm(x)
        return linear(x, self.tokens.weight)  # the embedding again: what a token means is also what predicts it


def make_model(preprocessing: Preprocessing, *, recompute: bool = False) -> Model:
    """The model in the size that the data asks for. With `recompute` it keeps no activations inside its blocks."""
    return Model(len(preprocessing.bytes_per_token), preprocessing.context_length, recompute=recompute)
