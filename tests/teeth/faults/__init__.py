"""The faults, by what goes wrong. Importing this imports them all."""

from teeth.faults import best, checkpoints, data, losses, metrics, modes, steps
from teeth.faults.registry import FAULTS, Fault

__all__ = ["FAULTS", "Fault", "best", "checkpoints", "data", "losses", "metrics", "modes", "steps"]
