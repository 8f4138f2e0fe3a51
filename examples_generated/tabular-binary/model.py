"""The model. Replace it with yours: features (N, n_features) in, logits (N,) out."""

from torch import Tensor, nn

from data import Preprocessing


class Model(nn.Module):
    """Two hidden layers. No batch norm: the last batch of an epoch may be a single row."""

    def __init__(self, n_features: int, width: int = 64) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(n_features, width),
            nn.SiLU(),
            nn.Dropout(0.3),
            nn.Linear(width, width),
            nn.SiLU(),
            nn.Dropout(0.3),
        )
        # No sigmoid: the loss takes the logits and applies it itself.
        self.head = nn.Linear(width, 1)

    def forward(self, features: Tensor) -> Tensor:
        return self.head(self.layers(features)).squeeze(-1)  # (N,), as the labels: (N, 1) against (N,) would be N × N


def make_model(preprocessing: Preprocessing) -> Model:
    """The model in the size that the data asks for."""
    return Model(preprocessing.n_features)
