"""Checkpoints from which a run goes on as if it had never stopped."""

import os
import random
import warnings
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol, TypeVar

import numpy as np
import torch
from torch import nn

Kind = TypeVar("Kind")


class Stateful(Protocol):
    def state_dict(self) -> dict[str, Any]: ...
    def load_state_dict(self, state: dict[str, Any], /) -> object: ...


def save_checkpoint(path: Path, state: Mapping[str, Stateful], **about: Any) -> None:
    """Write the state of every part, the random generators' and what is known `about` the run to `path`.

    Only tensors and plain Python values: such a file loads with `weights_only=True`.
    """
    checkpoint = {name: part.state_dict() for name, part in state.items()}
    _refuse_non_finite(checkpoint["model"], path)
    checkpoint |= about
    checkpoint["classes"] = {name: type(part).__name__ for name, part in state.items()}
    checkpoint["random"] = _random_states()
    unfinished = path.with_suffix(".tmp")
    try:
        with unfinished.open("wb") as file:
            torch.save(checkpoint, file)
            file.flush()
            os.fsync(file.fileno())
        # Renamed in one move: killed at any moment, this leaves the old checkpoint or the new one, never half of one.
        unfinished.replace(path)
    except (OSError, RuntimeError) as error:
        unfinished.unlink(missing_ok=True)
        reason = " ".join(str(error).split())
        kept = "; what it held before is still there" if path.exists() else ""
        raise SystemExit(f"{path} could not be written ({reason}){kept}") from error
    if os.name == "posix":
        folder = os.open(path.parent, os.O_RDONLY)
        with suppress(OSError):  # not every file system has this for a folder
            os.fsync(folder)  # the rename itself reaches the disk
        os.close(folder)


def read_checkpoint(path: Path) -> dict[str, Any]:
    """What `save_checkpoint` wrote, on the CPU wherever it was written."""
    try:
        with warnings.catch_warnings(action="ignore", category=UserWarning):  # of other kinds of file, refused below
            # weights_only: a checkpoint that came from somewhere else cannot run code here.
            checkpoint = torch.load(path, map_location="cpu", weights_only=True)
    except FileNotFoundError:
        raise SystemExit(f"{path} does not exist: python train.py writes it") from None
    except IsADirectoryError:
        raise SystemExit(f"{path} is a folder: name a file, such as {path / 'best.pt'}") from None
    except PermissionError:
        raise SystemExit(f"{path} may not be read: see its permissions") from None
    except Exception:  # a damaged file makes the unpickler raise anything
        raise SystemExit(f"{path} is no whole checkpoint, but cut short or another kind of file: use another") from None
    parts = ("model", "config", "classes", "random")
    if not isinstance(checkpoint, dict) or not all(isinstance(checkpoint.get(part), dict) for part in parts):
        raise SystemExit(f"{path} is no checkpoint of this project: it lacks model, config, classes or random")
    return checkpoint


def restore(checkpoint: Mapping[str, Any], state: Mapping[str, Stateful], path: Path, *, new_settings: bool) -> None:
    """Put every part of `state`, and the random generators, back to where `save_checkpoint` found them.

    With `new_settings`, learning rate, weight decay and the like stay as the flags have set them, and the next step is
    taken at the rate that the new schedule has there.
    """
    for name, part in state.items():
        saved = checkpoint[name]
        if new_settings and name == "optimizer":
            saved = _with_new_settings(saved, part.state_dict())
        try:
            if new_settings and name == "scheduler":
                _step_on(part, saved["last_epoch"])  # the optimizer, whose rate it sets, comes before it in `state`
                continue
            part.load_state_dict(saved)
        except (KeyError, RuntimeError, ValueError) as error:
            raise SystemExit(
                f"{path}: its {name} does not fit ({' '.join(str(error).split())[:300]}):"
                f" start from the weights that do with --init-from {path} and another --run-dir"
            ) from error
    try:
        _set_random_states(checkpoint["random"])
    except (LookupError, RuntimeError, TypeError, ValueError):
        raise SystemExit(
            f"{path}: this version of Python, NumPy or torch does not take the states of its random generators:"
            f" start from its weights with --init-from {path}"
        ) from None


def saved_preprocessing(path: Path, checkpoint: Mapping[str, Any], kind: type[Kind]) -> Kind:
    """The preprocessing that `checkpoint`, which was read from `path`, was trained with."""
    try:
        return kind(**checkpoint["preprocessing"])
    except (KeyError, TypeError):
        raise SystemExit(
            f"{path} is of another project, or of data.py as it was before it changed: use another,"
            f" or start from its weights with train.py --init-from {path} and another --run-dir"
        ) from None


def load_model(path: Path, checkpoint: Mapping[str, Any], model: nn.Module) -> None:
    """Give `model` all of the weights in `checkpoint`, which was read from `path`."""
    try:
        model.load_state_dict(checkpoint["model"])
    except RuntimeError as error:
        reason = " ".join(str(error).split())[:300]
        raise SystemExit(f"{path} is of another model than model.py makes now ({reason})") from None


def load_weights(path: Path, model: nn.Module) -> str:
    """Start from the weights in `path`: those that fit by name and shape. Gives in words which stay as they are."""
    saved, own = read_checkpoint(path)["model"], model.state_dict()
    fitting = {name: saved[name] for name in own if name in saved and saved[name].shape == own[name].shape}
    if not fitting:
        raise SystemExit(f"no layer of {path} fits this model")
    model.load_state_dict(fitting, strict=False)
    unchanged = sorted(own.keys() - fitting.keys())
    left = f"; left as initialised: {', '.join(unchanged)}" if unchanged else ""
    return f"{len(fitting)} of {len(own)} weights from {path}{left}"


def _with_new_settings(saved: dict[str, Any], new: dict[str, Any]) -> dict[str, Any]:
    groups = zip(saved["param_groups"], new["param_groups"], strict=True)
    return saved | {"param_groups": [was | now for was, now in groups]}


def _step_on(scheduler: Any, steps: int) -> None:
    """To where a run of `steps` steps of the schedule stands; some schedules make a rate from the one before it."""
    with warnings.catch_warnings(action="ignore", category=UserWarning):  # the optimizer has taken no step of its own
        for _ in range(steps):
            scheduler.step()


def _refuse_non_finite(weights: Mapping[str, torch.Tensor], path: Path) -> None:
    """NaN never replaces a good checkpoint."""
    finite = torch.stack([tensor.isfinite().all() for tensor in weights.values()]).tolist()
    for name, good in zip(weights, finite, strict=True):
        if not good:
            raise SystemExit(f"{name} is no longer finite, so {path} was not written: try a lower --lr")


def _random_states() -> dict[str, Any]:
    kind, keys, *rest = np.random.get_state()
    states = {
        "python": random.getstate(),
        "numpy": (kind, keys.tolist(), *rest),  # as a list: weights_only=True takes no arrays
        "torch": torch.get_rng_state(),
    }
    accelerator = torch.accelerator.current_accelerator()
    if accelerator is not None:
        states[accelerator.type] = torch.get_device_module(accelerator).get_rng_state()  # dropout draws there
    return states


def _set_random_states(states: Mapping[str, Any]) -> None:
    random.setstate(states["python"])
    np.random.set_state(states["numpy"])
    torch.set_rng_state(states["torch"])
    accelerator = torch.accelerator.current_accelerator()
    if accelerator is not None and accelerator.type in states:
        torch.get_device_module(accelerator).set_rng_state(states[accelerator.type])
