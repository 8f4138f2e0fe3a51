"""The moving average of the weights."""

from teeth.code import Code
from teeth.faults.registry import Facts, fault
from teeth.faults.steps import BATCHES_OF_STEP, ORDER, step

UPDATE = "ema.update()"


def averages(facts: Facts) -> bool:
    """Whether there is a moving average."""
    return facts["ema"]


def averages_and_splits(facts: Facts) -> bool:
    """Whether a step, of which there is one average, is of several batches."""
    return averages(facts) and facts["gradient_accumulation"]


@fault("EMA update missing", ORDER, possible=averages)
def _(code: Code, facts: Facts) -> None:
    code.remove(UPDATE)


@fault("EMA update before the step", ORDER, possible=averages)
def _(code: Code, facts: Facts) -> None:
    code.move(UPDATE, before=step(facts))


@fault("EMA update once a batch instead of once a step", ORDER, possible=averages_and_splits)
def _(code: Code, facts: Facts) -> None:
    code.move(UPDATE, into=BATCHES_OF_STEP)


@fault("EMA update only once an epoch", ORDER, possible=averages)
def _(code: Code, facts: Facts) -> None:
    code.move(UPDATE, before="train_loss.start_epoch()")
