"""What is measured, and what predict.py says."""

from teeth.code import Code
from teeth.faults.registry import Facts, fault

BATCHES = "test_training.py::test_evaluation_does_not_depend_on_the_batches"
FORMULAS = "test_training.py::test_metrics_are_their_formulas"
PREDICTED = "test_predict.py::test_predictions_are_those_of_the_trained_model"
GOES_ON = "test_predict.py::test_a_text_goes_on_as_the_trained_model_says"


@fault("metrics as means over batches", BATCHES, file="evaluate.py")
def _(code: Code, facts: Facts) -> None:
    code.add("from copy import deepcopy", before="from dataclasses import dataclass")
    code.add("fresh, of_batches = deepcopy(metrics), []", before="losses, count = [], 0")
    seen = f"{facts['outputs']}, {facts['targets']}" + (", history" if facts["data_kind"] == "series" else "")
    code.add("of_batches.append(of_batch.compute())", after="metrics.update(…)")
    code.add(f"of_batch.update({seen})", after="metrics.update(…)")
    code.add("of_batch = deepcopy(fresh)", after="metrics.update(…)")
    mean = "{name: sum(values[name] for values in of_batches) / len(of_batches) for name in of_batches[0]}"
    code.replace("metrics.compute()", mean, inside="def evaluate(…) -> dict[str, float]")


@fault("the last batch left out of evaluation", BATCHES, file="batches.py")
def _(code: Code, facts: Facts) -> None:
    whole = "len(dataset) // (2 * config.batch_size) * 2 * config.batch_size"
    code.replace("torch.arange(len(dataset))", f"torch.arange({whole})")


@fault(
    "0.5 as threshold on logits in the metrics",
    FORMULAS,
    file="metrics.py",
    possible=lambda facts: facts["target"] in ("binary", "multilabel"),
)
def _(code: Code, facts: Facts) -> None:
    code.replace("logits > 0", "logits > 0.5")


@fault(
    "0.5 as threshold on logits in predict.py",
    PREDICTED,
    file="predict.py",
    possible=lambda facts: facts["target"] in ("binary", "multilabel"),
)
def _(code: Code, facts: Facts) -> None:
    code.replace("logits.sigmoid()", "logits")


def in_standard_deviations(code: Code, facts: Facts) -> None:
    code.rewrite("self.scale = preprocessing.target_std", "self.scale = 1.0")


STANDARD = "metrics in standardised units"
fault(STANDARD, FORMULAS, "metrics.py", lambda facts: facts["target"] == "real")(in_standard_deviations)
fault(
    STANDARD, "test_data.py::test_metrics_are_their_formulas", "metrics.py", lambda facts: facts["target"] == "series"
)(in_standard_deviations)


@fault(
    "padding counted in the metrics", FORMULAS, file="metrics.py", possible=lambda facts: facts["target"] == "tokens"
)
def _(code: Code, facts: Facts) -> None:
    code.rewrite("real = next_tokens != IGNORE", "real = torch.ones_like(next_tokens)")


@fault(
    "padding counted in the metrics",
    "test_training.py::test_entities_count_when_type_and_both_ends_are_right",
    file="metrics.py",
    possible=lambda facts: facts["target"] == "tags",
)
def _(code: Code, facts: Facts) -> None:
    counted = "self.unread.append((tags.clamp(min=0), logits.argmax(dim=2)))"
    code.rewrite("self.unread.append(…)", counted, inside="class Metrics…")


@fault(
    "padding counted in the metrics",
    "test_data.py::test_metrics_are_their_formulas",
    file="metrics.py",
    possible=lambda facts: facts["target"] == "mask",
)
def _(code: Code, facts: Facts) -> None:
    code.replace("torch.where(…).flatten()", "(masks.clamp(max=n - 1) * n + logits.argmax(dim=1)).flatten()")


def no_eval(code: Code, facts: Facts) -> None:
    code.remove("model.eval()")


NO_EVAL = "predict.py without eval()"
fault(NO_EVAL, PREDICTED, "predict.py", lambda facts: facts["data_kind"] != "language")(no_eval)
fault(NO_EVAL, GOES_ON, "predict.py", lambda facts: facts["data_kind"] == "language")(no_eval)


@fault(
    "predict.py scales its inputs in its own way",
    PREDICTED,
    file="predict.py",
    possible=lambda facts: facts["data_kind"] in ("image", "mask", "table", "series"),
)
def _(code: Code, facts: Facts) -> None:
    if facts["data_kind"] == "table":
        code.replace("preprocessing.features(…)", "torch.nn.functional.normalize(…)")
    elif facts["data_kind"] == "series":
        code.add("series = (series - series.mean(0)) / series.std(0)", after="series = …")
    else:
        images = "images.to(device)" if facts["data_kind"] == "image" else "to_tensor(pixels).to(device)"
        code.replace(images, "2 * … - 1")


@fault(
    "predict.py in standardised units",
    PREDICTED,
    file="predict.py",
    possible=lambda facts: facts["target"] in ("real", "series"),
)
def _(code: Code, facts: Facts) -> None:
    if facts["predicts"]:
        code.replace("preprocessing.in_units(…)", "predictions" if facts["target"] == "real" else "model(history)[0]")
    elif facts["data_kind"] == "image":
        code.replace("… * preprocessing.target_std + preprocessing.target_mean", "model(images.to(device))")
    else:
        code.remove("predictions = predictions * …")


@fault(
    "the class beside it in predict.py",
    PREDICTED,
    file="predict.py",
    possible=lambda facts: facts["target"] in ("class", "tags"),
)
def _(code: Code, facts: Facts) -> None:
    if facts["target"] == "tags":
        code.replace("preprocessing.tags[numbers[i, token]]", "preprocessing.tags[numbers[i, token] - 1]")
    else:
        classes = "preprocessing.classes" if facts["data_kind"] == "image" else "classes"
        code.replace(f"{classes}[number]", f"{classes}[number - 1]")
