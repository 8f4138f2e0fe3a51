"""What differs between training and evaluation, and what a step leaves behind or waits for."""

from teeth.code import Code
from teeth.faults.registry import Facts, fault

MODES = "test_step.py::test_training_and_evaluation_use_their_own_mode"
GRAPHS = "test_step.py::test_no_step_keeps_the_graph_of_an_earlier_one"
WAITS = "test_step.py::test_a_step_never_waits_for_the_device"

WHILE = "while not finished(…)…"
VALIDATE = "def validate() -> None"


def evaluates_the_model(facts: Facts) -> bool:
    """Whether the model that is trained is also evaluated, and not a copy, which stays in evaluation mode."""
    return not facts["ema"]


def losses_by_pass(facts: Facts) -> bool:
    """Whether a step makes several losses, which the loop collects."""
    return facts["gradient_accumulation"] or facts["closure"]


def one_loss(facts: Facts) -> bool:
    """Whether a step hands over the one loss that it makes."""
    return not losses_by_pass(facts)


@fault("eval() missing", "test_training.py::test_evaluating_a_checkpoint_gives_what_the_run_logged", "evaluate.py")
def _(code: Code, facts: Facts) -> None:
    code.remove("model.eval()")


@fault("train() missing after evaluation", MODES, possible=evaluates_the_model)
def _(code: Code, facts: Facts) -> None:
    code.remove("model.train()", inside=VALIDATE)


@fault("train() only before the first epoch", MODES, possible=evaluates_the_model)
def _(code: Code, facts: Facts) -> None:
    code.remove("model.train()", inside=VALIDATE)
    code.move("model.train()", before=WHILE, out_of=WHILE)


@fault("no-grad missing in evaluation", MODES, "evaluate.py")
def _(code: Code, facts: Facts) -> None:
    code.drop("@torch.inference_mode()…")


@fault("loss kept with its graph", GRAPHS, "metrics.py", possible=one_loss)
def _(code: Code, facts: Facts) -> None:
    code.replace("loss_sum.detach()", "loss_sum")


@fault("loss kept with its graph", GRAPHS, possible=losses_by_pass)
def _(code: Code, facts: Facts) -> None:
    code.replace("loss_sum.detach()", "loss_sum")


@fault("item() in every step", WAITS)
def _(code: Code, facts: Facts) -> None:
    code.add("last_loss = loss_sum.item()", after="progress.step += 1")


@fault("float() in every step", WAITS)
def _(code: Code, facts: Facts) -> None:
    code.add("last_loss = float(loss_sum)", after="progress.step += 1")


@fault("tensor printed in every step", WAITS)
def _(code: Code, facts: Facts) -> None:
    code.add('tqdm.write(f"loss {loss_sum:.4f}")', after="progress.step += 1")


@fault("tensor in an if in every step", WAITS)
def _(code: Code, facts: Facts) -> None:
    code.add("if loss_sum.isnan():\n    break\n", after="progress.step += 1")


@fault(
    "right answers counted in every step",
    WAITS,
    possible=lambda facts: facts["target"] in ("class", "tags", "tokens") and not facts["closure"],
)
def _(code: Code, facts: Facts) -> None:
    right = f"({facts['outputs']}.argmax(-1) == {facts['targets']}).sum().item()"
    code.add(f"n_right = {right}", after="progress.step += 1")
