"""What the template says about itself: its settings, its questions, and the catalogue of choices."""

from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parents[2]
"""The template's root, where copier.yml lies."""


class _Loader(yaml.SafeLoader):
    """YAML with Copier's `!include FILE`."""

    def include(self, node: yaml.ScalarNode) -> list[dict[str, Any]]:
        return list(_documents(ROOT / self.construct_scalar(node)))


_Loader.add_constructor("!include", _Loader.include)


def _documents(path: Path) -> Iterator[dict[str, Any]]:
    """The mappings in a YAML file, those of included files in their place."""
    for document in yaml.load_all(path.read_text(encoding="utf-8"), Loader=_Loader):
        yield from document if isinstance(document, list) else [document]


@cache
def _copier_yml() -> dict[str, Any]:
    """copier.yml as Copier reads it: later documents win, but exclusions add up."""
    merged: dict[str, Any] = {}
    for document in _documents(ROOT / "copier.yml"):
        exclude = [*merged.get("_exclude", []), *document.get("_exclude", [])]
        merged |= {**document, "_exclude": exclude}
    return merged


def settings() -> dict[str, Any]:
    """Copier's settings of this template, without their leading underscore."""
    return {key[1:]: value for key, value in _copier_yml().items() if key.startswith("_")}


def questions() -> dict[str, dict[str, Any]]:
    """The questions in the order asked, computed ones among them."""
    return {key: value for key, value in _copier_yml().items() if not key.startswith("_")}


@cache
def catalogue() -> dict[str, Any]:
    """Every choice and its facts."""
    return yaml.safe_load((ROOT / "template" / "catalogue.yml").read_text(encoding="utf-8"))
