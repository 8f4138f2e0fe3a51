"""What the loss is given, what it is of, and what it is divided by."""

from teeth.code import Code
from teeth.faults.registry import Facts, fault

DIVIDED = "test_training.py::test_losses_are_sums_divided_once"
LOGITS = "test_training.py::test_the_loss_is_given_logits"
WEIGHTS = "test_training.py::test_the_weights_of_the_loss_are_counted_in_training"
VOID = "test_data.py::test_void_counts_neither_in_the_loss_nor_in_its_gradient"


def gives_logits(facts: Facts) -> bool:
    """Whether the model's output is one that people take for probabilities."""
    return facts["outputs"] == "logits"


def into_probabilities(facts: Facts) -> str:
    """What would make probabilities of them."""
    if facts["target"] in ("binary", "multilabel"):
        return ".sigmoid()"
    return f".softmax(dim={1 if facts['target'] == 'mask' else -1})"


def probable(facts: Facts) -> str:
    """The loss of what are no logits any more."""
    return f"criterion({facts['loss_arguments'].replace('logits', 'logits' + into_probabilities(facts), 1)})"


def one_number(facts: Facts) -> bool:
    """Whether the model gives one number for a sample, which a loss compares with one."""
    return facts["target"] == "real" and not facts["predicts"]


@fault("the training loss reported as the mean of batch means", DIVIDED, file="metrics.py")
def _(code: Code, facts: Facts) -> None:
    code.rewrite("sums[0] += loss", "sums[0] += loss / count")
    code.rewrite("sums[1] += count", "sums[1] += 1")


@fault("the validation loss as the mean of batch means", DIVIDED, file="evaluate.py")
def _(code: Code, facts: Facts) -> None:
    code.replace("criterion(…)", f"… / {facts['count']}")
    code.rewrite("count += …", "count += 1")


@fault("a mean divided again", DIVIDED, file="evaluate.py", possible=lambda facts: not facts["loss_is_own"])
def _(code: Code, facts: Facts) -> None:
    code.drop('reduction="sum"')


@fault("a mean divided again", DIVIDED, file="losses.py", possible=lambda facts: facts["loss_is_own"])
def _(code: Code, facts: Facts) -> None:
    mean = {
        "CrossEntropyDiceLoss": "(cross_entropies.sum(dim=(1, 2)) / n_pixels + dice_losses).mean()",
        "GaussianNLL": "0.5 * (variance.log() + (targets - mean) ** 2 / variance).mean()",
        "QuantileLoss": "torch.maximum(self.quantiles * errors, (self.quantiles - 1) * errors).mean()",
    }
    code.rewrite("return …", f"return {mean[facts['own_loss']]}")


@fault("softmax or sigmoid at the end of the model", LOGITS, file="model.py", possible=gives_logits)
def _(code: Code, facts: Facts) -> None:
    if facts["target"] == "binary":
        code.replace("….squeeze(-1)", "….sigmoid()")
    elif facts["data_kind"] == "language":
        code.replace("linear(…)", "….softmax(dim=-1)")
    else:
        code.replace("self.head(…)", f"…{into_probabilities(facts)}")


@fault("softmax or sigmoid before the training loss", LOGITS, possible=gives_logits)
def _(code: Code, facts: Facts) -> None:
    code.replace("criterion(…)", probable(facts))


@fault("softmax or sigmoid before the validation loss", LOGITS, file="evaluate.py", possible=gives_logits)
def _(code: Code, facts: Facts) -> None:
    code.replace("criterion(…)", probable(facts))


@fault("(N, 1) against (N), by the model", DIVIDED, file="model.py", possible=one_number)
def _(code: Code, facts: Facts) -> None:
    code.replace("….squeeze(-1)", "….unsqueeze(-1)")


@fault("(N, 1) against (N), by the data", DIVIDED, file="data.py", possible=lambda facts: facts["target"] == "real")
def _(code: Code, facts: Facts) -> None:
    code.replace("torch.tensor(…, dtype=torch.float32)", "….unsqueeze(-1)")


# With windows of text it would take a training text that is shorter than one of them.
@fault("padding counted in the step's divisor", DIVIDED, possible=lambda facts: facts["data_kind"] == "words")
def _(code: Code, facts: Facts) -> None:
    code.replace("(… != IGNORE).sum()", f"{facts['targets']}.numel()")


@fault("padding counted in the validation loss", DIVIDED, file="evaluate.py", possible=lambda facts: facts["ignores"])
def _(code: Code, facts: Facts) -> None:
    code.replace("int((… != IGNORE).sum())", f"{facts['targets']}.numel()")


@fault("void counted in the loss", VOID, file="losses.py", possible=lambda facts: facts["target"] == "mask")
def _(code: Code, facts: Facts) -> None:
    code.replace("(masks != IGNORE).sum(dim=(1, 2)).clamp(min=1)", "masks[0].numel()")


@fault("void has a probability", VOID, file="losses.py", possible=lambda facts: facts["target"] == "mask")
def _(code: Code, facts: Facts) -> None:
    code.replace("logits.softmax(…) * (…)[…]", "logits.softmax(dim=1, dtype=torch.float32)")


@fault("loss weights counted on validation", WEIGHTS, possible=lambda facts: facts["loss_counts"])
def _(code: Code, facts: Facts) -> None:
    code.replace("train_set.labels", "val_set.labels")


@fault("loss weights forgotten", WEIGHTS, file="evaluate.py", possible=lambda facts: facts["loss_counts"])
def _(code: Code, facts: Facts) -> None:
    code.drop("weight=class_weights" if facts["loss_counts"] == "class_weights" else "pos_weight=pos_weight")
