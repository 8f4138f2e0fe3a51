"""Run a script of a generated project, and write down in order what its loop does.

Usage: trace.py OPTIONS SCRIPT [ARGUMENT …]

OPTIONS is a JSON object. `log`: the file for the list of [word, value]. The others make something happen:
`bfloat16`: the CPU says that it has instructions for it. `scale`: where the loss scaler begins. `infinite_from` and
`infinite_to`: the backward passes after which a gradient is infinite, counted from 1. `scores`: the name of a value of
evaluate(), and what it is each time. `stop`: a SIGTERM after so many steps; 0: during the preparations.
Any warning ends the run.
"""

import importlib
import json
import os
import runpy
import signal
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook


def wrap(owner: Any, name: str, before: Callable[..., Any] | None = None, after: Callable[..., Any] | None = None):
    """Have `before` called with the arguments of owner.name, and `after` with what it gave and its first argument."""
    original = getattr(owner, name)

    def wrapped(*arguments: Any, **named: Any) -> Any:
        if before:
            before(*arguments, **named)
        result = original(*arguments, **named)
        if after:
            after(result, arguments[0])
        return result

    setattr(owner, name, wrapped)


class Trace:
    """What happens, in order, and what is made to happen."""

    def __init__(self, options: dict[str, Any]) -> None:
        self.options = options
        self.log: list[tuple[str, Any]] = []
        self.stepping = 0  # an optimizer may hand its step on to others, and the scaler hands it on to all
        self.steps = self.backward_passes = 0
        self.optimizer: torch.optim.Optimizer | None = None

    def note(self, word: str) -> Callable[..., None]:
        return lambda *_, **__: self.log.append((word, None))

    def begin_step(self, optimizer: torch.optim.Optimizer, *_: Any) -> None:
        if not self.stepping:
            self.log.append(("step", optimizer.param_groups[0]["lr"]))
        self.stepping += 1

    def end_step(self, *_: Any) -> None:
        self.stepping -= 1
        if not self.stepping:
            self.steps += 1
            if self.steps == self.options.get("stop"):
                os.kill(os.getpid(), signal.SIGTERM)

    def zeroed(self, optimizer: torch.optim.Optimizer, *_: Any) -> None:
        self.log.append(("zero", None))
        self.optimizer = optimizer

    def after_backward(self, *_: Any) -> None:
        self.backward_passes += 1
        first = self.options.get("infinite_from", sys.maxsize)
        if first <= self.backward_passes <= self.options.get("infinite_to", sys.maxsize):
            self.optimizer.param_groups[0]["params"][0].grad.view(-1)[0] = float("inf")

    def of_model(self, word: str) -> Callable[..., None]:
        """Log what is done to the model as a whole: in which mode, and whether with a graph."""

        def log(module: nn.Module, *_: Any, **__: Any) -> None:
            if type(module).__name__ == "Model":
                self.log.append((word, [module.training, torch.is_grad_enabled()]))

        return log

    def watch_torch(self) -> None:
        register_optimizer_step_pre_hook(self.begin_step)
        register_optimizer_step_post_hook(self.end_step)
        nn.modules.module.register_module_forward_pre_hook(self.of_model("forward"))
        wrap(nn.Module, "to", self.of_model("move"))
        wrap(torch.optim.Optimizer, "__init__", self.note("make optimizer"))
        wrap(torch.optim.Optimizer, "load_state_dict", self.note("restore optimizer"))
        wrap(torch.optim.Optimizer, "zero_grad", self.zeroed)
        wrap(torch.Tensor, "backward", self.note("backward"), self.after_backward)
        wrap(nn.utils, "clip_grad_norm_", after=lambda norm, _: self.log.append(("clip", norm.item())))
        wrap(nn.utils, "clip_grad_value_", self.note("clip"))
        wrap(torch, "autocast", lambda device, dtype, **_: self.log.append(("autocast", [device, str(dtype)])))
        wrap(torch, "load", lambda *_, map_location=None, **__: self.log.append(("load", map_location)))

    def watch_scaler(self) -> None:
        scaler = torch.amp.GradScaler
        wrap(scaler, "__init__", lambda _, device: self.log.append(("make scaler", device)), self.begin_at_scale)
        wrap(scaler, "unscale_", self.note("unscale"))
        # It leaves out the optimizer's own step if a gradient has overflowed.
        wrap(scaler, "step", lambda _, optimizer: self.begin_step(optimizer), self.end_step)
        wrap(scaler, "update", after=lambda _, scaler: self.log.append(("update", scaler.get_scale())))

    def begin_at_scale(self, _: None, scaler: torch.amp.GradScaler) -> None:
        scaler._init_scale = self.options.get("scale", scaler._init_scale)

    def watch_project(self) -> None:
        if Path("ema.py").exists():
            wrap(importlib.import_module("ema").WeightAverage, "update", self.note("average"))
        if Path("schedule.py").exists():
            schedule = importlib.import_module("schedule")
            # Once it is made, which takes a step of its own.
            wrap(schedule, "make_scheduler", after=lambda made, _: wrap(type(made), "step", self.note("schedule")))
        name, scores = self.options.get("scores", ("", []))
        scores = iter(scores)

        def evaluated(values: dict[str, float], _: nn.Module) -> None:
            self.log.append(("evaluate", None))
            if name:
                values[name] = next(scores)

        wrap(importlib.import_module("evaluate"), "evaluate", after=evaluated)

    def make_happen(self) -> None:
        if self.options.get("bfloat16"):
            torch.backends.cpu.get_cpu_capability = lambda: "AVX512"
        if self.options.get("stop") == 0:
            wrap(importlib.import_module("model"), "make_model", lambda *_, **__: os.kill(os.getpid(), signal.SIGTERM))


def main() -> None:
    options, script = json.loads(sys.argv[1]), sys.argv[2]
    sys.argv = sys.argv[2:]
    sys.path[0] = str(Path.cwd())  # what `python SCRIPT` would put there
    warnings.simplefilter("error")
    warnings.simplefilter("ignore", ResourceWarning)  # the run folder's lock is held until the process ends
    trace = Trace(options)
    trace.watch_torch()
    trace.watch_scaler()
    trace.watch_project()
    trace.make_happen()
    try:
        runpy.run_path(script, run_name="__main__")
    finally:
        Path(options["log"]).write_text(json.dumps(trace.log), encoding="utf-8")


if __name__ == "__main__":
    main()
