"""Which weights are kept as the best, and when a run has had enough."""

from teeth.code import Code
from teeth.faults.registry import Facts, fault

BEST = "test_training.py::test_the_best_checkpoint_is_the_best"
PATIENCE = "test_training.py::test_it_stops_when_nothing_improves_any_more"

BETTER = "if values[…"
SAVE_BEST = "save_checkpoint(run.best, …)"


def best_parts(facts: Facts) -> list[str]:
    """What best.pt holds, as names of arguments."""
    model = "ema.model" if facts["ema"] else "model"
    return [f"model={model}", *(["criterion=criterion"] if facts["loss_counts"] else []), "progress=progress"]


@fault("last weights kept, not the best", BEST)
def _(code: Code, facts: Facts) -> None:
    code.move(SAVE_BEST, after=BETTER)


@fault("best kept by reference", BEST)
def _(code: Code, facts: Facts) -> None:
    code.rewrite(SAVE_BEST, f"best_state.update({', '.join(best_parts(facts))})")
    code.add("best_state = {}", before="def validate() -> None")
    code.add("if best_state:\n    save_checkpoint(run.best, best_state, **about)\n", after="progress.batch = 0")


@fault("best compared the wrong way round", BEST)
def _(code: Code, facts: Facts) -> None:
    name, value = facts["monitored"], f'values["{facts["monitored"]}"]'
    worse, start = ("<", "math.inf") if facts["higher_is_better"] else (">", "-math.inf")
    code.replace(f"{value} … progress.best_{name}", f"{value} {worse} progress.best_{name}")
    code.rewrite(f"best_{name}: float = …", f"best_{name}: float = {start}")


@fault("best forgotten on resume", BEST)
def _(code: Code, facts: Facts) -> None:
    forget(code, f"best_{facts['monitored']}")


@fault("patience forgotten on resume", PATIENCE, possible=lambda facts: facts["early_stopping"])
def _(code: Code, facts: Facts) -> None:
    forget(code, "evaluations_since_best")


def forget(code: Code, name: str) -> None:
    """Leave one of the numbers out of the checkpoint."""
    code.replace("asdict(self)", f'{{name: value for name, value in asdict(self).items() if name != "{name}"}}')
