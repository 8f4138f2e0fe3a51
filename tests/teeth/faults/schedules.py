"""When the learning rate changes, and by what."""

from teeth.code import Code
from teeth.faults.registry import Facts, fault
from teeth.faults.steps import BATCHES_OF_STEP, EPOCH, ORDER, step

RATES = "test_training.py::test_the_learning_rate_follows_its_schedule"

SCHEDULE = "scheduler.step(…)"
LAST_OF_STEP = "train_loss.add(…)"


def has_a_schedule(facts: Facts) -> bool:
    """Whether there is a scheduler at all."""
    return facts["scheduler_steps"] != "never"


def is_planned(facts: Facts) -> bool:
    """Whether the scheduler is a timetable."""
    return facts["schedule_is_planned"]


def counts_steps(facts: Facts) -> bool:
    """Whether the schedule counts optimizer steps."""
    return facts["scheduler_steps"] == "step"


def counts_steps_of_many_batches(facts: Facts) -> bool:
    """Whether the schedule counts optimizer steps, and a step is of several batches."""
    return counts_steps(facts) and facts["gradient_accumulation"]


def looks_at_a_metric(facts: Facts) -> bool:
    """Whether the rate is cut when a metric no longer improves."""
    return facts["scheduler_steps"] == "metric"


def counts_no_steps(facts: Facts) -> bool:
    """Whether the schedule counts epochs or evaluations."""
    return has_a_schedule(facts) and not counts_steps(facts)


def is_planned_and_may_end_early(facts: Facts) -> bool:
    """Whether it is a timetable whose rate may be 0 unnoticed: the line search of L-BFGS divides by it."""
    return is_planned(facts) and not facts["closure"]


def may_go_beyond_its_end(facts: Facts) -> bool:
    """Whether more steps than planned go by unnoticed: the one-cycle schedule raises an error."""
    return has_a_schedule(facts) and facts["scheduler"] != "one-cycle" and not facts["closure"]


@fault("scheduler missing", ORDER, possible=has_a_schedule)
def _(code: Code, facts: Facts) -> None:
    code.remove(SCHEDULE)


@fault("scheduler stepped twice", ORDER, possible=may_go_beyond_its_end)
def _(code: Code, facts: Facts) -> None:
    again = f'scheduler.step(values["{facts["monitored"]}"])' if looks_at_a_metric(facts) else "scheduler.step()"
    code.add(again, after=SCHEDULE)


@fault("scheduler that counts epochs in the batch loop", ORDER, possible=counts_no_steps)
def _(code: Code, facts: Facts) -> None:
    if looks_at_a_metric(facts):
        code.remove(SCHEDULE)
        code.add("scheduler.step(loss_sum.detach())", before=LAST_OF_STEP)
    else:
        code.move(SCHEDULE, before=LAST_OF_STEP)


@fault("scheduler that counts steps in the epoch loop", ORDER, possible=counts_steps)
def _(code: Code, facts: Facts) -> None:
    code.move(SCHEDULE, before="train_loss.start_epoch()")


@fault("scheduler that counts steps stepped once a batch", ORDER, possible=counts_steps_of_many_batches)
def _(code: Code, facts: Facts) -> None:
    code.move(SCHEDULE, into=BATCHES_OF_STEP)


@fault("scheduler before the step", ORDER, possible=is_planned_and_may_end_early)
def _(code: Code, facts: Facts) -> None:
    code.move(SCHEDULE, before=step(facts) if counts_steps(facts) else EPOCH)


@fault("metric handed to a scheduler that takes it for an epoch", RATES, possible=is_planned)
def _(code: Code, facts: Facts) -> None:
    code.remove(SCHEDULE)
    code.add(f'scheduler.step(values["{facts["monitored"]}"])', after="values |= …")


@fault("plateau scheduler before the evaluation", ORDER, possible=looks_at_a_metric)
def _(code: Code, facts: Facts) -> None:
    code.remove(SCHEDULE)
    code.add(f"scheduler.step(progress.best_{facts['monitored']})", before="metrics = evaluate(…)")


@fault("plateau scheduler stepped without its metric", ORDER, possible=looks_at_a_metric, silent=False)
def _(code: Code, facts: Facts) -> None:
    code.rewrite(SCHEDULE, "scheduler.step()")


@fault("plateau scheduler given the training loss", RATES, possible=looks_at_a_metric)
def _(code: Code, facts: Facts) -> None:
    code.rewrite(SCHEDULE, 'scheduler.step(values["train_loss"])')


@fault("plateau scheduler given another metric than the monitored one", RATES, possible=looks_at_a_metric)
def _(code: Code, facts: Facts) -> None:
    metric = facts["catalogue"]["targets"][facts["target"]]["metric"]
    other = "loss" if facts["monitor"] == "metric" else metric
    code.rewrite(SCHEDULE, f'scheduler.step(values["val_{other}"])')


@fault("plateau scheduler with the wrong mode", RATES, file="schedule.py", possible=looks_at_a_metric)
def _(code: Code, facts: Facts) -> None:
    right, wrong = ("max", "min") if facts["higher_is_better"] else ("min", "max")
    code.replace(f'"{right}"', f'"{wrong}"', inside="def make_scheduler(…")
