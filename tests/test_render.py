"""Every pair of values, rendered in memory: the right files, formatted, lint-clean, with no more than was asked for."""

import re
import subprocess
import sys
import tomllib
from collections.abc import Callable
from functools import cache
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
import yaml

from plainloop.covering import covering_array as find_covering_array
from plainloop.examples import write_project
from plainloop.questionnaire import ask, resolve
from plainloop.render import ANSWERS_FILE, render
from plainloop.space import NOT_ASKED, feasible_pairs, keys, valid, values

# These tests share the rendered projects, so one process runs them all.
pytestmark = pytest.mark.xdist_group("render")

FILES = {
    ANSWERS_FILE,
    ".gitignore",
    "AGENTS.md",
    "README.md",
    "batches.py",
    "check.py",
    "check_data.py",
    "check_model.py",
    "check_setup.py",
    "check_training.py",
    "checkpoint.py",
    "config.py",
    "data.py",
    "diagnose.py",
    "evaluate.py",
    "metrics.py",
    "model.py",
    "plot.py",
    "predict.py",
    "pyproject.toml",
    "run_folder.py",
    "sample_data.py",
    "stopping.py",
    "tests/conftest.py",
    "tests/test_predict.py",
    "tests/test_resume.py",
    "tests/test_step.py",
    "tests/test_training.py",
    "train.py",
}


covering_array = cache(find_covering_array)


@cache
def projects() -> list[dict[str, str]]:
    """A project for each combination of the covering array."""
    return [render(answers) for answers in covering_array()]


@cache
def contexts() -> list[dict[str, Any]]:
    return [resolve(answers) for answers in covering_array()]


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """All projects on disk, in numbered folders; a project's answers lie in it."""
    folder = tmp_path_factory.mktemp("projects")
    for number, project in enumerate(projects()):
        write_project(folder / f"{number:04}", project)
    return folder


def line_around(found: re.Match[str] | None) -> str | None:
    """The line in which a pattern was found."""
    if found:
        start, end = found.string.rfind("\n", 0, found.start()) + 1, found.string.find("\n", found.end())
        return found.string[start : None if end < 0 else end].strip() or repr(found.group())
    return None


def assert_no_file(wrong: Callable[[str, str, dict[str, Any]], str | None]) -> None:
    """Fail with what is wrong with any file of any project, a line each, and answers with which it is."""
    found = {
        f"{path}: {what}": answers
        for answers, context, project in zip(covering_array(), contexts(), projects(), strict=True)
        for path, text in project.items()
        if (what := wrong(path, text, context))
    }
    if found:
        pytest.fail("\n".join(f"{what}    ({answers})" for what, answers in found.items()), pytrace=False)


def test_covering_array_holds_every_feasible_pair():
    rows = [{key: answers.get(key, NOT_ASKED) for key in keys()} for answers in covering_array()]
    assert {pair for row in rows for pair in combinations(row.items(), 2)} == feasible_pairs()
    for answers in covering_array():
        assert answers.items() <= ask(answers).recorded.items()


# Files that only some answers ask for.
MORE_FILES: dict[str, Callable[[dict[str, Any]], bool]] = {
    "losses.py": lambda context: context["loss_is_own"],
    "optimizers.py": lambda context: context["optimizer_is_own"],
    "schedule.py": lambda context: context["scheduler"] != "constant",
    "ema.py": lambda context: context["ema"],
    "tracker.py": lambda context: context["tracker"] != "off",
    "tests/test_ema.py": lambda context: context["ema"],
    "tests/test_tracker.py": lambda context: context["tracker"] != "off",
    "tests/test_data.py": lambda context: context["data_kind"] in ("mask", "series"),
}


def test_files_are_the_expected_ones():
    for context, project in zip(contexts(), projects(), strict=True):
        assert project.keys() == FILES | {path for path, asked_for in MORE_FILES.items() if asked_for(context)}
    for path in MORE_FILES:
        assert any(path in project for project in projects()), path


def test_files_parse():
    def fault(path: str, text: str, _: dict[str, Any]) -> str | None:
        try:
            match Path(path).suffix:
                case ".py":
                    compile(text, path, "exec")
                case ".toml":
                    tomllib.loads(text)
                case ".yml":
                    yaml.safe_load(text)
        except (SyntaxError, tomllib.TOMLDecodeError, yaml.YAMLError) as error:
            return str(error)
        return None

    assert_no_file(fault)


