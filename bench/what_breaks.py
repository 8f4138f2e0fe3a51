"""What docs/what-breaks.md shows and says. The figures in the texts are those of the runs: `{label[quantity]}`."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Run:
    """How one run differs from the others of its picture."""

    flags: tuple[str, ...] = ()
    fault: str = ""
    answers: Mapping[str, Any] = field(default_factory=dict)
    stopped_after: int = 0
    """It is stopped after so many steps, and goes on with --resume."""
    status: int = 0
    """The exit status that it must end with."""


@dataclass(frozen=True)
class Shown:
    """A picture with its text."""

    title: str
    panels: tuple[str, ...]
    text: str
    runs: Mapping[str, Run]
    answers: Mapping[str, Any] = field(default_factory=dict)
    flags: tuple[str, ...] = ()
    logarithmic: tuple[str, ...] = ()
    table: tuple[str, ...] = ()

    @property
    def slug(self) -> str:
        """The name of its files."""
        words = "".join(letter if letter.isalnum() else " " for letter in self.title.lower())
        return "-".join(words.split())


def fault(name: str, stopped_after: int = 0, **rest: Any) -> Shown:
    """A fault of tests/teeth, beside the loop without it."""
    runs = {"right": Run(stopped_after=stopped_after), "wrong": Run(fault=name, stopped_after=stopped_after)}
    return Shown(title=name, runs=runs, **rest)


EACH_STEP = ("--log-every", "1")
THREE = ("--epochs", "3", *EACH_STEP)

FP16 = {"task": "tabular-regression", "optimizer": "sgd", "scheduler": "step", "amp": "fp16"}
TEXTS = {"task": "text-classification"}
VALUES = {"task": "tabular-regression"}

LESSONS = [
    Shown(
        title="Three learning rates",
        flags=THREE,
        panels=("loss", "val_loss"),
        logarithmic=("loss", "val_loss"),
        runs={"0.003": Run(("--lr", "3e-3")), "0.00001": Run(("--lr", "1e-5")), "0.3": Run(("--lr", "0.3"))},
        table=("largest loss", "loss", "val_loss", "val_accuracy"),
        text="""All three start from the same initial weights. At 0.00001 the loss has hardly moved by the end: each
step is 300 times shorter than at 0.003. At 0.3 the first steps throw the weights far off, and the
rest of the run is spent on the way back. Look at the first steps of a run before you wait for its
last.""",
    ),
    Shown(
        title="With and without zero_grad",
        answers={"optimizer": "sgd", "gradient_clipping": "off"},
        flags=THREE,
        panels=("grad_norm", "loss"),
        logarithmic=("grad_norm",),
        runs={"with": Run(), "without": Run(fault="zero_grad missing")},
        table=("grad_norm", "loss", "val_accuracy"),
        text="""`backward()` adds to what is in `.grad`: without `zero_grad()` each step follows the sum of all
gradients since the beginning. The norm of the gradient says so: it grows, to {without[grad_norm]}
instead of {with[grad_norm]}. The loss alone looks like a rate that is too high.""",
    ),
    Shown(
        title="Learning rate 100",
        flags=THREE,
        panels=("loss", "grad_norm"),
        logarithmic=("loss", "grad_norm"),
        runs={"at 0.003": Run(("--lr", "3e-3")), "at 100": Run(("--lr", "100"), status=1)},
        table=("loss", "largest loss"),
        text="""The loss is {at_100[largest loss]} before it stops being a number at all; then the run stops, with exit
status 1, names the step and says that the rate is too high. That is within the first epoch, before
the first checkpoint: there is no best.pt and no last.pt. `python check.py --lr 100` says so before
the run.""",
    ),
    Shown(
        title="Clipping on and off",
        answers={"optimizer": "sgd"},
        flags=("--lr", "0.3", *THREE),
        panels=("loss", "grad_norm"),
        logarithmic=("grad_norm",),
        runs={"on": Run(), "off": Run(answers={"gradient_clipping": "off"})},
        table=("loss", "largest grad_norm", "val_loss", "val_accuracy"),
        text="""A rate that is too high for the first steps. The norm is that before clipping. Without clipping, large
