"""What silent faults do to a run, and what a first lesson shows: writes docs/what-breaks.md from real runs.

    make evidence                               all of it, some minutes on one core
    PYTHONPATH=tests python bench/evidence.py --only "eval() missing"

Each picture is of runs on the same data, from the same seed, by the commands of generated projects; a fault is put in
by the very edit of tests/teeth, hence the path. The curves are kept beside the pictures, docs/what-breaks/*.json, so
that tests/test_evidence.py can compare a new run with them.
"""

import argparse
import difflib
import json
import math
import shutil
import signal
import tempfile
import textwrap
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import matplotlib
from matplotlib.figure import Figure

from plainloop.examples import write_project
from plainloop.questionnaire import resolve
from plainloop.render import render
from projects import Warm, read_metrics, stop_at
from teeth.faults import FAULTS, Fault
from what_breaks import FAULTS_SHOWN, LESSONS, NOT_SHOWN, Shown

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "what-breaks.md"
FOLDER = ROOT / "docs" / "what-breaks"
COLOURS = ("#0072b2", "#d55e00", "#009e73")  # Okabe and Ito's, told apart by everyone
POINTS = 150
NAMES = {
    "lr": "learning rate",
    "grad_norm": "gradient norm",
    "loss": "training loss",
    "train_loss": "training loss",
    "val_r2": "validation R²",
}

Curve = list[tuple[int, float | None]]
"""Steps, and what was written at each; None is what JSON has for a number that is not finite."""
Curves = dict[str, dict[str, Curve]]
"""For each run, by its label, the curve of each quantity."""


def found(fault: str, answers: Mapping[str, object]) -> Fault:
    """The fault of this name, as these projects can have it."""
    facts = resolve(answers)
    return next(each for each in FAULTS if each.name == fault and each.possible(facts))


