"""The faults, by what goes wrong. Importing this imports them all."""

from teeth.faults import data, losses, metrics, steps
from teeth.faults.registry import FAULTS, Fault

__all__ = ["FAULTS", "Fault", "data", "losses", "metrics", "steps"]
