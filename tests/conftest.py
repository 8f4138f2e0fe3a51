"""Settings of all tests. Imports nothing of Plainloop: the GPU tests run where only torch and a few wheels are."""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from projects import Warm
from teeth.table import by_fault, by_test

ROOT = Path(__file__).parents[1]

# The tests run side by side, one process a core: more threads each would only get in each other's way.
for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ[name] = "1"
os.environ["TOKENIZERS_PARALLELISM"] = "false"
os.environ["MPLBACKEND"] = "Agg"
os.environ["WANDB_MODE"] = "offline"
# Of this run alone: a process that is killed while it links leaves a file that the next one chokes on.
os.environ["TORCHINDUCTOR_CACHE_DIR"] = tempfile.mkdtemp(prefix="inductor-")
# Nobody's own settings for Copier: they would change the defaults.
os.environ["COPIER_SETTINGS_PATH"] = str(ROOT / "tests" / "copier-settings.yml")


SHARES = {"pairs": 12, "teeth": 12, "evidence": 12}
"""Into how many shares the long suites are split: `make test` takes one, another after each commit."""


def pytest_addoption(parser: pytest.Parser) -> None:
    for suite, shares in SHARES.items():
        parser.addoption(
            f"--{suite}",
            type=share_of,
            default=f"today's/{shares}",
            metavar="K/N",
            help=f"the K-th of N shares of test_{suite}.py; without it, one of {shares}, another after each commit",
        )
    parser.addoption("--teeth-table", type=Path, metavar="FILE", help="write what test_teeth.py found into a README")
    parser.addoption("--storm", type=int, default=6, metavar="N", help="how often test_storm.py kills each of its runs")
    parser.addoption(
        "--storm-seed",
        type=int,
        default=commit(),
        metavar="N",
        help="what its moments follow from; by default, the commit",
    )


def commit() -> int:
    """The beginning of its hash, as a number."""
    head = ["git", "rev-parse", "HEAD"]
    full = subprocess.run(head, cwd=ROOT, capture_output=True, text=True, check=False).stdout or "0"
    return int(full[:8], 16)


def share_of(text: str) -> tuple[int, int]:
    """Which share, of how many."""
    one, of = text.split("/")
    if one == "today's":
        return commit() % int(of) + 1, int(of)
    return int(one), int(of)


def pytest_report_header(config: pytest.Config) -> list[str]:
    return [
        *("of test_{}.py, share {} of {}".format(suite, *config.getoption(suite)) for suite in SHARES),
        "of the storm, --storm {} --storm-seed {}".format(*map(config.getoption, ("storm", "storm_seed"))),
    ]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Tables of what the long suites found."""
    failed = [report for report in terminalreporter.getreports("failed") if "test_pairs.py" in report.nodeid]
    if failed:
        terminalreporter.section("pairs that failed")
    for report in failed:
        name = report.nodeid.partition("[")[2].rstrip("]")
        wrong = str(getattr(report.longrepr, "reprcrash", report.longrepr)).partition("\n")[0].rpartition("Error: ")[2]
        terminalreporter.line(f"{name}: {wrong[:120]}")
        terminalreporter.line(f"    make test-pairs ONLY={name[:3]}")
    passed = terminalreporter.getreports("passed")
    caught = [value for report in passed for name, value in report.user_properties if name == "teeth"]
    if caught:
        terminalreporter.section("faults, and the tests of the projects that catch them")
        for line in by_fault(caught):
            terminalreporter.line(line)
    if file := terminalreporter.config.getoption("teeth_table"):
        from plainloop.tables import put_into

        put_into(file, "\n".join(by_test(caught)), "teeth")


@pytest.fixture(scope="session")
def template(tmp_path_factory) -> Path:
    """A copy of the template as it stands, without git: what Copier makes of it is what stands there."""
    folder = tmp_path_factory.mktemp("template")
    shutil.copy(ROOT / "copier.yml", folder)
    shutil.copytree(ROOT / "template", folder / "template")
    return folder


@pytest.fixture(scope="session")
def warm(tmp_path_factory) -> Iterator[Warm]:
    """Runs commands in generated projects without importing torch anew for each."""
    server = Warm(tmp_path_factory.mktemp("warm"))
    yield server
    server.close()


@pytest.fixture(scope="session")
def project(tmp_path_factory, warm) -> Callable[..., Path]:
    """A function that gives a project with its sample data; made once for the same answers, so not to be changed."""
    from plainloop.examples import write_project
    from plainloop.render import render

    folder = tmp_path_factory.mktemp("projects")

    def of(**answers: str | bool) -> Path:
        made = folder / ("-".join(f"{key}={value}" for key, value in sorted(answers.items())) or "defaults")
        if not made.exists():
            write_project(made, render(answers))
            warm.run(made, "sample_data.py")
        return made

    return of
