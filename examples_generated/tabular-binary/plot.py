"""The curves of a run, or of several in one picture.

Usage:
    python plot.py runs/default                     one run, into runs/default/curves.png
    python plot.py runs/default runs/other --output both.png
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tyro
from matplotlib.figure import Figure


@dataclass(frozen=True, kw_only=True)
class Arguments:
    runs: tyro.conf.Positional[tuple[Path, ...]] = (Path("runs/default"),)
    """Run folders, each with a metrics.jsonl."""
    output: Path | None = None
    """The picture to write; by default curves.png in the first run folder."""


def main(arguments: Arguments) -> None:
    rows_of = {run: read_rows(run / "metrics.jsonl") for run in arguments.runs}
    output = arguments.output or arguments.runs[0] / "curves.png"

    figure = Figure(figsize=(11, 7), layout="constrained")  # not pyplot's: it draws into a file and needs no screen
    panels = figure.subplots(2, 2, sharex=True)
    for number, (run, rows) in enumerate(rows_of.items()):
        color = f"C{number % 10}"
        draw(panels[0, 0], rows, "loss", color=color, alpha=0.4)
        draw(panels[0, 0], rows, "train_loss", color=color, alpha=0.4, marker=".", linestyle="none")
        draw(panels[0, 0], rows, "val_loss", color=color, marker=".", label=str(run))
        draw(panels[0, 1], rows, "val_accuracy", color=color, marker=".")
        draw(panels[1, 0], rows, "lr", color=color)
        draw(panels[1, 1], rows, "grad_norm", color=color)
    titles = (
        "loss: validation, and training (pale)",
        "val_accuracy",
        "learning rate",
        "gradient norm",
    )
    for panel, title in zip(panels.flat, titles, strict=True):
        panel.set_title(title)
        panel.grid(alpha=0.3)
    for text in panels[0, 0].legend().get_texts():
        text.set_parse_math(False)  # a $ in the name of a run folder begins no formula
    panels[1, 1].set_yscale("log")
    for panel in panels[1]:
        panel.set_xlabel("optimizer step")
    try:
        figure.savefig(output, dpi=120)
    except (OSError, ValueError) as error:
        raise SystemExit(f"{output} cannot be written: {error}") from None
    print(f"wrote {output}")


def draw(panel: Any, rows: list[dict[str, Any]], name: str, **style: Any) -> None:
    """One value over the steps, from the lines that have it."""
    points = [(row["step"], row[name]) for row in rows if row.get(name) is not None]
    panel.plot([step for step, _ in points], [value for _, value in points], **style)


def read_rows(file: Path) -> list[dict[str, Any]]:
    try:
        rows = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    except OSError as error:
        raise SystemExit(f"{file} cannot be read ({error.strerror}): name a run folder, such as runs/default") from None
    except ValueError:
        raise SystemExit(f"{file} holds a line that is not JSON") from None
    if not rows:
        raise SystemExit(f"{file} is empty: the run has not come to its first line yet")
    return rows


if __name__ == "__main__":
    main(tyro.cli(Arguments))
