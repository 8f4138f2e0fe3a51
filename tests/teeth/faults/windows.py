"""What a step's loss is divided by, and steps of several batches."""

from teeth.code import Code
from teeth.faults.registry import Facts, fault
from teeth.faults.steps import ORDER

DIVIDED = "test_training.py::test_losses_are_sums_divided_once"


def splits(facts: Facts) -> bool:
    """Whether a step is of several batches."""
    return facts["gradient_accumulation"]


def counts_samples(facts: Facts) -> bool:
    """Whether a loss is divided by the number of samples, which --batch-size is."""
    return facts["counted"] == facts["samples"]


def divisor(facts: Facts) -> str:
    """What the loss of a step is divided by."""
    number = f"n_{facts['counted']}" if facts["gradient_accumulation"] else facts["count"]
    return f"max({number}, 1)" if facts["ignores"] else number


def of_a_batch(facts: Facts) -> str:
    """How many a batch's loss is a sum over."""
    return f"({facts['targets']} != IGNORE).sum()" if facts["ignores"] else facts["count"]


@fault("loss not divided", DIVIDED)
def _(code: Code, facts: Facts) -> None:
    code.replace(f"loss_sum / {divisor(facts)}", "loss_sum")


@fault("loss of the last, smaller batch divided by the full size", DIVIDED, possible=counts_samples)
def _(code: Code, facts: Facts) -> None:
    code.replace(f"loss_sum / {divisor(facts)}", "loss_sum / config.batch_size")


@fault("loss divided per batch and by the number of batches", DIVIDED, possible=splits)
def _(code: Code, facts: Facts) -> None:
    code.replace(f"loss_sum / {divisor(facts)}", f"loss_sum / {of_a_batch(facts)} / len(batches)")


@fault("loss of the last, shorter step divided by the full number of batches", DIVIDED, possible=splits)
def _(code: Code, facts: Facts) -> None:
    mean = f"loss_sum / {divisor(facts)} * len(batches) / config.accumulate"
    code.replace(f"loss_sum / {divisor(facts)}", mean)


@fault("batches of the last, shorter step left out", ORDER, possible=splits)
def _(code: Code, facts: Facts) -> None:
    code.replace("of_step := list(…)", "len(of_step := list(itertools.islice(batches, size))) == size")