def test_answers_file_is_read_back(folder):
    for number, answers in enumerate(covering_array()):
        recorded = yaml.safe_load((folder / f"{number:04}" / ANSWERS_FILE).read_text())
        assert recorded == ask(answers).recorded


LEFTOVERS = {
    "template tag": r"\{\{ |\{%|%\}|\{#",
    "undefined value": r"\bUndefined\b",
    "blank line at the start": r"\A\s",
    "three blank lines": r"\n\n\n\n",
    "blank line at the end": r"\n\n\Z",
    "no line end at the end": r"[^\n]\Z",
    "trailing space": r"[ \t]+\n",
    "carriage return": r"\r",
    "name of the template": r"(?i)plainloop\.|import plainloop|from plainloop",
}


@pytest.mark.parametrize("pattern", LEFTOVERS.values(), ids=LEFTOVERS)
def test_nothing_is_left_over(pattern):
    assert_no_file(lambda _, text, __: line_around(re.search(pattern, text)))


@pytest.mark.parametrize("command", ["check --output-format concise", "format --diff --quiet"], ids=["lint", "format"])
def test_ruff_finds_nothing(folder, command):
    """By the rules in each project's own pyproject.toml, in one call for all."""
    ruff = [sys.executable, "-m", "ruff", *command.split(), "--no-cache", "."]
    done = subprocess.run(ruff, cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr


def is_answer(**answers: Any) -> Callable[[dict[str, Any]], bool]:
    """A condition that one of these answers was given, or one of a list."""

    def given(context: dict[str, Any]) -> bool:
        return any(context[key] in (value if isinstance(value, list) else [value]) for key, value in answers.items())

    return given


def imports(library: str) -> Callable[[dict[str, Any]], bool]:
    """A condition that the task needs a library."""
    return lambda context: library in context["catalogue"]["tasks"][context["task"]]["imports"]


# Words in the code, and for which answers alone they may stand there.
TRACES: dict[str, Callable[[dict[str, Any]], bool]] = {
    r"autocast": lambda context: context["amp"] != "off",
    r"bfloat16|bf16": is_answer(amp="bf16"),
    r"\bfloat16\b|fp16|GradScaler|\bscaler\b": is_answer(amp="fp16"),
    r"clip_grad_norm_|max_grad_norm": is_answer(gradient_clipping="norm"),
    r"clip_grad_value_|max_grad_value": is_answer(gradient_clipping="value"),
    r"accumulate": is_answer(gradient_accumulation=True),
    r"config\.patience|--patience|\spatience: int|early.stop": is_answer(early_stopping=True),
    r"optim\.AdamW\b": is_answer(optimizer=["adamw", "muon"]),
    r"optim\.Adam\b": is_answer(optimizer="adam"),
    r"optim\.SGD\(groups|nesterov|\bmomentum": is_answer(optimizer="sgd"),
    r"RMSprop": is_answer(optimizer="rmsprop"),
    r"warmup|warm-up": lambda context: (
        "warmup" in context["catalogue"]["schedulers"][context["scheduler"]]
        or context["optimizer"] == "schedule-free-adamw"
        or context["ema"]
    ),
    r"\bStepLR|lr_step_epochs": is_answer(scheduler="step"),
    r"MultiStepLR|lr_milestones": is_answer(scheduler="multistep"),
    r"PolynomialLR|lr_power": is_answer(scheduler="polynomial"),
    r"CosineAnnealingWarmRestarts|config\.cycles": is_answer(scheduler="cosine-restarts"),
    r"decay_share": is_answer(scheduler="warmup-stable-decay"),
    r"inverse_sqrt": is_answer(scheduler="inverse-sqrt"),
    r"CyclicLR|cycle_epochs": is_answer(scheduler="cyclic"),
    r"planned_rates|drawn\(": lambda context: context["scheduler"] not in ("constant", "plateau"),
    r"ExponentialLR": is_answer(scheduler="exponential"),
    r"CosineAnnealingLR": is_answer(scheduler="cosine"),
    r"OneCycleLR": is_answer(scheduler="one-cycle"),
    r"ReduceLROnPlateau|lr_patience": is_answer(scheduler="plateau"),
    r"label_smoothing": is_answer(loss="label-smoothing"),
    r"class_weights": is_answer(loss="weighted-cross-entropy"),
    r"pos_weight": is_answer(loss="weighted-bce"),
    r"[Ff]ocal": is_answer(loss="focal"),
    r"MSELoss": is_answer(loss="mse"),
    r"L1Loss": is_answer(loss="mae"),
    r"HuberLoss": is_answer(loss="huber"),
    r"BCEWithLogitsLoss": lambda context: "bce" in context["loss"],
    r"optim\.NAdam": is_answer(optimizer="nadam"),
    r"optim\.RAdam": is_answer(optimizer="radam"),
    r"Adagrad": is_answer(optimizer="adagrad"),
    r"Adafactor": is_answer(optimizer="adafactor"),
    r"Muon|muon": is_answer(optimizer="muon"),
    r"[Ss]chedule-?[Ff]ree": is_answer(optimizer="schedule-free-adamw"),
    r"LBFGS|L-BFGS": is_answer(optimizer="lbfgs"),
    r"\bema\b|ema_decay|WeightAverage": is_answer(ema=True),
    r"compile_backend|model\.compile|_dynamo": is_answer(compile=True),
    r"activation_checkpointing|recompute": lambda context: context["recomputes"],
    r"(?i)tensorboard": is_answer(tracker="tensorboard"),
    r"wandb": is_answer(tracker="wandb"),
    r"mlflow": is_answer(tracker="mlflow"),
    r"trackio": is_answer(tracker="trackio"),
    r"tracker": lambda context: context["tracker"] != "off",
    r"(?i)gaussian|variance": is_answer(loss="gaussian-nll"),
    r"quantile": is_answer(loss="quantile"),
    r"Asymmetric": is_answer(loss="asymmetric"),
    r"Dice": is_answer(loss=["dice", "cross-entropy-dice"]),
    r"z_loss|ZLoss": is_answer(loss="cross-entropy-z-loss"),
    r"\bxpu\b": is_answer(device=["xpu", "auto"]),
    r"\bmps\b": lambda context: context["device"] in ("mps", "auto"),
    r'type == "cuda"': lambda context: context["device"] in ("cuda", "auto"),
    r"PIL|\bimages?\b": imports("pillow"),
    r"pandas": imports("pandas"),
    r"sklearn": imports("scikit-learn"),
    r"tokenizers|tokenizer": lambda context: context["tokenizes"],
    r"attention_mask": lambda context: context["named_inputs"],
    r"perplexity|bits_per_byte": is_answer(target="tokens"),
    r"macro_f1": lambda context: context["target"] in ("class", "multilabel"),
    r"micro_f1": is_answer(target="multilabel"),
    r"auroc|AUROC": is_answer(target="binary"),
    r"\brmse\b": is_answer(target=["real", "series"]),
    r"\br2\b": is_answer(target="real"),
    r"\bmiou\b|masks?\.png|\bmasks\b": is_answer(target="mask"),
    r"mase\b|naive": is_answer(target="series"),
}


@pytest.mark.parametrize(("word", "may"), TRACES.items(), ids=TRACES)
def test_no_trace_of_what_was_not_chosen(word, may):
    def trace(path: str, text: str, context: dict[str, Any]) -> str | None:
        if may(context) or not path.endswith((".py", ".toml")):
            return None
        return line_around(re.search(word, text))

    assert_no_file(trace)
    assert any(re.search(word, text) for project in projects() for text in project.values()), "it guards nothing"


# Where another answer may change code: with the answers that start from other defaults because of it.
ABOUT_THE_LOOP = {"config.py", "train.py", "tests/conftest.py", "tests/test_step.py", "tests/test_training.py"}
CHECKS = {"check_data.py", "check_model.py", "check_setup.py", "check_training.py"}
MAY_CHANGE = {
    "labels": {
        *("check.py", "config.py", "data.py", "evaluate.py", "metrics.py", "model.py", "plot.py", "predict.py"),
        *("run_folder.py", "sample_data.py", "tests/test_predict.py", "tests/test_training.py", "train.py"),
        *CHECKS,
    },
    "loss": {
        *("check.py", "config.py", "data.py", "evaluate.py", "losses.py", "metrics.py", "model.py", "predict.py"),
        *(
            "run_folder.py",
            "tests/test_data.py",
            "tests/test_predict.py",
            "tests/test_resume.py",
            "tests/test_step.py",
            "tests/test_training.py",
            "train.py",
        ),
        *CHECKS,
    },
    "optimizer": ABOUT_THE_LOOP
    | CHECKS
    | {"batches.py", "check.py", "checkpoint.py", "diagnose.py", "evaluate.py", "optimizers.py", "plot.py"}
    | {"run_folder.py", "schedule.py", "tests/test_resume.py"},
    "scheduler": ABOUT_THE_LOOP
    | {"check_training.py"}
    | {"check.py", "checkpoint.py", "run_folder.py", "schedule.py", "tests/test_resume.py"},
    "amp": ABOUT_THE_LOOP - {"config.py"}
    | CHECKS
    | {"check.py", "checkpoint.py", "diagnose.py", "evaluate.py", "tests/test_resume.py"},
    "device": {
        *("batches.py", "check.py", "checkpoint.py", "config.py", "evaluate.py", "predict.py", "run_folder.py"),
        *("tests/conftest.py", "tests/test_resume.py", "train.py"),
        *("check_setup.py", "check_training.py"),
    },
    "gradient_clipping": ABOUT_THE_LOOP - {"tests/conftest.py"} | {"check_model.py", "check_training.py"} | {"plot.py"},
    "gradient_accumulation": ABOUT_THE_LOOP
    | {"check_setup.py"}
    | {"batches.py", "check.py", "diagnose.py", "run_folder.py", "tests/test_resume.py"},
    "ema": {
        *("check_training.py", "checkpoint.py", "config.py", "ema.py", "train.py"),
        *("tests/test_ema.py", "tests/test_resume.py", "tests/test_step.py"),
    },
    "compile": ABOUT_THE_LOOP | {"stopping.py", "tests/test_resume.py"},
    "early_stopping": ABOUT_THE_LOOP - {"tests/test_step.py"},
    "monitor": {"tests/test_training.py", "train.py"},
    "tracker": {"run_folder.py", "tests/conftest.py", "tests/test_tracker.py", "tracker.py", "train.py"},
}


@pytest.mark.parametrize("key", keys())
def test_no_answer_is_ignored(key):
    """Of any two values that the same other answers leave open, each gives other code, and only where it should."""
    for combination in valid(key):
        if combination[key] is NOT_ASKED:
            continue
        base = {name: value for name, value in combination.items() if value is not NOT_ASKED}
        earlier = {name: value for name, value in base.items() if name != key}
        for other in values(key):
            if {**combination, key: other} in valid(key) and other != base[key]:
                one, two = code(base), code({**earlier, key: other})
                changed = {path for path in one.keys() | two.keys() if one.get(path) != two.get(path)}
                assert changed, (base, other)
                assert key == "task" or changed <= MAY_CHANGE[key], (base, other)


@cache
def _code(answers: tuple[tuple[str, Any], ...]) -> dict[str, str]:
    return {path: text for path, text in render(dict(answers)).items() if path.endswith(".py")}


def code(answers: dict[str, Any]) -> dict[str, str]:
    """The Python files, without what only talks about them."""
    return _code(tuple(answers.items()))


def test_project_name_is_used():
    project = render({"project_name": "Seventeen"})
    assert all("Seventeen" in project[path] for path in ("README.md", "pyproject.toml"))


FLAGS_OF_OTHERS = {"defaults", "vcs-ref", "data", "logdir", "help"}
"""Copier's, TensorBoard's, and tyro's own."""


def test_every_flag_that_is_named_exists():
    """In README.md and AGENTS.md, in comments, in messages."""
    for answers, project in zip(covering_array(), projects(), strict=True):
        commands = "\n".join(project[file] for file in ("config.py", "evaluate.py", "predict.py", "plot.py"))
        fields = {name.replace("_", "-") for name in re.findall(r"^    (\w+): ", commands, re.MULTILINE)}
        for path, text in project.items():
            if not path.endswith((".md", ".py")):
                continue
            named = set(re.findall(r"(?<![\w-])--([a-z][a-z-]*)", text))
            assert named <= fields | FLAGS_OF_OTHERS, (path, named - fields - FLAGS_OF_OTHERS, answers)
