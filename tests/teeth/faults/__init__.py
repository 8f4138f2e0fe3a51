"""The faults, by what goes wrong. Importing this imports them all."""

from teeth.faults import (
    averages,
    best,
    checkpoints,
    closures,
    data,
    losses,
    metrics,
    modes,
    precision,
    schedules,
    steps,
    windows,
)
from teeth.faults.registry import FAULTS, Fault

__all__ = [
    "FAULTS",
    "Fault",
    "averages",
    "best",
    "checkpoints",
    "closures",
    "data",
    "losses",
    "metrics",
    "modes",
    "precision",
    "schedules",
    "steps",
    "windows",
]
