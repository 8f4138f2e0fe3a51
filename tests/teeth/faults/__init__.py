"""The faults, by what goes wrong. Importing this imports them all."""

from teeth.faults import steps
from teeth.faults.registry import FAULTS, Fault

__all__ = ["FAULTS", "Fault", "steps"]
