"""Jinja as Copier sets it up for this template, with everything compiled once."""

from collections.abc import Mapping
from functools import cache
from typing import Any

import jinja2
from jinja2.sandbox import SandboxedEnvironment

from plainloop.catalogue import ROOT, settings


@cache
def environment() -> SandboxedEnvironment:
    """The environment of copier.yml's `_envops`; its loader starts at the template's root."""
    undefined = {"jinja2.StrictUndefined": jinja2.StrictUndefined, "jinja2.Undefined": jinja2.Undefined}
    options = {"keep_trailing_newline": True, "undefined": "jinja2.Undefined", **settings()["envops"]}
    return SandboxedEnvironment(
        loader=jinja2.FileSystemLoader(ROOT),
        extensions=["jinja2_ansible_filters.AnsibleCoreFiltersExtension"],
        auto_reload=False,
        cache_size=-1,
        **{**options, "undefined": undefined[options["undefined"]]},
    )


@cache
def _compiled(text: str) -> jinja2.Template:
    return environment().from_string(text)


def render_string(value: Any, context: Mapping[str, Any]) -> Any:
    """A value of copier.yml with its tags filled in; what is no template comes back as it is."""
    if not isinstance(value, str) or "{" not in value:
        return value
    return _compiled(value).render(context)


def render_file(path: str, context: Mapping[str, Any]) -> str:
    """A template file, named from the template's root."""
    return environment().get_template(path).render(context)