gradients make steps too far, and each makes the next gradient larger: the norm is {off[grad_norm at
9]} at step 9, {off[grad_norm at 10]} at step 10 and {off[grad_norm at 11]} at step 11, where the
loss is {off[loss at 11]}, and it takes the rest of the run to come back from there. Clipping takes
such steps in the same direction, but as if the norm were 1.""",
    ),
    Shown(
        title="The schedule in the wrong loop",
        flags=THREE,
        panels=("lr", "val_loss"),
        runs={"each step": Run(), "each epoch": Run(fault="scheduler that counts steps in the epoch loop")},
        table=("lr", "val_loss", "val_accuracy"),
        text="""Planned in optimizer steps and stepped once an epoch: three epochs are three steps of the plan, and the
run ends within its warm-up, at the highest rate instead of near zero. In a run as short as this the
higher rate makes up for it in the loss, {each_epoch[val_loss]} instead of {each_step[val_loss]},
and not in the accuracy, {each_epoch[val_accuracy]} instead of {each_step[val_accuracy]}.""",
    ),
    Shown(
        title="Last against best",
        answers={**TEXTS, "scheduler": "constant"},
        flags=("--epochs", "12"),
        panels=("train_loss", "val_loss", "val_accuracy"),
        runs={"one run": Run()},
        table=("train_loss", "val_loss", "least val_loss"),
        text="""The training loss falls to the end. The validation loss was {one_run[least val_loss]} at its least
and is {one_run[val_loss]} at the end, and that is what somebody gets who keeps the last weights.
`best.pt` holds the former, `last.pt` the latter.""",
    ),
]

FAULTS_SHOWN = [
    fault(
        "zero_grad between backward and step",
        flags=THREE,
        panels=("loss", "grad_norm", "val_accuracy"),
        text="""The step sees gradients of zero, and nothing of the data: the weights only decay. The loss begins at
{wrong[loss at 1]} and stays near ln 10 = 2.30, that of a guess among ten classes: {wrong[loss]} at
the end. The logged norm, taken before, looks as it should.""",
    ),
    fault(
        "zero_grad only once an epoch",
        answers={"optimizer": "sgd", "gradient_clipping": "off"},
        flags=THREE,
        panels=("grad_norm", "loss"),
        logarithmic=("grad_norm",),
        text="""The norm grows through each epoch and falls at its end. The loss is {wrong[loss]} at the end, instead of
{right[loss]}.""",
    ),
    fault(
        "step before backward",
        flags=THREE,
        panels=("loss", "val_loss", "val_accuracy"),
        text="""Each step takes the gradients that zero_grad has just cleared: nothing but the decay of the weights
moves them. The accuracy is {wrong[val_accuracy]} at the end, that of a guess.""",
    ),
    fault(
        "loss not divided",
        answers={"optimizer": "sgd", "gradient_clipping": "off"},
        flags=THREE,
        panels=("grad_norm", "loss"),
        logarithmic=("grad_norm", "loss"),
        text="""The criterion gives a sum over the batch. Undivided, the gradient is as many times too long as the batch
has images, {wrong[grad_norm at 1]} instead of {right[grad_norm at 1]} at the first step, and so is
a step of SGD. The loss climbs to {wrong[largest loss]} and ends at {wrong[loss]}, near ln 10 =
2.30, that of a guess among ten classes: the run never learns.""",
    ),
    fault(
        "clip before unscale",
        answers=FP16,
        panels=("val_loss", "grad_norm"),
        logarithmic=("grad_norm",),
        text="""In float16 the gradients are scaled up, by 65,536 at first. Clipped before that is undone, what remains
of them is divided by the scale, and the model hardly moves: the validation loss is {wrong[val_loss
at 12]} after the first epoch and {wrong[val_loss]} after the last, instead of {right[val_loss]}.""",
    ),
    fault(
        "scheduler that counts epochs in the batch loop",
        answers={**VALUES, "scheduler": "step"},
        panels=("lr", "val_loss"),
        logarithmic=("lr",),
        text="""A schedule planned in epochs, stepped at each batch: at step 50, after four epochs, the rate is
{wrong[lr at 50]} instead of {right[lr at 50]}, and {wrong[lr at 200]} at step 200. What looks like
convergence, at a validation loss of {wrong[val_loss]} instead of {right[val_loss]}, is standstill.""",
    ),
    fault(
        "scheduler missing",
        flags=THREE,
        panels=("lr", "val_loss"),
        text="""Made, saved, restored, never stepped. The rate stays at the first step of the warm-up, {wrong[lr]}, and
the loss falls, slowly enough to look like a hard problem.""",
    ),
    fault(
        "scheduler stepped twice",
        flags=THREE,
        panels=("lr", "val_loss"),
        text="""Once where it belongs, and once more. The cosine is over in half of the run, and in the other half the
