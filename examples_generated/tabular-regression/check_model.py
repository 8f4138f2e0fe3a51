"""Does the model take the batch, give what the loss takes, and get a gradient for each parameter? For check.py."""

import re
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from check_setup import Finding, Project, listed
from train import make_optimizer

ACTIVATIONS = {"Relu": "0 and up", "Sigmoid": "0 to 1", "Softmax": "0 to 1", "Softplus": "0 and up", "Tanh": "-1 to 1"}
PASSED_ON = {"Alias", "Clone", "Permute", "Select", "Slice", "Squeeze", "ToCopy", "Transpose", "Unsqueeze", "View"}
"""Steps of a forward pass that change no number."""

GRADIENTS = {
    "finite": ("ok", "each gets a finite gradient"),
    "frozen": ("warning", "frozen, so training leaves them as they are; set requires_grad_(True) if not meant"),
    "unused": ("warning", "no part of the forward pass, so they never change; use them in model.py, or take them out"),
    "untracked": ("wrong", "used under no_grad() alone, so they never change; set requires_grad_(False) if meant"),
    "cut off": ("wrong", "no gradient reaches them, so they never change; look for detach(), .data, item() or argmax"),
    "not finite": ("wrong", "NaN or infinity for a gradient, which ruins them; look for a sqrt, log or division of 0"),
}


class Uses(TorchFunctionMode):
    """Notes which parameters a forward pass takes up, and whether torch keeps track of that for the gradient."""

    def __init__(self) -> None:
        super().__init__()
        self.tracked: dict[nn.Parameter, bool] = {}

    def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if getattr(function, "__name__", "") != "__get__":  # to ask for a shape is no use
            for parameter in parameters_in([args, kwargs or {}]):
                self.tracked[parameter] = self.tracked.get(parameter, False) or torch.is_grad_enabled()
        return function(*args, **(kwargs or {}))


def parameters_in(values: Any) -> Iterator[nn.Parameter]:
    if isinstance(values, nn.Parameter):
        yield values
    elif isinstance(values, dict):
        yield from parameters_in(list(values.values()))
    elif isinstance(values, list | tuple):
        for value in values:
            yield from parameters_in(value)


def parameters(project: Project) -> Iterator[Finding]:
    """Are all layers and tensors of the model known to it, and can they be moved to the device?"""
    model, device = project.model, project.device
    empty = [name for name, tensor in (*model.named_parameters(), *model.named_buffers()) if tensor.is_meta]
    if empty:
        seen = f"{listed(empty)}: on the device meta, where tensors have no numbers, so they cannot be moved"
        yield "wrong", f"{seen}; leave that device out of model.py"
        return
    model.to(device)
    own = {id(part) for part in (*model.modules(), *model.parameters(), *model.buffers())}
    strangers = [(path, value) for path, value in held(model) if id(value) not in own]
    layers = [path for path, value in strangers if isinstance(value, nn.Module)]
    tensors = [path for path, value in strangers if isinstance(value, Tensor) and value.requires_grad]
    if layers:
        seen = f"{listed(layers)}: layers that the model does not know, so they are never trained, moved or saved"
        yield "wrong", f"{seen}; give it an nn.ModuleList or nn.ModuleDict in place of a plain one"
    if tensors:
        seen = f"{listed(tensors)}: tensors that the model does not know, so they are never trained, moved or saved"
        yield "wrong", f"{seen}; make each an nn.Parameter, several an nn.ParameterList"
    for path, value in strangers:
        if isinstance(value, Tensor) and path not in tensors and value.device.type != device.type:
            seen = f"{path} is on {value.device}, and the batches come on {device}"
            yield "wrong", f"{seen}: torch computes on one at a time; make it move with the model by register_buffer()"
    n_parameters = sum(parameter.numel() for parameter in model.parameters())
    trained = sum(parameter.numel() for parameter in model.parameters() if parameter.requires_grad)
    if not n_parameters and not layers:
        yield "wrong", "the model has 0 parameters: there is nothing to train; give it layers, as attributes"
    elif n_parameters and not trained:
        yield "wrong", f"all of {n_parameters:,} parameters are frozen: nothing would be trained; see requires_grad"


def held(model: nn.Module) -> Iterator[tuple[str, Any]]:
    """What the attributes of all modules hold, in lists, tuples and dictionaries too, by its path."""
    for module_name, module in model.named_modules():
        for name, value in vars(module).items():
            if not name.startswith("_"):
                yield from unpacked(".".join(filter(None, ["model", module_name, name])), value)


def unpacked(path: str, value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, list | tuple | dict):
        for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
            yield from unpacked(f"{path}[{key!r}]", inner)
    else:
        yield path, value


def forward_pass(project: Project) -> Iterator[Finding]:
    """Does the model take the batch, and give what the loss takes?"""
    project.model.train()  # as the first step sees it: dropout on
    try:
        with Uses() as uses:
            predictions = project.outputs_of(project.model, project.features)
    except torch.OutOfMemoryError:
        raise
    except (RuntimeError, ValueError, TypeError, LookupError, AttributeError) as error:
        yield "wrong", f"the model does not take the batch: {raised_at(error)}; correct model.py or data.py"
        return
    project.predictions, project.uses = predictions, uses.tracked
    expected = tuple(project.targets.shape)
    shape = tuple(predictions.shape)
    n_parameters = sum(parameter.numel() for parameter in project.model.parameters())
    if predictions.device.type != project.device.type:
        seen = f"predictions on {predictions.device}, targets on {project.device}"
        yield "wrong", f"{seen}: the loss takes both on one device; correct model.py"
    elif shape != expected:
        seen = f"predictions {shape} for targets {expected}"
        yield "wrong", f"{seen}: even (N, 1) would be compared with targets as N × N pairs; make it (N,) in model.py"
    elif not predictions.isfinite().all():
        seen = "NaN or infinity in the predictions, none in the batch"
        yield "wrong", f"{seen}: the loss has it from there; look for where it begins in model.py"
    else:
        yield "ok", f"predictions {shape} from {n_parameters:,} parameters"


