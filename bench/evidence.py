"""What silent faults do to a run, and what a first lesson shows: writes docs/what-breaks.md from real runs.

    make evidence                                                        all of it
    PYTHONPATH=tests python bench/evidence.py --only "eval() missing"    the runs of one picture, and the page
    PYTHONPATH=tests python bench/evidence.py --only                     the page, from the runs that are kept

Each picture is of runs on the same data, from the same seed, by the commands of generated projects; a fault is put in
by the very edit of tests/teeth, hence the path. The curves are kept beside the pictures, docs/what-breaks/*.json: the
page is written from them, and tests/test_evidence.py compares a new run with them.
"""

import argparse
import difflib
import json
import math
import shutil
import signal
import tempfile
import textwrap
from collections.abc import Iterator, Mapping
from pathlib import Path

import matplotlib
from matplotlib.figure import Figure

from plainloop.examples import write_project
from plainloop.questionnaire import resolve
from plainloop.render import render
from projects import Warm, read_metrics, stop_at
from teeth.faults import FAULTS, Fault
from what_breaks import FAULTS_SHOWN, LESSONS, NOT_SHOWN, Run, Shown

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "what-breaks.md"
FOLDER = ROOT / "docs" / "what-breaks"
COLOURS = ("#0072b2", "#d55e00", "#009e73")  # Okabe and Ito's, told apart by everyone
POINTS = 150
NAMES = {
    "lr": "learning rate",
    "grad_norm": "gradient norm",
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
            rows = read_metrics(self.trained(project, [*shown.flags, *run.flags], run))
            curves[label] = {name: thinned([(row["step"], row[name]) for row in rows if name in row]) for name in names}
        return curves

    def trained(self, project: Path, flags: list[str], run: Run) -> Path:
        """The folder of a run with these flags, which ended as it should."""
        key = f"{project} {flags} {run.stopped_after}"
        if key not in self.made:
            self.made[key] = project / "runs" / str(len(self.made))
            flags = ["--run-dir", str(self.made[key]), "--num-workers", "0", *flags]
            if run.stopped_after:
                stop_at(self.warm.run, project, run.stopped_after, signal.SIGTERM, *flags)
                flags += ["--resume"]
            self.warm.run(project, "train.py", *flags, status=run.status)
        return self.made[key]


def edit(shown: Shown) -> str:
    """The lines that the fault changes."""
    run = next((run for run in shown.runs.values() if run.fault), None)
    if run is None:
        return ""
    answers = {**shown.answers, **run.answers}
    put_in = found(run.fault, answers)
    before = render(answers)[put_in.file]
    after = put_in.put_into(before, resolve(answers))
    lines = list(difflib.unified_diff(before.splitlines(), after.splitlines(), n=0, lineterm=""))[2:]
    return "\n".join(line for line in lines if not line.startswith("@@") and line[1:].strip())


def spoken(name: str, shown: Shown) -> str:
    """A quantity as a person says it."""
    which, _, quantity = name.rpartition(" ")
    said = NAMES.get(quantity, quantity.replace("val_", "validation ").replace("_", " "))
    if quantity == "loss":  # the mean since the line before
        every = shown.flags[shown.flags.index("--log-every") + 1]
        said = "loss of the step" if every == "1" else f"loss of {every} steps"
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
        axes.set_title(spoken(name, shown), fontsize="medium")
        axes.grid(alpha=0.3)
        axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False)
    with matplotlib.rc_context({"svg.hashsalt": "plainloop"}):  # the same picture is the same file
        figure.savefig(file, metadata={"Date": None})


def figures(curves: Curves) -> dict[str, dict[str, str]]:
    """What a text may say of each run: the last of each quantity, the least, the largest, and that of a step."""
    said: dict[str, dict[str, str]] = {}
    for label, run in curves.items():
        said[label] = {}
        for name, curve in run.items():
            values = [value for _, value in curve if value is not None]
            said[label] |= {f"{name} at {step}": rounded(value) for step, value in curve}
            said[label][name] = rounded(curve[-1][1]) if curve else rounded(None)
            said[label][f"least {name}"] = rounded(min(values, default=None))
            said[label][f"largest {name}"] = rounded(max(values, default=None))
    return said


