"""What a checkpoint lacks, how it is written, and how it is read."""

from collections.abc import Callable

from teeth.code import Code
from teeth.faults.registry import Facts, anywhere, fault

RESUME = "test_resume.py::test_a_stopped_run_ends_the_same"
COMPLETE = "test_resume.py::test_a_checkpoint_holds_all_that_the_next_step_depends_on"
REFUSED = "test_resume.py::test_a_checkpoint_that_lacks_weights_is_refused"
SAVE_FAILS = "test_resume.py::test_a_save_that_fails_leaves_the_last_checkpoint"

SETS_FROM_START = {"warmup-cosine", "warmup-linear", "warmup-stable-decay", "inverse-sqrt", "one-cycle"}
"""Schedules whose making sets the first rate, whatever rate was there; the others take the one that is there."""

LEFT_OUT: dict[str, tuple[Callable[[Facts], bool], str]] = {
    "optimizer": (anywhere, RESUME),
    "ema": (lambda facts: facts["ema"], RESUME),
    "train_loss": (anywhere, RESUME),
    "progress": (anywhere, RESUME),
    # A stop leaves no line too many: only a kill does.
    "metrics_file": (anywhere, "test_resume.py::test_a_kill_loses_only_what_came_after_the_checkpoint"),
    # A run of two epochs can do without these: no cut of the learning rate or of the scale, the same data again.
    "scheduler": (lambda facts: facts["scheduler_steps"] != "never", COMPLETE),
    "scaler": (lambda facts: facts["amp"] == "fp16", COMPLETE),
    "criterion": (lambda facts: bool(facts["loss_counts"]), COMPLETE),
}


def left_out(part: str) -> None:
    """The fault that this part is not saved."""
    possible, caught_by = LEFT_OUT[part]

    @fault(f"{part} not in the checkpoint", caught_by, possible=possible)
    def _(code: Code, facts: Facts) -> None:
        code.drop(f'"{part}": …', inside="state = {…")


for part in LEFT_OUT:
    left_out(part)


@fault("model not restored", RESUME, "checkpoint.py")
def _(code: Code, facts: Facts) -> None:
    # Not left out: without it nothing can be saved.
    code.add('if name == "model":\n    continue\n', before="saved = checkpoint[name]")


GENERATORS = {
    "Python's": ('"python": …', "random.setstate(…)"),
    "NumPy's": ('"numpy": …', "np.random.set_state(…)"),
    "torch's": ('"torch": …', "torch.set_rng_state(…)"),
}


def generator_left_out(whose: str) -> None:
    """The fault that this random generator is not saved."""
    saved, restored = GENERATORS[whose]

    def draws(facts: Facts) -> bool:
        return whose != "torch's" or not facts["closure"]  # L-BFGS seeds it before each pass, so that all drop the same

    @fault(f"{whose} generator not in the checkpoint", RESUME, "checkpoint.py", possible=draws)
    def _(code: Code, facts: Facts) -> None:
        code.drop(saved, inside="def _random_states() …")
        code.remove(restored)


for whose in GENERATORS:
    generator_left_out(whose)


@fault(
    "the device's generator not in the checkpoint",
    "test_resume.py::test_the_random_generator_of_the_device_goes_on_too",
    "checkpoint.py",
    possible=lambda facts: facts["device"] != "cpu",
)
def _(code: Code, facts: Facts) -> None:
    code.rewrite("states[accelerator.type] = …", "pass")


@fault("position in the epoch lost on resume", RESUME)
def _(code: Code, facts: Facts) -> None:
    code.replace(
        "train_loader.sampler.start_at(progress.epoch, progress.batch)",
        "train_loader.sampler.start_at(progress.epoch, 0)",
    )


@fault(
    "scheduler made after the optimizer was loaded",
    RESUME,
    possible=lambda facts: facts["scheduler"] in SETS_FROM_START,
)
def _(code: Code, facts: Facts) -> None:
    steps = ", steps_per_epoch" if facts["scheduler_steps"] == "step" else ""
    code.add(
        f'state["scheduler"] = scheduler = make_scheduler(optimizer, config{steps})\n', after="restore(run.saved, …)"
    )
    code.add('scheduler.load_state_dict(run.saved["scheduler"])', after='state["scheduler"] = …')


@fault("checkpoint written in place", SAVE_FAILS, "checkpoint.py")
def _(code: Code, facts: Facts) -> None:
    code.replace("unfinished", "path")
    code.remove("path = path.with_suffix(…)")
    code.remove("path.replace(path)")
    code.remove("path.unlink(missing_ok=True)")


@fault("no fsync before the rename", SAVE_FAILS, "checkpoint.py")
def _(code: Code, facts: Facts) -> None:
    code.remove("os.fsync(file.fileno())")


@fault("weights_only off", "test_resume.py::test_reading_a_checkpoint_runs_no_code", "checkpoint.py")
def _(code: Code, facts: Facts) -> None:
    code.replace("torch.load(…)", 'torch.load(path, map_location="cpu", weights_only=False)')


@fault("map_location missing", "test_resume.py::test_a_checkpoint_from_a_gpu_is_read_on_the_cpu", "checkpoint.py")
def _(code: Code, facts: Facts) -> None:
    code.drop('map_location="cpu"')


@fault("strict=False", REFUSED, "checkpoint.py")
def _(code: Code, facts: Facts) -> None:
    code.replace(
        'model.load_state_dict(checkpoint["model"])', 'model.load_state_dict(checkpoint["model"], strict=False)'
    )


@fault("strict=False for the average", REFUSED, "ema.py", possible=lambda facts: facts["ema"])
def _(code: Code, facts: Facts) -> None:
    code.replace(
        'self.model.load_state_dict(state["model"])', 'self.model.load_state_dict(state["model"], strict=False)'
    )
