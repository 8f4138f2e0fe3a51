"""A whole project in memory, as `copier copy` would write it."""

from collections.abc import Mapping
from functools import cache
from pathlib import PurePosixPath
from typing import Any

from pathspec import PathSpec

from plainloop.catalogue import ROOT, settings
from plainloop.jinja import render_file, render_string
from plainloop.questionnaire import NOTHING, ask

ANSWERS_FILE = ".copier-answers.yml"


@cache
def _sources() -> tuple[str, ...]:
    """The files of the generated project's template, named from the template's root."""
    folder = ROOT / settings()["subdirectory"]
    return tuple(sorted(path.relative_to(ROOT).as_posix() for path in folder.rglob("*") if path.is_file()))


@cache
def _destinations() -> dict[str, str]:
    """Where each source goes. No path depends on an answer, so this is known once for all."""
    conf = {"_copier_conf": {"answers_file": ANSWERS_FILE}}
    relative = {source: PurePosixPath(source).relative_to(settings()["subdirectory"]) for source in _sources()}
    suffix = settings()["templates_suffix"]
    return {source: render_string(str(path).removesuffix(suffix), conf) for source, path in relative.items()}


@cache
def _kept(patterns: str) -> tuple[tuple[str, str], ...]:
    """Sources and destinations that no pattern excludes; the patterns are one a line."""
    excluded = PathSpec.from_lines("gitignore", patterns.splitlines())
    return tuple((source, path) for source, path in _destinations().items() if not excluded.match_file(path))


@cache
def _text(source: str) -> str:
    return (ROOT / source).read_text(encoding="utf-8")


def render(
    answers: Mapping[str, Any] = NOTHING,
    last: Mapping[str, Any] = NOTHING,
    src_path: str | None = None,
    commit: str | None = None,
) -> dict[str, str]:
    """Each file of the project by its path.

    `src_path` and `commit` say in the answers file where the template came from.
    """
    context, recorded = ask(answers, last)
    origin = {"_commit": commit, "_src_path": src_path}
    context["_copier_answers"] = {key: value for key, value in origin.items() if value is not None} | recorded
    context["_copier_conf"] = {"answers_file": ANSWERS_FILE}
    patterns = "\n".join(render_string(pattern, context) for pattern in settings()["exclude"])
    suffix = settings()["templates_suffix"]
    return {
        path: render_file(source, context) if source.endswith(suffix) else _text(source)
        for source, path in _kept(patterns)
    }
