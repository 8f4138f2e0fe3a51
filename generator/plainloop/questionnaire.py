"""The questionnaire, asked in memory: defaults, conditions, choices and validators as Copier applies them."""

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType
from typing import Any, NamedTuple

import yaml

from plainloop.catalogue import questions
from plainloop.jinja import render_string

NOTHING: Mapping[str, Any] = MappingProxyType({})


class AnswerError(ValueError):
    """An answer that the questionnaire refuses; the message is one line."""


def to_bool(value: Any) -> bool:
    """Copier's reading of a boolean: a number, a YAML word, else whether there is anything."""
    with suppress(TypeError, ValueError):
        return bool(float(value))
    word = value.strip().lower() if isinstance(value, str) else value
    return bool(word) and word not in ("n", "no", "f", "false", "off", "~", "null", "none")


def to_str(value: Any) -> str:
    """Copier's reading of a text."""
    if isinstance(value, (str, int, float)):
        return str(value)
    raise ValueError(f"{value!r} is no text")


@cache
def _parsed(text: str) -> Any:
    return yaml.safe_load(text)


def to_data(value: Any) -> Any:
    """A value written as YAML; parsed once a text, so the result is shared: read it, do not change it."""
    return _parsed(value) if isinstance(value, str) else value


CASTS: dict[str, Callable[[Any], Any]] = {"str": to_str, "bool": to_bool, "int": int, "float": float, "yaml": to_data}


class Choice(NamedTuple):
    """A value on offer; `refusal` says why it cannot be taken now, if so."""

    label: str
    value: Any
    refusal: str = ""


@dataclass(frozen=True)
class Question:
    """One question of the questionnaire; a computed value is one that is never asked."""

    name: str
    type: str = "yaml"
    help: str = ""
    default: Any = None
    when: str | bool = True
    choices: Any = ()
    validator: str = ""

    @property
    def computed(self) -> bool:
        """Whether the value follows from other answers."""
        return self.when is False

    def is_asked(self, context: Mapping[str, Any]) -> bool:
        """Whether the question has a meaning for the answers so far."""
        return to_bool(render_string(self.when, context))

    def offered(self, context: Mapping[str, Any]) -> list[Choice]:
        """The choices for the answers so far; none where any text will do."""
        choices = to_data(render_string(self.choices, context))
        pairs = choices.items() if isinstance(choices, Mapping) else [(choice, choice) for choice in choices]
        return [self._choice(label, value, context) for label, value in pairs]

    def _choice(self, label: Any, value: Any, context: Mapping[str, Any]) -> Choice:
        refusal = ""
        if isinstance(value, Mapping):
            refusal, value = render_string(value.get("validator", ""), context), value["value"]
        return Choice(str(render_string(label, context)), CASTS[self.type](render_string(value, context)), refusal)

    def read(self, value: Any, context: Mapping[str, Any]) -> Any:
        """The answer in its own type, if it is one of the choices."""
        try:
            answer = CASTS[self.type](value)
        except (TypeError, ValueError, yaml.YAMLError):
            raise AnswerError(f"{self.name}: {value!r} is no {self.type}") from None
        offered = self.offered(context)
        refusals = [choice.refusal.strip() for choice in offered if choice.value == answer]
        if offered and not refusals:
            values = ", ".join(str(choice.value) for choice in offered if not choice.refusal)
            raise AnswerError(f"{self.name}: {answer!r} is not among {values}")
        if any(refusals):
            raise AnswerError(f"{self.name}: {next(filter(None, refusals))}")
        return answer

    def check(self, answer: Any, context: Mapping[str, Any]) -> None:
        """Refuse what the validator objects to."""
        if objection := str(render_string(self.validator, {**context, self.name: answer})).strip():
            raise AnswerError(objection if self.name in objection else f"{self.name}: {objection}")

    def accept(self, value: Any, context: Mapping[str, Any]) -> Any:
        """The answer that somebody gave, read and checked."""
        answer = self.read(value, context)
        self.check(answer, context)
        return answer


@cache
def questionnaire() -> dict[str, Question]:
    """The questions by name, in the order asked."""
    return {name: Question(name, **details) for name, details in questions().items()}


class Answered(NamedTuple):
    """A questionnaire filled in."""

    context: dict[str, Any]
    """Every answer and computed value: what the templates see."""
    recorded: dict[str, Any]
    """The answers to the questions that were asked: what the answers file keeps."""


def ask(answers: Mapping[str, Any], last: Mapping[str, Any] = NOTHING) -> Answered:
    """Fill in the questionnaire: `answers` first, then the still valid ones of `last`, then the defaults."""
    if unknown := sorted(answers.keys() - questionnaire().keys()):
        askable = [name for name, question in questionnaire().items() if not question.computed]
        raise AnswerError(f"there is no question {unknown[0]!r}: the questions are {', '.join(askable)}")
    context = {**last, **answers}
    recorded = {}
    for name, question in questionnaire().items():
        asked = question.is_asked(context)
        if name in answers:
            context[name] = question.accept(answers[name], context)
        elif not (asked and name in last and _still_valid(question, context)):
            context[name] = question.read(render_string(question.default, context), context)
            if asked:
                question.check(context[name], context)
        if asked:
            recorded[name] = context[name]
    return Answered(context, recorded)


def _still_valid(question: Question, context: dict[str, Any]) -> bool:
    """Whether an answer given earlier, in the context, is one that can be given now; it is read in place."""
    try:
        context[question.name] = question.accept(context[question.name], context)
    except AnswerError:
        return False
    return True


def resolve(answers: Mapping[str, Any], last: Mapping[str, Any] = NOTHING) -> dict[str, Any]:
    """All that the templates see for these answers, computed values included."""
    return ask(answers, last).context
