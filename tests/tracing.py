"""What the loop of a generated project does, in order."""

import json
import shutil
from pathlib import Path
from typing import Any

from projects import DRIVERS, Warm, shrink

Event = tuple[str, Any]


def trace(warm: Warm, project: Path, log: Path, *command: str | Path, status: int = 0, **options: Any) -> list[Event]:
    """Run a script in the project's folder, and give what drivers/trace.py, which lists the options, has logged."""
    told = json.dumps({"log": str(log), **options})
    warm.run(project, DRIVERS / "trace.py", told, *command, status=status)
    return [(word, value) for word, value in json.loads(log.read_text(encoding="utf-8"))]


def train(
    warm: Warm, folder: Path, project: Path, *flags: str | Path, rows: int = 27, run: str = "run", **options: Any
) -> list[Event]:
    """Train on the first rows of the sample data in a folder of `folder`, and give the trace."""
    data = folder / "data"
    if not data.exists():
        shutil.copytree(project / "data", data)
        shrink(data, rows)
    places = ["--data-dir", data, "--run-dir", folder / run, "--num-workers", "0"]
    return trace(warm, project, folder / "log", "train.py", *places, *flags, **options)


def values_of(events: list[Event], wanted: str) -> list[Any]:
    """The values of all events with a word."""
    return [value for word, value in events if word == wanted]
