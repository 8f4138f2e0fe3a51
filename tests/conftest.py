"""Settings of all tests. Imports nothing of Plainloop: the GPU tests run where only torch and a few wheels are."""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from projects import Warm

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


SHARES = 12


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--pairs",
        type=share,
        default="today's",
        metavar="K/N",
        help=f"the K-th of N shares of test_pairs.py; without it, one of {SHARES}, another after each commit",
    )


def share(text: str) -> tuple[int, int]:
    """Which share, of how many."""
    if text != "today's":
        one, of = text.split("/")
        return int(one), int(of)
    head = ["git", "rev-parse", "HEAD"]
    commit = subprocess.run(head, cwd=ROOT, capture_output=True, text=True, check=False).stdout or "0"
    return int(commit[:8], 16) % SHARES + 1, SHARES


def pytest_report_header(config: pytest.Config) -> str:
    return "of the pairs of choices, share {} of {}".format(*config.getoption("pairs"))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """The pairs that failed, as a table, each with the command that runs it again."""
    failed = [report for report in terminalreporter.getreports("failed") if "test_pairs.py" in report.nodeid]
    if failed:
        terminalreporter.section("pairs that failed")
    for report in failed:
        name = report.nodeid.partition("[")[2].rstrip("]")
        wrong = str(getattr(report.longrepr, "reprcrash", report.longrepr)).partition("\n")[0].rpartition("Error: ")[2]
        terminalreporter.line(f"{name}: {wrong[:120]}")
        terminalreporter.line(f"    make test-pairs ONLY={name[:3]}")


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
        made = folder / "-".join(str(value) for _, value in sorted(answers.items()))
        if not made.exists():
            write_project(made, render(answers))
            warm.run(made, "sample_data.py")
        return made

    return of