rate is {wrong[lr]}: nothing moves any more.""",
    ),
    fault(
        "plateau scheduler with the wrong mode",
        answers={"scheduler": "plateau", "monitor": "metric"},
        flags=("--epochs", "12"),
        panels=("lr", "val_accuracy"),
        logarithmic=("lr",),
        text="""It waits for the accuracy to fall. Every improvement counts as none, and the rate goes down while the
model gets better: to {wrong[lr at 200]} instead of {right[lr at 200]} at step 200. In this run both end near the same
accuracy, {wrong[val_accuracy]} and {right[val_accuracy]}: no harm is to be seen yet.""",
    ),
    fault(
        "metric handed to a scheduler that takes it for an epoch",
        answers={**VALUES, "scheduler": "cosine"},
        panels=("lr", "val_loss"),
        text="""`scheduler.step(value)` is right for a plateau. Other schedulers of torch take the value for an epoch,
with a warning that the argument is deprecated and without an error: the rate follows the metric and
not the plan, and is {wrong[lr at 200]} at step 200 instead of {right[lr at 200]}. In this run that
costs little: the validation loss is {wrong[val_loss]} instead of {right[val_loss]}.""",
    ),
    fault(
        "optimizer without some of the parameters",
        flags=THREE,
        panels=("loss", "val_loss", "val_accuracy"),
        text="""What the optimizer was not given stays as it was initialised, and the rest learns around it: a
validation loss of {wrong[val_loss]} instead of {right[val_loss]}, which nobody would take for a
fault.""",
    ),
    fault(
        "layer replaced after the optimizer was made",
        flags=THREE,
        panels=("loss", "val_loss", "val_accuracy"),
        text="""As one does with a trained model that is to predict something else. The optimizer goes on with the
weights of the old layer; the new one stays as it was initialised, and the layers before it learn to
suit it. The validation loss is {wrong[val_loss]} instead of {right[val_loss]}, the accuracy
{wrong[val_accuracy]} instead of {right[val_accuracy]}: not bad enough to be looked into.""",
    ),
    fault(
        "train() missing after evaluation",
        answers=TEXTS,
        flags=("--eval-every", "10"),
        panels=("train_loss", "val_loss"),
        text="""From the first evaluation to the end of the epoch the model trains without dropout. The validation loss
falls sooner, to {wrong[val_loss at 150]} instead of {right[val_loss at 150]} at step 150, and ends
higher, at {wrong[val_loss]} instead of {right[val_loss]}; the training loss is lower throughout,
{wrong[train_loss]} instead of {right[train_loss]} at the end.""",
    ),
    fault(
        "eval() missing",
        answers=TEXTS,
        panels=("train_loss", "val_loss", "val_accuracy"),
        text="""Dropout strikes during evaluation too: the score is not that of the model, {wrong[val_accuracy]} instead
of {right[val_accuracy]} at the end. And it draws from the generator that training draws from: from
the first evaluation on, the training is another as well.""",
    ),
    fault(
        "evaluation on the training split, by the loop",
        answers=TEXTS,
        panels=("train_loss", "val_loss", "val_accuracy"),
        text="""The curve of somebody who is about to be disappointed. It falls with the training loss, and never turns:
{wrong[val_loss]} at the end, where validation data say {right[val_loss]}. The training is the same.""",
    ),
    fault(
        "the validation loss as the mean of batch means",
        answers={"task": "tabular-classification"},
        flags=("--batch-size", "17"),
        panels=("train_loss", "val_loss"),
        logarithmic=("train_loss", "val_loss"),
        text="""36 validation rows, evaluated in batches of 34: the last two weigh as much as all the others. The
training is the same; the number by which the best weights are chosen is not, {wrong[val_loss]}
instead of {right[val_loss]} at the end.""",
    ),
    fault(
        "softmax or sigmoid at the end of the model",
        flags=THREE,
        panels=("loss", "val_loss", "val_accuracy"),
        text="""The loss takes the softmax of what has been through one. For ten classes it cannot fall below ln(1 +
9/e) = 1.46. The accuracy is {wrong[val_accuracy]} at the end instead of {right[val_accuracy]}, and
still rising: it looks like a model that needs more time.""",
    ),
    fault(
        "0.5 as threshold on logits in the metrics",
        answers={"task": "tabular-classification", "labels": "binary"},
        panels=("val_loss", "val_accuracy"),
        text="""A logit of 0.5 is a probability of 0.62. The losses are equal, and so is every weight; the accuracy