def rounded(value: float | None) -> str:
    """A number for a text."""
    if value is None:
        return "not finite"
    return f"{value:,.0f}" if 1_000 <= abs(value) < 1_000_000 else f"{value:.3g}"


def section(shown: Shown) -> Iterator[str]:
    """Draw the runs that are kept, and tell them."""
    curves = json.loads(kept(shown).read_text(encoding="utf-8"))
    picture(shown, curves, FOLDER / f"{shown.slug}.svg")
    yield f"### {shown.title}\n"
    if changed := edit(shown):
        yield f"```diff\n{changed}\n```\n"
    yield f"![{shown.title}](what-breaks/{shown.slug}.svg)\n"
    said = {label.replace(" ", "_"): values for label, values in figures(curves).items()}
    text = " ".join(shown.text.split()).format_map(said)
    yield textwrap.fill(text, 120, break_on_hyphens=False) + "\n"
    if shown.table:
        head = ["", *(spoken(name, shown) for name in shown.table)]
        yield f"| {' | '.join(head)} |\n|{'---|' * len(head)}"
        for label, values in figures(curves).items():
            yield f"| {label} | {' | '.join(values[name] for name in shown.table)} |"
        yield ""
    yield "```sh\n" + "\n".join(commands(shown)) + "\n```\n"


def kept(shown: Shown) -> Path:
    """Where the curves of a picture are."""
    return FOLDER / f"{shown.slug}.json"


def commands(shown: Shown) -> Iterator[str]:
    """What makes the runs."""
    for label, run in shown.runs.items():
        first = label == next(iter(shown.runs))
        if first or run.answers:
            answers = "".join(f"-d {name}={value} " for name, value in {**shown.answers, **run.answers}.items())
            folder = "project" if first else label
            start = "" if first else "cd ..; "
            yield f'{start}copier copy --defaults {answers}"$PLAINLOOP" {folder}; cd {folder}; python sample_data.py'
        arguments = " ".join(["train.py --run-dir", f"runs/{label.replace(' ', '-')}", *shown.flags, *run.flags])
        comment = "  # after the edit" if run.fault else ""
        if run.stopped_after:
            stop = f'"$PLAINLOOP"/tests/drivers/stop_at.py {run.stopped_after} {signal.SIGTERM:d}'
            yield f"python {stop} {arguments}{comment}"
            arguments, comment = f"{arguments} --resume", ""
        yield f"python {arguments}{comment}"


INTRODUCTION = """# What breaks, and what it looks like

A training loop that is wrong seldom says so. Each picture is of runs on the same data and from the same seed. Where it
comes with an edit, one run is of the project as it is generated, and one with this single mistake. All end with exit
status 0, but for the one at a learning rate of 100. The edits are those of `make test-teeth`, under each of which a
project's own tests must fail; [README](../README.md#how-it-is-proved) says which test it was, where that has been run.

The loss of a step is that of its batch, the training loss the mean over the epoch so far. Under each picture stands
what makes its runs, for an empty folder, with `$PLAINLOOP` as the absolute path of this repository and the packages of
the project installed; an edit is made by hand. `make evidence` makes all of them, and this page. Another processor
rounds otherwise, so that the numbers differ a little.
"""


def page() -> Iterator[str]:
    """All of it."""
    yield INTRODUCTION
    yield "## A first lesson\n"
    for shown in LESSONS:
        yield from section(shown)
    yield "## Faults that fail silently\n"
    for shown in FAULTS_SHOWN:
        yield from section(shown)
    yield "## Without a picture\n"
    yield "`make test-teeth` puts these in as well.\n"
    for why, names in NOT_SHOWN.items():
        yield f"- {why}: {'; '.join(names)}."


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="*", metavar="TITLE", help="make the runs of these pictures alone, or none")
    only = parser.parse_args().only
    matplotlib.use("agg")
    FOLDER.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        laboratory = Laboratory(Path(folder))
        for shown in [*LESSONS, *FAULTS_SHOWN]:
            if only is None or shown.title in only:
                kept(shown).write_text(json.dumps(laboratory.curves(shown)) + "\n", encoding="utf-8")
        laboratory.warm.close()
    PAGE.write_text("\n".join(page()).rstrip() + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
