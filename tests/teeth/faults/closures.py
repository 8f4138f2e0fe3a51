"""The function that L-BFGS asks for the loss, as often as it likes."""

from teeth.code import Code
from teeth.faults.registry import Facts, fault
from teeth.faults.steps import BACKWARD, ORDER, step

CLOSURE = "def loss_and_gradients(…"


def has_closure(facts: Facts) -> bool:
    """Whether the optimizer asks for the loss itself."""
    return facts["closure"]


def has_closure_and_counts_steps(facts: Facts) -> bool:
    """The same, with a schedule that counts steps."""
    return has_closure(facts) and facts["scheduler_steps"] == "step"


@fault("zero_grad outside of the closure", ORDER, possible=has_closure)
def _(code: Code, facts: Facts) -> None:
    code.move("optimizer.zero_grad()", before=step(facts))


@fault("closure without backward", ORDER, possible=has_closure)
def _(code: Code, facts: Facts) -> None:
    code.remove(BACKWARD)


@fault(
    "closure that returns the sum of the losses",
    "test_step.py::test_the_gradient_is_that_of_the_loss",
    possible=has_closure,
)
def _(code: Code, facts: Facts) -> None:
    code.rewrite("return loss", "return loss_sum", inside=CLOSURE)


# Not silent where the rate comes down to 0, since the line search divides by it.
@fault("scheduler in the closure", ORDER, possible=has_closure_and_counts_steps, silent=False)
def _(code: Code, facts: Facts) -> None:
    code.move("scheduler.step()", after=BACKWARD)


@fault(
    "dropout that differs from one call of the closure to the next",
    "test_step.py::test_the_losses_of_one_step_can_be_compared",
    possible=has_closure,
)
def _(code: Code, facts: Facts) -> None:
    code.remove("torch.manual_seed(…)", inside=CLOSURE)


@fault(
    "curvature kept from one batch to the next",
    "test_step.py::test_no_step_takes_the_curvature_of_another_batch",
    possible=has_closure,
)
def _(code: Code, facts: Facts) -> None:
    code.remove("optimizer.state.clear()")


@fault(
    "loss of a step taken from its last evaluation",
    "test_training.py::test_losses_are_sums_divided_once",
    possible=has_closure,
)
def _(code: Code, facts: Facts) -> None:
    code.replace("passes[0]", "passes[-1]")