class Laboratory:
    """Makes the projects and the runs; a run that two pictures show is made once."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.warm = Warm(folder)
        self.made: dict[str, Path] = {}

    def project(self, answers: Mapping[str, object]) -> Path:
        """A project with its sample data."""
        key = json.dumps(sorted(answers.items()))
        if key not in self.made:
            self.made[key] = self.folder / f"project{len(self.made)}"
            write_project(self.made[key], render(answers))
            self.warm.run(self.made[key], "sample_data.py")
        return self.made[key]

    def edited(self, project: Path, fault: str, answers: Mapping[str, object]) -> Path:
        """The project with a fault in it."""
        if not fault:
            return project
        key = f"{project} {fault}"
        if key not in self.made:
            self.made[key] = self.folder / f"project{len(self.made)}"
            shutil.copytree(project, self.made[key], ignore=shutil.ignore_patterns("runs"))
            put_in = found(fault, answers)
            source = (project / put_in.file).read_text(encoding="utf-8")
            (self.made[key] / put_in.file).write_text(put_in.put_into(source, resolve(answers)), encoding="utf-8")
        return self.made[key]

    def curves(self, shown: Shown) -> Curves:
        """Make the runs of a picture."""
        curves = {}
        names = dict.fromkeys(name.split()[-1] for name in (*shown.panels, *shown.table))
        for label, run in shown.runs.items():
            answers = {**shown.answers, **run.answers}
            project = self.edited(self.project(answers), run.fault, answers)
            flags = [*shown.flags, *run.flags]
            rows = read_metrics(self.trained(project, flags, run.stopped_after))
            curves[label] = {name: thinned([(row["step"], row[name]) for row in rows if name in row]) for name in names}
        return curves

    def trained(self, project: Path, flags: list[str], stopped_after: int) -> Path:
        """The folder of a run; of one that is stopped after so many steps and goes on, if that is not 0."""
        key = f"{project} {flags} {stopped_after}"
        if key not in self.made:
            self.made[key] = project / "runs" / str(len(self.made))
            flags = ["--run-dir", str(self.made[key]), "--num-workers", "0", *flags]
            if stopped_after:
                stop_at(self.warm.run, project, stopped_after, signal.SIGTERM, *flags)
                flags += ["--resume"]
            self.warm.run(project, "train.py", *flags, status=None)
        return self.made[key]

    def edit(self, shown: Shown) -> str:
        """The lines that the fault changes."""
        run = next((run for run in shown.runs.values() if run.fault), None)
        if run is None:
            return ""
        answers = {**shown.answers, **run.answers}
        put_in = found(run.fault, answers)
        before = (self.project(answers) / put_in.file).read_text(encoding="utf-8")
        after = put_in.put_into(before, resolve(answers))
        lines = list(difflib.unified_diff(before.splitlines(), after.splitlines(), n=0, lineterm=""))[2:]
        return "\n".join(line for line in lines if not line.startswith("@@") and line[1:].strip())


def spoken(name: str) -> str:
    """A quantity as a person says it."""
    which, _, quantity = name.rpartition(" ")
    said = NAMES.get(quantity, quantity.replace("val_", "validation ").replace("_", " "))
    return f"{which} {said}".strip()


def thinned(curve: Curve) -> Curve:
    """At most POINTS of it, the last one too, to six digits: the curves are kept in git."""
    every = math.ceil(len(curve) / POINTS)
    kept = curve[:: every or 1] + ([curve[-1]] if curve and (len(curve) - 1) % every else [])
    return [(step, None if value is None else float(f"{value:.6g}")) for step, value in kept]


def picture(shown: Shown, curves: Curves, file: Path) -> None:
    """A panel for each quantity, a line for each run."""
    figure = Figure(figsize=(4.2 * len(shown.panels), 3), layout="constrained")
    for axes, name in zip(figure.subplots(1, len(shown.panels), squeeze=False)[0], shown.panels, strict=True):
        for colour, (label, run) in zip(COLOURS, curves.items(), strict=False):
            steps, values = zip(*run[name], strict=True) if run[name] else ((), ())
            heights = [math.nan if value is None else value for value in values]
            marks = {"marker": "o", "markersize": 3} if len(steps) < 40 else {}
            axes.plot(steps, heights, color=colour, linewidth=1.3, label=label, **marks)
        if name in shown.logarithmic:
            axes.set_yscale("log")
        axes.set_xlabel("step")
        axes.set_title(spoken(name), fontsize="medium")
        axes.grid(alpha=0.3)
        axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False)
    with matplotlib.rc_context({"svg.hashsalt": "plainloop"}):  # the same picture is the same file
        figure.savefig(file, metadata={"Date": None})


def figures(curves: Curves) -> dict[str, dict[str, str]]:
    """What a text may say of each run: the last of each quantity, and the least."""
    said: dict[str, dict[str, str]] = {}
    for label, run in curves.items():
        said[label] = {}
        for name, curve in run.items():
            values = [value for _, value in curve if value is not None]
            said[label][name] = f"{values[-1]:.3g}" if curve and curve[-1][1] is not None else "not finite"
            said[label][f"least {name}"] = f"{min(values):.3g}" if values else "not finite"
            said[label][f"largest {name}"] = f"{max(values):.3g}" if values else "not finite"
    return said


def section(laboratory: Laboratory, shown: Shown) -> Iterator[str]:
    """Run it, draw it, and tell it."""
    curves = laboratory.curves(shown)
    FOLDER.mkdir(parents=True, exist_ok=True)
    (FOLDER / f"{shown.slug}.json").write_text(json.dumps(curves) + "\n", encoding="utf-8")
    picture(shown, curves, FOLDER / f"{shown.slug}.svg")
    yield f"### {shown.title}\n"
    if edit := laboratory.edit(shown):
        yield f"```diff\n{edit}\n```\n"
    yield f"![{shown.title}](what-breaks/{shown.slug}.svg)\n"
    said = {label.replace(" ", "_"): values for label, values in figures(curves).items()}
    yield textwrap.fill(shown.text.format_map(said), 120, break_on_hyphens=False) + "\n"
    if shown.table:
        head = ["", *map(spoken, shown.table)]
        yield f"| {' | '.join(head)} |\n|{'---|' * len(head)}"
        for label, said in figures(curves).items():
            yield f"| {label} | {' | '.join(said[name] for name in shown.table)} |"
        yield ""
    yield f"<sub>{commands(shown)}</sub>\n"


def commands(shown: Shown) -> str:
    """What makes the runs."""
    answers = " ".join(f"-d {name}={value}" for name, value in shown.answers.items())
    said = [f"`copier copy --defaults {answers} …`" if answers else "`copier copy --defaults …`"]
    for label, run in shown.runs.items():
        changed = "".join(f", -d {name}={value}" for name, value in run.answers.items())
        edit = ", with the edit" if run.fault else ""
        edit += f", stopped after step {run.stopped_after} and resumed" if run.stopped_after else ""
        said.append(f"{label}{changed}{edit}: `{' '.join(['python train.py', *shown.flags, *run.flags])}`")
    return "; ".join(said)


INTRODUCTION = """# What breaks, and what it looks like

A training loop that is wrong seldom says so. Each picture shows two runs of the same generated project, on the same
data and from the same seed: one as it is generated, one with a single mistake. They end with exit status 0, all but the
one at a learning rate of 100.
`make evidence` makes this page anew, from real runs; each project's own tests catch every one of these mistakes (README
has the table).
"""


def page(laboratory: Laboratory) -> Iterator[str]:
    """All of it."""
    yield INTRODUCTION
    yield "## A first lesson\n"
    for shown in LESSONS:
        yield from section(laboratory, shown)
    yield "## Faults that fail silently\n"
    for shown in FAULTS_SHOWN:
        yield from section(laboratory, shown)
    yield "## Without a picture\n"
    yield "The projects' tests catch these as well.\n"
    for why, names in NOT_SHOWN.items():
        yield f"- {why}: {'; '.join(names)}."


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", help="print one section, by its title, and leave the page as it is")
    only = parser.parse_args().only
    matplotlib.use("agg")
    with tempfile.TemporaryDirectory() as folder:
        laboratory = Laboratory(Path(folder))
        if only:
            chosen = [shown for shown in [*LESSONS, *FAULTS_SHOWN] if only in shown.title]
            lines: Iterable[str] = (line for shown in chosen for line in section(laboratory, shown))
            print("\n".join(lines))
        else:
            PAGE.write_text("\n".join(page(laboratory)).rstrip() + "\n", encoding="utf-8")
        laboratory.warm.close()


if __name__ == "__main__":
    main()