differs by the few that lie between, {wrong[val_accuracy at 15]} instead of {right[val_accuracy at
15]} after the first epoch.""",
    ),
    fault(
        "(N, 1) against (N), by the model",
        answers=VALUES,
        panels=("val_loss", "val_r2"),
        text="""A column of predictions against a row of targets makes a square of differences, each prediction against
every target. What makes it least is the mean of all targets for everyone. The sum over the square
has as many times too many terms as a batch has rows, so that the validation loss is
{wrong[val_loss]} instead of {right[val_loss]}, and R² {wrong[val_r2]}; torch warns, once for each
size of a batch, among the other lines.""",
    ),
    fault(
        "metrics in standardised units",
        answers=VALUES,
        panels=("val_loss", "val_mae"),
        text="""The model predicts the target in standard deviations. Reported like that, the error looks small; in
the target's own unit it is {right[val_mae]}.""",
    ),
    fault(
        "padding counted in the step's divisor",
        answers={"task": "token-classification"},
        flags=("--epochs", "2", *EACH_STEP),
        panels=("grad_norm", "loss", "val_f1"),
        text="""Only the first token of a word has a tag. Divided by all positions, gradient and reported loss are too
small, more so the more unequal the texts of a batch are. The loss looks far better, {wrong[loss]}
instead of {right[loss]} at the last step, and the model is a little worse: F1 is {wrong[val_f1]}
instead of {right[val_f1]}.""",
    ),
    fault(
        "augmentation of validation data, by the loop",
        flags=THREE,
        panels=("val_loss", "val_accuracy"),
        text="""The training is the same; the validation images are moved at random too, and are harder than those that
the model will meet: the loss is {wrong[val_loss]} instead of {right[val_loss]}.""",
    ),
    fault(
        "shuffle off",
        flags=THREE,
        panels=("loss", "val_loss", "val_accuracy"),
        text="""The files lie in folders, a class each. Unshuffled, a batch holds one class or two, and the model learns
to say what it has seen last: the accuracy is {wrong[val_accuracy]} at the end.""",
    ),
    fault(
        "the target is the token itself",
        answers={"task": "language-modeling"},
        flags=("--epochs", "1", "--log-every", "5"),
        panels=("loss",),
        text="""Inputs and targets without the shift. The model only has to copy, and does: nothing is wrong with the
curve except that it is too good, {wrong[loss]} instead of {right[loss]} at the end.""",
    ),
    fault(
        "attention sees the future",
        answers={"task": "language-modeling"},
        flags=("--epochs", "4"),
        panels=("val_loss",),
        text="""The causal mask is missing: what is to be predicted stands in the input. The validation loss is
{wrong[val_loss]} instead of {right[val_loss]}; no score shows that the model has nothing to look at
when it writes by itself.""",
    ),
    fault(
        "EMA update missing",
        answers={"ema": True},
        flags=THREE,
        panels=("val_loss", "val_accuracy"),
        text="""The average of the weights is evaluated and saved, and still holds the weights of the beginning: the
accuracy is {wrong[val_accuracy]} throughout.""",
    ),
    fault(
        "EMA update once a batch instead of once a step",
        answers={"ema": True, "gradient_accumulation": True},
        flags=THREE,
        panels=("val_loss", "val_accuracy"),
        text="""Of the four batches of a step, three find the weights unchanged. The validation loss hardly differs,
{wrong[val_loss]} instead of {right[val_loss]}: the average is kept short at the start of a run, and
grows with the number of updates. In a longer run it ends up over a quarter of the steps that
--ema-decay asks for.""",
    ),
    fault(
        "optimizer not in the checkpoint",
        flags=THREE,
        stopped_after=35,
        panels=("loss", "grad_norm", "val_loss"),
        text="""Both runs are stopped after step 35 and go on. Without its moments Adam takes steps of full size in the
direction of a single batch. It recovers, to a validation loss of {wrong[val_loss]} instead of
{right[val_loss]}, and the run is another than the one that was stopped.""",
    ),
    fault(
        "scheduler not in the checkpoint",
        flags=THREE,
        stopped_after=35,
        panels=("lr", "loss", "val_loss"),
        text="""Both runs are stopped after step 35 and go on. The schedule starts anew, with its warm-up, and never
comes to its end. In a run as short as this the higher rate even helps: the validation loss is
{wrong[val_loss]} instead of {right[val_loss]}. It is not the run that was planned, and the next
comparison rests on it.""",
    ),
]

