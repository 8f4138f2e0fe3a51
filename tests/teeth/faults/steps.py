"""The order of a step."""

from teeth.code import Code
from teeth.faults.registry import Facts, fault

ORDER = "test_step.py::test_the_order_of_a_step"

BACKWARD = "….backward()"


def clips(facts: Facts) -> bool:
    """Whether gradients are clipped."""
    return facts["gradient_clipping"] != "off"


def one_forward_pass(facts: Facts) -> bool:
    """Whether a step is one forward and one backward pass, written out in the loop."""
    return not facts["closure"]


@fault("zero_grad missing", ORDER)
def _(code: Code, facts: Facts) -> None:
    code.remove("optimizer.zero_grad()")


@fault("zero_grad between backward and step", ORDER, possible=one_forward_pass)
def _(code: Code, facts: Facts) -> None:
    code.move("optimizer.zero_grad()", before="scaler.step(…)" if facts["amp"] == "fp16" else "optimizer.step()")


@fault("clip missing", ORDER, possible=clips)
def _(code: Code, facts: Facts) -> None:
    clip = "nn.utils.clip_grad_…"
    if facts["gradient_clipping"] == "norm":
        code.replace(clip, "nn.utils.get_total_norm([p.grad for p in parameters if p.grad is not None])")
    else:
        code.remove(clip)
