"""Edits of Python source that keep all else as it is, down to the comments.

A place is named by what stands there, on one line, in which `…` stands for anything: `optimizer.zero_grad()`,
`scheduler.step(…)`, and for a block its first line without the colon, `with torch.autocast(…)`.
"""

import re
from collections.abc import Callable, Sequence
from typing import Any

import libcst

Statement = libcst.SimpleStatementLine | libcst.BaseCompoundStatement
PARTS = libcst.DictElement | libcst.Arg | libcst.Element | libcst.Param | libcst.Decorator
"""What stands between commas, or above a function."""


class PlaceError(Exception):
    """Nothing stands there that looks like this: the template has changed, and the edit must follow."""


class Code:
    """A file's source, edited in place. Every edit raises PlaceError if there is nothing to edit.

    `inside` limits it to the blocks with that first line, or to the statements that look like that.
    """

    def __init__(self, text: str) -> None:
        self.module = libcst.parse_module(text)

    @property
    def text(self) -> str:
        """The source as it now stands."""
        return self.module.code

    def remove(self, place: str, inside: str = "") -> None:
        """Take statements out."""
        self._edit(place, inside, lambda _: libcst.RemoveFromParent(), Statement)

    def drop(self, place: str, inside: str = "") -> None:
        """Take out an argument, a decorator, or an element of a list or a dictionary."""
        self._edit(place, inside, lambda _: libcst.RemoveFromParent(), PARTS)

    def replace(self, place: str, new: str, inside: str = "") -> None:
        """Put an expression in place of expressions; `…` in it stands for what was there."""

        def instead(found: libcst.BaseExpression) -> libcst.BaseExpression:
            old = self.module.code_for_node(found.with_changes(lpar=[], rpar=[]))
            expression = libcst.parse_expression(new.replace("…", old))
            return expression.with_changes(lpar=found.lpar, rpar=found.rpar) if found.lpar else expression

        self._edit(place, inside, instead, libcst.BaseExpression)

    def rewrite(self, place: str, *new: str, inside: str = "") -> None:
        """Put statements in place of a statement."""
        statements = [libcst.parse_statement(text) for text in new]
        self._edit(place, inside, lambda _: libcst.FlattenSentinel(statements), Statement)

    def add(self, text: str, *, before: str = "", after: str = "", inside: str = "") -> None:
        """Put a statement before or after another."""
        self._put([libcst.parse_statement(text)], before, after, inside)

    def move(
        self, place: str, *, before: str = "", after: str = "", into: str = "", out_of: str = "", inside: str = ""
    ) -> None:
        """Take a statement from where it stands (`out_of` a block), and put it elsewhere; `into` is a block's end."""
        taken: list[Statement] = []

        def take(statement: Statement) -> libcst.RemovalSentinel:
            taken.append(statement)
            return libcst.RemoveFromParent()

        self._edit(place, out_of, take, Statement)
        if into:
            self._edit(into, inside, lambda block: appended(block, taken), libcst.BaseCompoundStatement)
        else:
            self._put(taken, before, after, inside)

    def unwrap(self, block: str, inside: str = "") -> None:
        """Leave of a block what stands in it."""
        self._edit(block, inside, lambda found: libcst.FlattenSentinel(found.body.body), libcst.BaseCompoundStatement)

    def _put(self, statements: Sequence[Statement], before: str, after: str, inside: str) -> None:
        def around(statement: Statement) -> libcst.FlattenSentinel:
            return libcst.FlattenSentinel([*statements, statement] if before else [statement, *statements])

        self._edit(before or after, inside, around, Statement)

    def _edit(self, place: str, inside: str, change: Callable[[Any], Any], kind: Any) -> None:
        editor = Editor(self.module, place, inside, change, kind)
        self.module = self.module.visit(editor)
        if not editor.found:
            raise PlaceError(f"{place!r}" + (f" inside {inside!r}" if inside else ""))


class Editor(libcst.CSTTransformer):
    """Changes what is found."""

    def __init__(self, module: libcst.Module, place: str, inside: str, change: Callable[[Any], Any], kind: Any) -> None:
        super().__init__()
        self.module, self.change, self.kind = module, change, kind
        self.place, self.inside = pattern(place), pattern(inside)
        self.blocks = 0 if inside else 1
        self.found = 0

    def on_visit(self, node: libcst.CSTNode) -> bool:
        if isinstance(node, Statement) and self.inside.fullmatch(line(self.module, node)):
            self.blocks += 1
        return True

    def on_leave(self, original: libcst.CSTNode, updated: libcst.CSTNode) -> Any:
        if isinstance(original, Statement) and self.inside.fullmatch(line(self.module, original)):
            self.blocks -= 1
        if self.blocks and isinstance(original, self.kind) and self.place.fullmatch(line(self.module, original)):
            self.found += 1
            return self.change(updated)
        return without_a_last_comma(original, updated)


def without_a_last_comma(original: libcst.CSTNode, updated: Any) -> Any:
    """Without the comma that stood before a last part that has been taken out."""
    for name in ("args", "elements", "params"):
        before, after = getattr(original, name, ()), getattr(updated, name, ())
        if isinstance(after, Sequence) and after and len(after) < len(before):
            last = after[-1].with_changes(comma=before[-1].comma)
            updated = updated.with_changes(**{name: [*after[:-1], last]})
    return updated


def pattern(place: str) -> re.Pattern[str]:
    """What a place looks like."""
    return re.compile(".*".join(map(re.escape, place.split("…"))), re.DOTALL)


def line(module: libcst.Module, node: libcst.CSTNode) -> str:
    """A statement or an expression on one line; of a block, the first line without its colon."""
    if isinstance(node, libcst.SimpleStatementLine):
        text = "; ".join(module.code_for_node(part) for part in node.body)
    elif isinstance(node, libcst.Try):
        return "try"
    elif isinstance(node, libcst.BaseCompoundStatement):
        # Of its own lines alone: what stands above it are comments and blank lines.
        bare = node.with_changes(body=libcst.IndentedBlock(body=[]), leading_lines=[])
        for name in ("orelse", "finalbody"):
            bare = bare.with_changes(**{name: None}) if hasattr(bare, name) else bare
        if isinstance(bare, libcst.FunctionDef | libcst.ClassDef):
            bare = bare.with_changes(decorators=[], lines_after_decorators=[])
        text = module.code_for_node(bare).rpartition(":")[0]
    elif isinstance(node, libcst.Arg | libcst.DictElement | libcst.Element | libcst.Param):
        text = module.code_for_node(node.with_changes(comma=libcst.MaybeSentinel.DEFAULT))
    else:
        # Without its parentheses, which are all that there is of an empty tuple.
        bare = isinstance(node, libcst.BaseExpression) and not (isinstance(node, libcst.Tuple) and not node.elements)
        text = module.code_for_node(node.with_changes(lpar=[], rpar=[]) if bare else node)
    return re.sub(r"(?<=[(\[{]) | (?=[)\]}])", "", " ".join(text.split()))


def appended(block: Any, statements: Sequence[Statement]) -> Any:
    """A block with more statements at its end."""
    return block.with_changes(body=block.body.with_changes(body=[*block.body.body, *statements]))