NOT_SHOWN: Mapping[str, tuple[str, ...]] = {
    "The curve is that of one above, or near it": (
        "clip missing",
        "clip before backward",
        "clip after the step",
        "unscale missing",
        "EMA update only once an epoch",
        "softmax or sigmoid before the training loss",
        "(N, 1) against (N), by the data",
        "augmentation of validation data, by the data",
        "evaluation on the training split, by the data",
        "validation rows among the training rows",
        "train() only before the first epoch",
        "scheduler that counts steps stepped once a batch",
        "a mean divided again",
    ),
    "It is about what is kept, or about a run that goes on": (
        "last weights kept, not the best",
        "best kept by reference",
        "best compared the wrong way round",
        "best forgotten on resume",
        "patience forgotten on resume",
        "ema not in the checkpoint",
        "train_loss not in the checkpoint",
        "progress not in the checkpoint",
        "metrics_file not in the checkpoint",
        "scaler not in the checkpoint",
        "criterion not in the checkpoint",
        "model not restored",
        "Python's generator not in the checkpoint",
        "NumPy's generator not in the checkpoint",
        "torch's generator not in the checkpoint",
        "the device's generator not in the checkpoint",
        "position in the epoch lost on resume",
        "scheduler made after the optimizer was loaded",
        "checkpoint written in place",
        "no fsync before the rename",
        "weights_only off",
        "map_location missing",
        "strict=False",
        "strict=False for the average",
    ),
    "It costs time or memory, or precision, and the curve is the same": (
        "no-grad missing in evaluation",
        "loss kept with its graph",
        "item() in every step",
        "float() in every step",
        "tensor printed in every step",
        "tensor in an if in every step",
        "right answers counted in every step",
        "autocast around backward",
        "autocast missing",
    ),
    "It weighs a few samples or a few steps wrongly": (
        "loss of the last, smaller batch divided by the full size",
        "loss divided per batch and by the number of batches",
        "loss of the last, shorter step divided by the full number of batches",
        "batches of the last, shorter step left out",
        "the last batch left out of evaluation",
    ),
    "It comes a step or an evaluation too early or too late": (
        "EMA update before the step",
        "scheduler before the step",
        "plateau scheduler before the evaluation",
    ),
    "The rate follows a curve that was not meant": (
        "plateau scheduler given the training loss",
        "plateau scheduler given another metric than the monitored one",
    ),
    "It clips other gradients than those of the whole step": (
        "clip once a batch instead of once a step",
        "gradient that the optimizer never zeroes in the clip norm",
    ),
    "It ends with an error": (
        "scaler update missing",
        "scaler switched off",
        "plateau scheduler stepped without its metric",
    ),
    "It changes nothing where the model is on the CPU": ("optimizer made before the model moves",),
    "It does harm only where float16 overflows": ("step past the scaler",),
    "It sets another task, easier or harder than the right one, and the loss is lower or higher": (
        "padding is a target",
        "targets shifted twice, by the loop",
        "targets shifted twice, by the data",
    ),
    "It trains with another loss than was asked for, and no curve says which it is of": (
        "loss weights forgotten",
        "loss weights counted on validation",
        "void counted in the loss",
        "void has a probability",
    ),
    "It reports another number than it says, or predicts with another model": (
        "the training loss reported as the mean of batch means",
        "softmax or sigmoid before the validation loss",
        "metrics as means over batches",
        "evaluation on the training split, by evaluate.py",
        "logged gradient norm taken after clipping",
        "padding counted in the validation loss",
        "padding counted in the metrics",
        "0.5 as threshold on logits in predict.py",
        "predict.py without eval()",
        "predict.py scales its inputs in its own way",
        "predict.py in standardised units",
        "the class beside it in predict.py",
    ),
    "It makes the model see too little or too much of the data": (
        "the same order in every epoch, by the sampler",
        "the same order in every epoch, by the loop",
        "the sampler never told where to start",
        "the same augmentation in every epoch",
        "the same augmentation in every batch",
        "statistics, vocabulary or classes of all data",
        "the future begins in the history",
        "padding looked at",
    ),
    "Only L-BFGS, which asks for the loss many times in a step, can have it": (
        "zero_grad outside of the closure",
        "closure without backward",
        "closure that returns the sum of the losses",
        "scheduler in the closure",
        "dropout that differs from one call of the closure to the next",
        "curvature kept from one batch to the next",
        "loss of a step taken from its last evaluation",
    ),
}
"""The faults without a picture, by the reason."""
