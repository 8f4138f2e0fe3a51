"""The questionnaire: what it accepts and refuses, in memory and through Copier itself."""

from itertools import combinations

import copier
import pytest

from plainloop.catalogue import ROOT, settings
from plainloop.questionnaire import AnswerError, ask, questionnaire, resolve
from plainloop.space import NOT_ASKED, feasible_pairs, keys, values
from plainloop.tables import spelled

HOSTILE_NAMES = {
    "empty": "",
    "blank": "   ",
    "double quote": 'a "quoted" name',
    "single quote": "it's",
    "back quote": "`id`",
    "braces": "a {b}",
    "Jinja": "{{ 7 * 7 }}",
    "Jinja block": "{% raw %}",
    "shell": "a; rm -rf b",
    "substitution": "$(id)",
    "newline": "a\nb",
    "newline at the end": "a\n",
    "parent": "../a",
    "absolute": "/etc/passwd",
    "backslash": "a\\b",
    "YAML": "a: [b",
    "comment": "a # b",
    "dot at the end": "a.",
    "option": "--help",
    "control character": "a\x00b",
    "other letters": "моя модель",
    "long": "a" * 300,
}

INVALID = {
    "loss of another target": {"loss": "mse"},
    "loss of other labels": {"labels": "binary", "loss": "cross-entropy"},
    "labels without classes": {"task": "tabular-regression", "labels": "binary"},
    "unheard-of task": {"task": "protein-folding"},
    "unheard-of optimizer": {"optimizer": "adamwww"},
    "capitals": {"amp": "BF16"},
    "not a name": {"amp": False},
    "nothing": {"scheduler": ""},
}

COMPUTED = [name for name, question in questionnaire().items() if question.computed]


def assert_copier_refuses(template, tmp_path, answers, message):
    project = tmp_path / "project"
    with pytest.raises((ValueError, TypeError), match=message):
        copier.run_copy(str(template), project, data=answers, defaults=True, quiet=True)
    assert not project.exists()


@pytest.mark.parametrize("answers", INVALID.values(), ids=INVALID)
def test_refuses_invalid_answers(answers, template, tmp_path):
    key = list(answers)[-1]
    with pytest.raises(AnswerError, match=key) as refusal:
        resolve(answers)
    assert "\n" not in str(refusal.value)
    assert_copier_refuses(template, tmp_path, answers, f"Invalid choice for '{key}'")


@pytest.mark.parametrize("name", HOSTILE_NAMES.values(), ids=HOSTILE_NAMES)
def test_refuses_hostile_project_names(name, template, tmp_path):
    with pytest.raises(AnswerError, match="project_name") as refusal:
        resolve({"project_name": name})
    assert "\n" not in str(refusal.value)
    assert_copier_refuses(template, tmp_path, {"project_name": name}, "project_name")


@pytest.mark.parametrize("name", ["a", "My model", "resnet-50_v1.2", "3 birds", "a" * 80])
def test_accepts_ordinary_project_names(name):
    assert resolve({"project_name": name})["project_name"] == name


@pytest.mark.parametrize("key", COMPUTED)
def test_computed_values_are_no_answers(key, template, tmp_path):
    with pytest.raises(AnswerError, match="computed"):
        resolve({key: "true"})
    assert_copier_refuses(template, tmp_path, {key: "true"}, "computed")


def test_unknown_question_is_refused():
    with pytest.raises(AnswerError, match="no question 'optimiser'"):
        resolve({"optimiser": "adam"})


def test_every_pair_that_is_not_feasible_is_refused():
    """By an error, or by leaving out an answer that has no meaning."""
    feasible = feasible_pairs()
    for one, other in combinations(keys(), 2):
        for pair in (((one, a), (other, b)) for a in values(one) for b in values(other)):
            answers = dict(pair)
            if pair in feasible or NOT_ASKED in answers.values():
                continue
            try:
                recorded = ask(answers).recorded
            except AnswerError:
                continue
            assert not answers.items() <= recorded.items(), answers


@pytest.mark.parametrize("key", keys())
def test_every_value_is_accepted_by_itself_or_with_what_it_needs(key):
    feasible = {pair for pairs in feasible_pairs() for pair in pairs}
    assert {(key, value) for value in values(key)} <= feasible


def test_last_answers_stay_where_they_are_valid():
    last = {"task": "text-classification", "labels": "multiclass", "loss": "focal", "optimizer": "sgd"}
    answers = ask({"task": "tabular-regression"}, last).recorded
    assert answers["loss"] == "mse"
    assert answers["optimizer"] == "sgd"
    assert "labels" not in answers
    assert ask({"labels": "binary"}, last).recorded["loss"] == "focal"


def test_every_question_and_choice_explains_itself():
    for name, question in questionnaire().items():
        if not question.computed:
            assert question.help, name
            for choice in question.offered(resolve({})):
                assert choice.label.startswith(f"{spelled(choice.value)}: "), choice


def test_nothing_needs_trust():
    assert not settings().keys() & {"tasks", "migrations", "jinja_extensions", "external_data"}


def test_paths_of_the_template_work_on_every_system():
    for path in (ROOT / "template").rglob("*"):
        assert not set(path.name) & set('"|<>:?*\\'), path
        assert not path.name.endswith((".", " ")), path
