"""The questions and their choices as tables, for the terminal and for README.md."""

from pathlib import Path
from typing import Any, NamedTuple

from plainloop.questionnaire import AnswerError, Question, questionnaire, resolve
from plainloop.space import NOT_ASKED, depends_on, keys, valid, values


class Entry(NamedTuple):
    """A choice: its value, what the catalogue says of it, and which earlier answers it goes with, if not with all."""

    value: str
    help: str
    goes_with: str


def spelled(value: Any) -> str:
    """A value as it is written in an answers file."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _nearest(name: str, combination: dict[str, Any]) -> Any:
    """The last of the answers that a question depends on."""
    return next(
        (combination[key] for key in reversed(depends_on(name)) if combination[key] is not NOT_ASKED), NOT_ASKED
    )


def _goes_with(name: str, value: Any) -> str:
    nearest = dict.fromkeys(_nearest(name, each) for each in valid(name) if each[name] == value)
    everything = {_nearest(name, each) for each in valid(name)}
    return "" if nearest.keys() == everything else ", ".join(map(spelled, nearest))


def _help(question: Question, value: Any) -> str:
    """What a choice's label says after its name."""
    for combination in valid(question.name):
        if combination[question.name] == value:
            answers = {name: answer for name, answer in combination.items() if answer is not NOT_ASKED}
            for choice in question.offered(resolve(answers)):
                if choice.value == value:
                    return choice.label.removeprefix(f"{spelled(value)}: ")
    return ""


def entries(name: str) -> list[Entry]:
    """The choices of a question, in the catalogue's order."""
    question = questionnaire()[name]
    return [
        Entry(spelled(value), _help(question, value), _goes_with(name, value))
        for value in values(name)
        if value is not NOT_ASKED
    ]


def terminal() -> str:
    """All questions with their choices, in aligned columns."""
    lines = []
    for name in keys():
        lines += ["", f"{name}: {questionnaire()[name].help}"]
        for value, text, goes_with in entries(name):
            lines.append(f"  {value:24}{text}{f' (with {goes_with})' if goes_with else ''}".rstrip())
    return "\n".join(lines[1:])


def markdown() -> str:
    """All questions with their choices, as README.md shows them."""
    lines = ["| question | what it asks | choices |", "|---|---|---|"]
    for name, question in questionnaire().items():
        if not question.computed:
            choices = ", ".join(f"`{entry.value}`" for entry in entries(name)) if name in keys() else "free text"
            lines.append(f"| `{name}` | {question.help} | {choices} |")
    for name in keys():
        described = [entry for entry in entries(name) if entry.help]
        if described:
            column, rule = (" goes with |", "---|") if any(entry.goes_with for entry in described) else ("", "")
            lines += ["", f"| `{name}` | |{column}", f"|---|---|{rule}"]
            for value, text, goes_with in described:
                lines.append(f"| `{value}` | {text} |" + (f" {goes_with or 'any'} |" if column else ""))
    return "\n".join(lines)


def put_into(file: Path, text: str, name: str = "choices") -> None:
    """Write a text between the two comments that mark its place in a file."""
    begin, end = f"<!-- {name} -->\n", f"<!-- end of {name} -->"
    before, found, rest = file.read_text(encoding="utf-8").partition(begin)
    _, ends, after = rest.partition(end)
    if not found or not ends:
        raise AnswerError(f"{file} has no place for the tables: it takes the lines {begin.strip()} and {end}")
    file.write_text(f"{before}{begin}{text}\n{end}{after}", encoding="utf-8")
