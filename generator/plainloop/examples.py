"""The examples: generated projects that are committed, so that they can be read and run without Copier."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pathspec import PathSpec

from plainloop.catalogue import ROOT
from plainloop.render import render

FOLDER = ROOT / "examples_generated"
SOURCE = "gh:plainloop/plainloop"

# Between them: every optimizer, every form of AMP, clipping and `monitor`, and each way to step a scheduler.
EXAMPLES: Mapping[str, Mapping[str, Any]] = {
    "image-classification": {},
    "tabular-binary": {
        "project_name": "Breast cancer",
        "task": "tabular-classification",
        "labels": "binary",
        "loss": "weighted-bce",
        "optimizer": "sgd",
        "scheduler": "one-cycle",
        "gradient_clipping": "off",
        "monitor": "metric",
    },
    "tabular-regression": {
        "project_name": "Diabetes",
        "task": "tabular-regression",
        "loss": "huber",
        "optimizer": "adam",
        "scheduler": "plateau",
        "gradient_clipping": "value",
        "early_stopping": True,
    },
    "text-classification": {
        "project_name": "Docstrings",
        "task": "text-classification",
        "loss": "focal",
        "optimizer": "rmsprop",
        "scheduler": "step",
        "amp": "fp16",
        "monitor": "metric",
    },
    "language-modeling": {
        "project_name": "Sources",
        "task": "language-modeling",
        "gradient_accumulation": True,
    },
}


def render_example(name: str) -> dict[str, str]:
    """The files of an example as the template writes them now."""
    return render(EXAMPLES[name], src_path=SOURCE)


def _written(folder: Path, project: Mapping[str, str]) -> Iterator[str]:
    """The files in a project's folder, without those that its own .gitignore leaves out (data, runs)."""
    ignored = PathSpec.from_lines("gitignore", project[".gitignore"].splitlines())
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if path.is_file() and not ignored.match_file(name):
            yield name


def differences(folder: Path = FOLDER) -> list[str]:
    """One line for each committed file that is not what the template writes now."""
    lines = [f"{path.name}/: no example" for path in sorted(folder.glob("*/")) if path.name not in EXAMPLES]
    for name in EXAMPLES:
        project = render_example(name)
        written = set(_written(folder / name, project))
        for path in sorted(project.keys() | written):
            if path not in written:
                lines.append(f"{name}/{path}: missing")
            elif path not in project:
                lines.append(f"{name}/{path}: the template does not write it")
            elif (folder / name / path).read_bytes() != project[path].encode():
                lines.append(f"{name}/{path}: differs")
    return lines


def write_project(folder: Path, project: Mapping[str, str]) -> None:
    """Write a rendered project into a folder."""
    for path, text in project.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(text.encode())


def write_examples(folder: Path = FOLDER) -> None:
    """Make the committed examples what the template writes now; their data and runs stay."""
    for name in EXAMPLES:
        project = render_example(name)
        for path in set(_written(folder / name, project)) - project.keys():
            (folder / name / path).unlink()
        write_project(folder / name, project)
