"""Whether an expression uses an index of the formula it stands in."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, is_dataclass

from linnet.diagnostics import Span
from linnet.elaborate.context import Context
from linnet.elaborate.entities import IndexEntity
from linnet.syntax import tree

_ADVICE = {
    tree.If: ("an `if`", "choose element by element with `select(cond, a, b)`"),
    tree.Match: ("a `match`", "match before the formula and use its result in it"),
    tree.Tuple: ("a tuple", "give each part a formula of its own"),
    tree.SomeExpr: ("`some(...)`", "wrap the finished tensor"),
    tree.Call: (
        "a call of a function that takes whole values",
        "call it on the whole tensor, before the formula or on its result",
    ),
}


def index_free(ctx: Context, node: tree.Expr) -> bool:
    """Whether no index stands in `node`; reports E3104 and what to write instead when one does."""
    for name in _names(node):
        entity = ctx.scope.lookup(name.text)
        if isinstance(entity, IndexEntity):
            what, advice = _ADVICE.get(type(node), ("this", "move it out of the formula"))
            ctx.report(
                "E3104",
                f"{what} cannot use the index `{name.text}`",
                node.span,
                related=[(name.span, "the index")],
                help=advice,
            )
            return False
    return True


def _names(node: object) -> Iterator[tree.Name]:
    """The bare names in an expression."""
    if isinstance(node, tree.NameExpr):
        yield node.name
    elif isinstance(node, tuple):
        for item in node:
            yield from _names(item)
    elif is_dataclass(node) and not isinstance(node, Span | tree.Name):
        for field in fields(node):
            yield from _names(getattr(node, field.name))
