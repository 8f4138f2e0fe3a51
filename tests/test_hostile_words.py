"""Words that break quoting, templates, shells, YAML or paths, given as answers: refused in one line, or harmless."""

import ast
import re
import tomllib
from pathlib import Path

import pytest
import yaml
from copier._cli import CopierApp  # the command itself, without a process for each call
from hypothesis import given, settings
from hypothesis import strategies as st

from plainloop.questionnaire import AnswerError, questionnaire
from plainloop.render import ANSWERS_FILE, render
from plainloop.space import keys

pytestmark = pytest.mark.xdist_group("hostile words")

# Of each way to break something, by itself and as a part of a longer string.
WORDS = (
    *("'", '"', "'''", '"""', '\\"', "\\", "\\N{DASH}", "\n", "\r", "\r\n", "\t", "\0", "\x1b[2J", "\x85", "\u2028"),
    *("{", "}", "{0}", "{{ 7 * 7 }}", "{{ _copier_conf }}", "{% raw %}", "{% include 'x' %}", "{# x #}", "#}", "%s"),
    *("$HOME", "${IFS}", "$(id)", "`id`", "; rm -rf x", "&& id", "| id", "> x", "*", "?", "~", "!", "--help", "-"),
    *("../", "/etc/passwd", "..\\", "C:\\", ".", "..", ".git", "CON", "nul"),
    *("yes", "no", "null", "~", "1e3", "0x1f", "1_000", "007", "1.5", "2020-01-31", "12:30", ": ", " #", "- ", "&a"),
    *("*a", "!!python/name:os.system", "|", ">", "%", "@", "[", "]]", "<!-- -->", "](x)", "```", "|---|", "=cmd"),
    *("моя", "模型", "\u202eelif", "\u200f", "e\u0301", "\u00e9", "👩\u200d🚀", "\ufeff", "\ud800", "ﬁ", "\uff11", "٣"),
    *("name", "Model", "a", "0", " ", "_", "é" * 300, "a" * 300, "a" * 80),
)
PLAIN = "abzABZ0189 ._-"
"""Of the characters that a name may have, enough to hit on every rule."""

hostile = st.one_of(
    st.lists(st.sampled_from(WORDS), min_size=1, max_size=4).map("".join),
    st.text(PLAIN, max_size=90),
    st.text(max_size=30),
)
in_ci = settings(derandomize=True, deadline=None, database=None)


def rendered(name: str, tracker: str) -> dict[str, str] | None:
    """The project, or None if the questionnaire refuses the name as it refuses things."""
    try:
        return render({"project_name": name, "tracker": tracker})
    except AnswerError as refusal:
        said = str(refusal)
        assert said.isprintable(), said
        assert "project_name" in said
        assert re.search(r"give it a name|80 at the most|leave it out|may hold letters|must end in a letter", said)
        return None


@settings(in_ci, max_examples=200)
@given(name=hostile, tracker=st.sampled_from(["off", "tensorboard", "wandb", "mlflow", "trackio"]))
def test_a_project_is_whole_or_its_name_is_refused(name, tracker):
    project = rendered(name, tracker)
    if project is None:
        return
    usual = render({"tracker": tracker})
    assert project.keys() == usual.keys()
    dependent = {path for path in project if project[path] != usual[path]}
    tracked = {"tracker.py", "tests/test_tracker.py"}
    assert dependent <= {"AGENTS.md", "README.md", "pyproject.toml", ANSWERS_FILE, *tracked}

    assert yaml.safe_load(project[ANSWERS_FILE])["project_name"] == name
    about = tomllib.loads(project["pyproject.toml"])["project"]
    assert about["description"].startswith(f"{name}: ")
    assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", about["name"])
    assert about["name"] == re.sub(r"[ ._-]+", "-", name.lower())
    for path in dependent & tracked:
        assert shape(project[path]) == shape(usual[path])
    # One line of prose is another, and no more: headings, lists and fences stand as they stood.
    for path in ("README.md", "AGENTS.md"):
        lines, as_usual = project[path].splitlines(), usual[path].splitlines()
        assert len(lines) == len(as_usual)
        for line, other in zip(lines, as_usual, strict=True):
            assert line == other or name in line or about["name"] in line


def shape(source: str) -> list[str]:
    """The tree of a module without the values of its strings."""
    return [type(node).__name__ for node in ast.walk(ast.parse(source))]


@settings(in_ci, max_examples=100)
@given(key=st.sampled_from([key for key in keys() if questionnaire()[key].type == "str"]), word=hostile)
def test_an_answer_that_is_no_choice_is_refused(key, word):
    with pytest.raises(AnswerError, match=key) as refusal:
        render({key: word})
    assert str(refusal.value).isprintable()


@settings(in_ci, max_examples=50)
@given(key=st.sampled_from([key for key in keys() if questionnaire()[key].type == "bool"]), word=hostile)
def test_an_answer_of_yes_or_no_is_nothing_else(key, word):
    """Copier reads any text as one of the two, and so do we; nothing of the text itself is left."""
    assert render({key: word}) in (render({key: False}), render({key: True}))


@settings(in_ci, max_examples=50)
@given(word=hostile, value=hostile)
def test_a_question_that_does_not_exist_is_refused(word, value):
    with pytest.raises(AnswerError) as refusal:
        render({f"{word}?": value})
    assert str(refusal.value).isprintable()


WORST = (
    "a\nb",
    "a\r\nimport os",
    '""" + __import__("os").system("id") + """',
    "it's",
    "\\",
    "{{ 7 * 7 }}",
    "{% include '/etc/passwd' %}",
    "{# x",
    "../../above",
    "/etc/passwd",
    "$(touch above)",
    "a: [b",
    "\u202eelif",
    "a" * 300,
)


@pytest.mark.parametrize("by_file", [False, True], ids=["--data", "--data-file"])
def test_copier_writes_nothing_for_the_worst_of_them(template, tmp_path, by_file):
    """Its command ends with a traceback of its own; the last line is the questionnaire's."""
    given_by = tmp_path / "given.yml"
    for name in WORST:
        given_by.write_text(yaml.safe_dump({"project_name": name}), encoding="utf-8")
        flags = ["--data-file", str(given_by)] if by_file else ["--data", f"project_name={name}"]
        command = ["copier", "copy", "--defaults", "--quiet", *flags, str(template), str(tmp_path / "project")]
        with pytest.raises(ValueError, match="project_name") as refusal:
            CopierApp.run(command, exit=False)
        assert str(refusal.value).isprintable()
        assert [*tmp_path.iterdir()] == [given_by], name


@pytest.mark.parametrize("name", ["yes", "1e3"])
def test_copier_keeps_a_name_that_yaml_would_take_for_something_else(template, tmp_path, name):
    project = tmp_path / "project"
    command = ["copier", "copy", "--defaults", "--quiet", "--data", f"project_name={name}", str(template), str(project)]
    _, status = CopierApp.run(command, exit=False)
    assert status == 0
    assert yaml.safe_load((project / ANSWERS_FILE).read_text())["project_name"] == name
    assert [*tmp_path.iterdir()] == [project]


def test_no_path_of_the_template_holds_an_answer():
    """So no answer can lead out of the destination: the only tag in a path is the name of the answers file."""
    folder = Path(__file__).parents[1] / "template" / "project"
    with_tags = {path.name for path in folder.rglob("*") if "{" in path.name}
    assert with_tags == {"{{_copier_conf.answers_file}}.jinja"}
