"""The model. Replace it with yours: images (N, 3, S, S) in, logits (N, n_classes) out."""

from torch import Tensor, nn

from data import Preprocessing


class Model(nn.Module):
    """Three blocks of convolution, each at half the resolution of the last, then a hidden layer."""

    def __init__(self, n_logits: int, width: int = 16) -> None:
        super().__init__()
        self.features = nn.Sequential(
            _block(3, width),
            _block(width, 2 * width),
            _block(2 * width, 4 * width),
            nn.AdaptiveAvgPool2d(1),
            nn.Flatten(),
            nn.Linear(4 * width, 4 * width),
            nn.ReLU(),
            nn.Dropout(0.1),
        )
        # No softmax: the loss takes the logits and applies it itself.
        self.head = nn.Linear(4 * width, n_logits)

    def forward(self, images: Tensor) -> Tensor:
        return self.head(self.features(images))


def make_model(preprocessing: Preprocessing) -> Model:
    """The model in the size that the data asks for."""
    if preprocessing.image_size < 8:
        raise SystemExit(f"--image-size {preprocessing.image_size}: the model halves it three times, so 8 is the least")
    return Model(n_logits=len(preprocessing.classes))


def _block(n_in: int, n_out: int) -> nn.Sequential:
    return nn.Sequential(
        # No bias: batch norm takes the mean away again.
        nn.Conv2d(n_in, n_out, kernel_size=3, padding=1, bias=False),
        nn.BatchNorm2d(n_out),
        nn.ReLU(),
        nn.MaxPool2d(2),
    )
