"""The learning rate over the run."""

import torch

from config import Config


def make_scheduler(optimizer: torch.optim.Optimizer, config: Config) -> torch.optim.lr_scheduler.ReduceLROnPlateau:
    return torch.optim.lr_scheduler.ReduceLROnPlateau(
        optimizer,
        mode="min",  # as val_loss is compared for best.pt
        factor=config.lr_decay,
        patience=config.lr_patience,
    )
