"""The faults, by what goes wrong. Importing this imports them all."""

from teeth.faults import best, checkpoints, modes, steps
from teeth.faults.registry import FAULTS, Fault

__all__ = ["FAULTS", "Fault", "best", "checkpoints", "modes", "steps"]
