"""`plainloop` on the command line. Exit status: 0, 1 for a mistake that one line explains, 2 for wrong usage."""

import argparse
import sys
from collections.abc import Iterator, Mapping
from difflib import unified_diff
from pathlib import Path
from typing import Any

import yaml

from plainloop import examples, tables
from plainloop.questionnaire import AnswerError
from plainloop.render import ANSWERS_FILE, render

COLOURS = {"+": "\033[32m", "-": "\033[31m", "@": "\033[36m"}


def key_value(text: str) -> tuple[str, str]:
    """An answer on the command line."""
    key, equals, value = text.partition("=")
    if not (key and equals):
        raise argparse.ArgumentTypeError(f"{text!r} is not KEY=VALUE")
    return key, value


def load_answers(project: Path) -> dict[str, Any]:
    """The answers that a project was generated from."""
    try:
        return yaml.safe_load((project / ANSWERS_FILE).read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise AnswerError(f"{project} has no {ANSWERS_FILE}: --project takes a generated project") from None


def project_diff(before: Mapping[str, str], after: Mapping[str, str]) -> Iterator[str]:
    """Unified diffs of all files of two renderings, a line each."""
    for path in sorted(before.keys() | after.keys()):
        old, new = (project.get(path, "").splitlines() for project in (before, after))
        names = (f"a/{path}" if path in before else "/dev/null", f"b/{path}" if path in after else "/dev/null")
        yield from unified_diff(old, new, *names, lineterm="")


def choices(arguments: argparse.Namespace) -> int:
    """The questions and what can be answered."""
    if arguments.markdown:
        tables.put_into(arguments.markdown, tables.markdown())
    else:
        print(tables.terminal())
    return 0


def diff(arguments: argparse.Namespace) -> int:
    """What another answer would change in the generated code."""
    last = load_answers(arguments.project) if arguments.project else {}
    origin = {"src_path": last.pop("_src_path", None), "commit": last.pop("_commit", None)}
    colours = COLOURS if sys.stdout.isatty() else {}
    for line in project_diff(render({}, last, **origin), render(dict(arguments.answers), last, **origin)):
        colour = colours.get(line[:1], "")
        print(f"{colour}{line}\033[0m" if colour else line)
    return 0


def write_examples(arguments: argparse.Namespace) -> int:
    """The committed examples: write them, or say which are not current."""
    if not arguments.check:
        examples.write_examples()
        return 0
    lines = examples.differences()
    for line in lines:
        print(f"{examples.FOLDER.name}/{line}")
    if lines:
        print(f"{len(lines)} files are not what the template writes now: run plainloop examples", file=sys.stderr)
    return 1 if lines else 0


def parser() -> argparse.ArgumentParser:
    """The commands and their flags."""
    top = argparse.ArgumentParser(prog="plainloop", description="Plain PyTorch training projects, from a few answers.")
    commands = top.add_subparsers(required=True, metavar="COMMAND")

    command = commands.add_parser("choices", help="show the questions and their choices")
    command.add_argument("--markdown", type=Path, metavar="FILE", help="put them as tables into this file")
    command.set_defaults(run=choices)

    command = commands.add_parser("diff", help="show what another answer changes in the code")
    command.add_argument("answers", nargs="+", type=key_value, metavar="KEY=VALUE")
    command.add_argument("--project", type=Path, help="start from this project's answers, not from the defaults")
    command.set_defaults(run=diff)

    command = commands.add_parser("examples", help="write the committed examples anew")
    command.add_argument("--check", action="store_true", help="only say what differs; exit status 1 if something does")
    command.set_defaults(run=write_examples)
    return top


def main() -> int:
    """Run one command."""
    arguments = parser().parse_args()
    try:
        return arguments.run(arguments)
    except AnswerError as error:
        print(f"plainloop: {error}", file=sys.stderr)
        return 1
    except BrokenPipeError:  # the reader, such as `head`, has seen enough
        sys.stderr.close()
        return 0
