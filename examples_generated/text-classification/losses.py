"""The loss, which torch does not have in this form."""

from torch import Tensor, nn
from torch.nn.functional import cross_entropy


class FocalLoss(nn.Module):
    """Cross-entropy in which a sample counts less the surer the model is of it: (1 - p)^gamma × -log p, summed.

    p is the probability that the model gives to the truth (Lin et al. 2017, Focal Loss for Dense Object Detection,
    equation 4). gamma 0 is plain cross-entropy.
    """

    def __init__(self, gamma: float) -> None:
        super().__init__()
        self.gamma = gamma

    def forward(self, logits: Tensor, labels: Tensor) -> Tensor:
        """logits (N, n_classes), labels (N,) as class numbers."""
        cross_entropies = cross_entropy(logits, labels, reduction="none")
        return ((1 - (-cross_entropies).exp()) ** self.gamma * cross_entropies).sum()
