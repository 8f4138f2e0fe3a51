"""The order of a step."""

from teeth.code import Code
from teeth.faults.registry import Facts, fault

ORDER = "test_step.py::test_the_order_of_a_step"

BACKWARD = "….backward()"
CLIP = "…nn.utils.clip_grad_…"
EPOCH = "for … in bar(…)"
BATCHES_OF_STEP = "for … in batches"


def step(facts: Facts) -> str:
    """The statement that moves the weights."""
    if facts["closure"]:
        return "optimizer.step(partial(…))"
    return "scaler.step(optimizer)" if facts["amp"] == "fp16" else "optimizer.step()"


def before_backward(facts: Facts) -> str:
    """The statement ahead of which a step has no gradients yet."""
    return "loss_sums = []" if facts["gradient_accumulation"] else BACKWARD


def clips(facts: Facts) -> bool:
    """Whether gradients are clipped."""
    return facts["gradient_clipping"] != "off"


def clips_the_norm(facts: Facts) -> bool:
    """Whether all gradients are clipped together."""
    return facts["gradient_clipping"] == "norm"


def clips_in_a_split_step(facts: Facts) -> bool:
    """Whether gradients of several batches are clipped together."""
    return clips(facts) and facts["gradient_accumulation"]


def one_forward_pass(facts: Facts) -> bool:
    """Whether a step is one forward and one backward pass, written out in the loop."""
    return not facts["closure"]


def one_forward_pass_without_a_scaler(facts: Facts) -> bool:
    """The same, without a scaler, which raises an error if it finds no gradient."""
    return one_forward_pass(facts) and facts["amp"] != "fp16"


@fault("zero_grad missing", ORDER)
def _(code: Code, facts: Facts) -> None:
    code.remove("optimizer.zero_grad()")


@fault("zero_grad between backward and step", ORDER, possible=one_forward_pass)
def _(code: Code, facts: Facts) -> None:
    code.move("optimizer.zero_grad()", before=step(facts))


@fault("zero_grad only once an epoch", ORDER)
def _(code: Code, facts: Facts) -> None:
    code.move("optimizer.zero_grad()", before=EPOCH)


@fault("step before backward", ORDER, possible=one_forward_pass_without_a_scaler)
def _(code: Code, facts: Facts) -> None:
    code.move(step(facts), before=before_backward(facts))


@fault("clip missing", ORDER, possible=clips)
def _(code: Code, facts: Facts) -> None:
    if clips_the_norm(facts):
        norm = "nn.utils.get_total_norm([p.grad for p in parameters if p.grad is not None])"
        code.replace("nn.utils.clip_grad_norm_(…)", norm)
    else:
        code.remove(CLIP)


# Clipping by value raises an error where there is no gradient yet.
@fault("clip before backward", ORDER, possible=clips_the_norm)
def _(code: Code, facts: Facts) -> None:
    code.move(CLIP, before=before_backward(facts))


@fault("clip after the step", ORDER, possible=clips)
def _(code: Code, facts: Facts) -> None:
    code.move(CLIP, after=step(facts))


@fault("clip once a batch instead of once a step", ORDER, possible=clips_in_a_split_step)
def _(code: Code, facts: Facts) -> None:
    code.move(CLIP, into=BATCHES_OF_STEP)


@fault(
    "gradient that the optimizer never zeroes in the clip norm",
    "test_step.py::test_gradients_are_clipped_to_what_was_set",
    possible=clips_the_norm,
)
def _(code: Code, facts: Facts) -> None:
    # A weight of the loss that was to be learned, and that the optimizer was not given.
    code.add(
        "loss_weight = nn.Parameter(torch.tensor(1.0, device=device))", before="parameters = list(model.parameters())"
    )
    code.replace("list(model.parameters())", "[*model.parameters(), loss_weight]")
    code.add("loss_sum = loss_weight * loss_sum", after="loss_sum = criterion(…)")


@fault(
    "logged gradient norm taken after clipping",
    "test_step.py::test_gradients_are_clipped_to_what_was_set",
    possible=clips_the_norm,
)
def _(code: Code, facts: Facts) -> None:
    norm = "grad_norm = nn.utils.get_total_norm([p.grad for p in parameters if p.grad is not None])"
    code.rewrite(CLIP, "nn.utils.clip_grad_norm_(parameters, config.max_grad_norm)", norm)


def makes_no_state(facts: Facts) -> bool:
    """Whether the optimizer is made without state; with it, a parameter that is left out ends in an error."""
    return not (facts["optimizer"] == "sgd" and facts["amp"] == "fp16")


@fault(
    "optimizer without some of the parameters",
    "test_step.py::test_every_parameter_is_trained_once",
    possible=makes_no_state,
)
def _(code: Code, facts: Facts) -> None:
    if facts["closure"]:
        matrices = "[parameter for parameter in model.parameters() if parameter.ndim >= 2]"
        code.replace("[parameter for parameter in model.parameters() if parameter.requires_grad]", matrices)
    else:
        code.drop('{"params": […if p.ndim < 2], "weight_decay": 0.0}')


@fault("optimizer made before the model moves", "test_step.py::test_an_epoch_changes_every_parameter")
def _(code: Code, facts: Facts) -> None:
    code.move("optimizer = make_optimizer(model, config)", after="model = make_model(…)")
    code.add("model.to(device)", after="optimizer = make_optimizer(model, config)")


def has_a_head(facts: Facts) -> bool:
    """Whether the output layer has weights of its own."""
    return facts["target"] != "tokens"


@fault(
    "layer replaced after the optimizer was made",
    "test_step.py::test_an_epoch_changes_every_parameter",
    possible=has_a_head,
)
def _(code: Code, facts: Facts) -> None:
    # As one does with a trained model that is to predict something else.
    if facts["data_kind"] == "mask":
        head = "nn.Conv2d(model.head.in_channels, model.head.out_channels, kernel_size=1)"
    else:
        head = "nn.Linear(model.head.in_features, model.head.out_features)"
    code.add(f"model.head = {head}.to(device)", after="optimizer = make_optimizer(model, config)")
