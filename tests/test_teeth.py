"""Every silent fault, put into every project form in which it is possible: the project's own tests must fail.

A fault that slips through is a test that is missing in template/project/tests.
"""

import re
import shutil
from pathlib import Path

import pytest

from plainloop.questionnaire import resolve
from projects import DRIVERS, ROWS, Warm, predicts, shrink
from teeth.faults import FAULTS, Fault
from teeth.forms import FORMS

FACTS = {form: resolve(answers) for form, answers in FORMS.items()}


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """A share of the forms, or of all places of a fault; those of one form in one process, which makes its project."""
    share, shares = metafunc.config.getoption("teeth")
    if "fault" in metafunc.fixturenames:
        places = [(fault, form) for form in FORMS for fault in FAULTS if fault.possible(FACTS[form])]
        named = [(f"{fault.name} in {form}", form, (fault, form)) for fault, form in places]
    else:
        named = [(form, form, (form,)) for form in FORMS]
    groups = {form: pytest.mark.xdist_group(f"teeth in {form}") for form in FORMS}
    values = [pytest.param(*value, id=name, marks=groups[form]) for name, form, value in named[share - 1 :: shares]]
    metafunc.parametrize("fault, form" if "fault" in metafunc.fixturenames else "form", values)


@pytest.fixture(scope="session")
def small_data(tmp_path_factory, project) -> Path:
    """A function that gives a form's sample data, little of it."""
    folder = tmp_path_factory.mktemp("small")

    def of(form: str) -> Path:
        small = folder / form
        if not small.exists():
            shutil.copytree(project(**FORMS[form]) / "data", small)
            shrink(small, rows=ROWS.get(FACTS[form]["data_kind"], 90), characters=12_000)
        return small

    return of


def copied(project: Path, folder: Path) -> Path:
    """The project's source in a folder of its own."""
    ignore = shutil.ignore_patterns("data", "runs", "__pycache__", ".*_cache")
    return Path(shutil.copytree(project, folder / "project", ignore=ignore))


def own_tests(warm: Warm, project: Path, data: Path, *arguments: str) -> list[str]:
    """The project's own tests that failed."""
    command = [DRIVERS / "own_tests.py", data, "-x", "-rfE", *arguments]
    output = warm.run(project, *command, status=None)
    failed = re.findall(r"^(?:FAILED|ERROR) tests/(\S+?::\w+)", output, re.MULTILINE)
    assert failed or re.search(r"^\d+ passed", output, re.MULTILINE), output[-3000:]
    return failed


def test_without_a_fault_they_pass(form, project, warm, tmp_path):
    made = project(**FORMS[form])
    assert own_tests(warm, copied(made, tmp_path), made / "data") == []


def test_a_fault_is_caught(fault: Fault, form: str, project, small_data, warm, tmp_path, record_property):
    made = project(**FORMS[form])
    broken = copied(made, tmp_path)
    file = broken / fault.file
    source = file.read_text(encoding="utf-8")
    file.write_text(fault.put_into(source, FACTS[form]), encoding="utf-8")
    assert file.read_text(encoding="utf-8") != source

    # It is silent: with it, training ends as if nothing were wrong, and so does what comes after.
    data, best = small_data(form), broken / "runs" / "default" / "best.pt"
    if fault.silent:
        flags = ["--epochs", "2", "--batch-size", "16", "--num-workers", "0"]
        warm.run(broken, "train.py", "--data-dir", data, *flags)
    if fault.file == "evaluate.py":
        warm.run(broken, "evaluate.py", "--data-dir", data, "--checkpoint", best)
    if fault.file == "predict.py":
        predicts(warm, broken, FACTS[form]["data_kind"], data, best)

    test_file, test = fault.caught_by.split("::")
    # By the beginning of its name: some have a longer one in some forms.
    failed = own_tests(warm, broken, made / "data", f"tests/{test_file}", "-k", test)
    failed = failed or own_tests(warm, broken, made / "data")
    assert failed, f"{fault.name}: no test of the project noticed"
    record_property("teeth", (fault.name, form, failed[0]))
