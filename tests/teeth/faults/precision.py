"""Mixed precision and the scale of the loss."""

from teeth.code import Code
from teeth.faults.registry import Facts, fault
from teeth.faults.steps import BACKWARD, CLIP, ORDER, clips

OVERFLOW = "test_step.py::test_a_step_that_overflows_is_left_out_and_the_scale_comes_down"
AUTOCAST = "with torch.autocast(…)"


def is_mixed(facts: Facts) -> bool:
    """Whether the forward pass is in a smaller type."""
    return facts["amp"] != "off"


def scales(facts: Facts) -> bool:
    """Whether the loss is scaled."""
    return facts["amp"] == "fp16"


def scales_and_clips(facts: Facts) -> bool:
    """Whether what is clipped was scaled."""
    return scales(facts) and clips(facts)


@fault("autocast around backward", ORDER, possible=is_mixed)
def _(code: Code, facts: Facts) -> None:
    code.move(BACKWARD, into=AUTOCAST)


@fault("autocast missing", ORDER, possible=is_mixed)
def _(code: Code, facts: Facts) -> None:
    code.unwrap(AUTOCAST)


@fault("clip before unscale", ORDER, possible=scales_and_clips)
def _(code: Code, facts: Facts) -> None:
    code.move(CLIP, before="scaler.unscale_(optimizer)")


@fault("unscale missing", ORDER, possible=scales)
def _(code: Code, facts: Facts) -> None:
    code.remove("scaler.unscale_(optimizer)")


# Not silent: the next unscale_() raises an error.
@fault("scaler update missing", ORDER, possible=scales, silent=False)
def _(code: Code, facts: Facts) -> None:
    code.remove("scaler.update()")


# Not silent: such a scaler has no scale to be saved.
@fault("scaler switched off", OVERFLOW, possible=scales, silent=False)
def _(code: Code, facts: Facts) -> None:
    code.replace("torch.amp.GradScaler(…)", "torch.amp.GradScaler(device.type, enabled=False)")


@fault("step past the scaler", ORDER, possible=scales, silent=False)  # with SGD, the loss is soon infinite
def _(code: Code, facts: Facts) -> None:
    code.rewrite("scaler.step(optimizer)", "optimizer.step()")