def raised_at(error: Exception) -> str:
    """The line of this project in which an error of torch came up, and what it says."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if is_ours(Path(frame.filename))]
    where = f"{Path(frames[-1].filename).name}, line {frames[-1].lineno}, {frames[-1].line}" if frames else "model.py"
    return f"{where}: {' '.join(str(error).split())}"


def is_ours(file: Path) -> bool:
    return file.parent == Path(__file__).parent and not file.name.startswith("check")


def last_layer(project: Project) -> Iterator[Finding]:
    """An activation at the end would stand between the model and the loss."""
    step = project.predictions.grad_fn
    while step is not None and operation(step) in PASSED_ON:
        step = step.next_functions[0][0]
    if step is not None and operation(step) in ACTIVATIONS:
        seen = f"the model ends in {operation(step).lower()}, so it only gives {ACTIVATIONS[operation(step)]}"
        sought = "targets are standard deviations, of any sign and size"
        yield "wrong", f"{seen}, and {sought}; leave that layer out of model.py"


def operation(step: Any) -> str:
    """The name of a step of the forward pass, such as Softmax."""
    return re.sub(r"Backward\d*$", "", step.name())


def first_loss(project: Project) -> Iterator[Finding]:
    """Before the first step a model knows nothing, and the loss of knowing nothing is known."""
    predictions = project.predictions.detach().float()
    loss = project.loss_of(predictions, project.targets)
    expected = project.loss_of(torch.zeros_like(predictions), project.targets)
    seen = f"loss {loss:.4f} before the first step; a model that always says the mean has {expected:.4f}"
    whole, by_halves = sums(project, predictions)
    if not torch.isclose(whole, by_halves, rtol=1e-3):
        seen = f"loss {whole:.4f} of the batch, {by_halves:.4f} by its halves"
        yield "wrong", f"{seen}: train.py divides sums; give the loss reduction sum"
    elif loss > 5 * expected:
        yield "warning", f"{seen}: too large predictions, which take long to unlearn; scale the input or the last layer"
    elif loss < 0.5 * expected and not project.config.init_from:
        yield "warning", f"{seen}: it seems to know the answer, so the scores mean little; look for it in the input"
    else:
        yield "ok", seen


def sums(project: Project, predictions: Tensor) -> tuple[Tensor, Tensor]:
    """What the loss gives for the batch, and for its halves together."""
    targets = project.targets.to(predictions.device)
    halves = zip(predictions.chunk(2), targets.chunk(2), strict=True)
    return project.criterion(predictions, targets), sum(project.criterion(*half) for half in halves)


def gradients(project: Project) -> Iterator[Finding]:
    """Does each parameter get one, and if not, why?"""
    loss = project.loss_of(project.predictions, project.targets)
    if loss.requires_grad:
        strangers = leaves(loss) - {id(parameter) for parameter in project.model.parameters()}
        if strangers:
            seen = f"{len(strangers)} tensors that the model does not hold get a gradient, but are not trained or saved"
            yield "wrong", f"{seen}; make them, or the layers that hold them, attributes of the model in model.py"
        loss.backward()
    names: dict[str, list[str]] = {}
    for name, parameter in project.model.named_parameters():
        names.setdefault(gradient(parameter, project.uses), []).append(name)
    for kind, of_kind in names.items():
        verdict, line = GRADIENTS[kind]
        who = f"{len(of_kind)} parameter tensors" if kind == "finite" else listed(of_kind)
        yield verdict, f"{who}: {line}"


def gradient(parameter: nn.Parameter, uses: dict[nn.Parameter, bool]) -> str:
    """What has become of a parameter's gradient, of the kinds above."""
    if not parameter.requires_grad:
        return "frozen"
    if parameter.grad is not None:
        return "finite" if parameter.grad.isfinite().all() else "not finite"
    if parameter not in uses:
        return "unused"
    return "cut off" if uses[parameter] else "untracked"


def leaves(loss: Tensor) -> set[int]:
    """The ids of all tensors to which a gradient goes, whoever holds them."""
    found, seen, steps = set(), set(), [loss.grad_fn]
    while steps:
        step = steps.pop()
        if hasattr(step, "variable"):
            found.add(id(step.variable))
        following = [inner for inner, _ in step.next_functions if inner is not None and inner not in seen]
        seen.update(following)
        steps += following
    return found


def optimizer(project: Project) -> Iterator[Finding]:
    """It moves the model's parameters, all of them and no others."""
    groups = make_optimizer(project.model, project.config).param_groups
    held = {id(parameter) for group in groups for parameter in group["params"]}
    trained = {id(parameter): name for name, parameter in project.model.named_parameters() if parameter.requires_grad}
    left_out = [name for key, name in trained.items() if key not in held]
    if left_out:
        yield "wrong", f"{listed(left_out)}: not in the optimizer, so never changed; see make_optimizer() in train.py"
    elif strangers := held - trained.keys():
        seen = f"the optimizer holds {len(strangers)} tensors that are no trained parameters of the model"
        yield "wrong", f"{seen}: they are not saved with it; see make_optimizer() in train.py"
    else:
        yield "ok", f"the optimizer holds the model's {len(trained)} trained parameter tensors and no others"
    # Nothing looks at them after this, and they take up the device's memory: its copies need the room.
    del project.predictions, project.uses
    project.model.zero_grad()
    project.model.cpu()


LOOKS_AT_MODEL = (parameters, forward_pass, last_layer, first_loss, gradients, optimizer)
