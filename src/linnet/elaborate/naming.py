"""The prelude, and putting names into scopes."""

from __future__ import annotations

from linnet.elaborate.entities import (
    BrokenEntity,
    DTypeEntity,
    Entity,
    PreludeEntity,
    Scope,
    declared_span,
)
from linnet.elaborate.reporter import Reporter
from linnet.syntax import tree
from linnet.types import DTYPES

FLOAT_FUNCTIONS = ("exp", "log", "sqrt", "rsqrt", "sin", "cos", "tanh", "erf", "floor")
PRELUDE_FUNCTIONS = frozenset(
    (
        *FLOAT_FUNCTIONS,
        "cast",
        "abs",
        "min",
        "max",
        "shl",
        "shr",
        "select",
        "reshape",
        "broadcast_to",
        "permute",
        "concat",
        "iota",
        "fill",
        "cumsum",
    )
)
PRELUDE_NAMES = PRELUDE_FUNCTIONS | frozenset(DTYPES) | {"Tensor"}


def _prelude_scope() -> Scope:
    """The outermost scope: dtypes and prelude functions."""
    scope = Scope(None)
    for name, dtype in DTYPES.items():
        scope.names[name] = DTypeEntity(dtype)
    for name in sorted(PRELUDE_FUNCTIONS):
        scope.names[name] = PreludeEntity(name)
    return scope


PRELUDE = _prelude_scope()


def check_not_prelude(reporter: Reporter, name: tree.Name) -> bool:
    """Whether a declaration may have this name; reports E1207 when not."""
    if name.text not in PRELUDE_NAMES:
        return True
    reporter.report(
        "E1207",
        f"`{name.text}` is a name of the prelude and cannot be declared",
        name.span,
        help="choose another name",
    )
    return False


def declare(reporter: Reporter, scope: Scope, name: tree.Name, entity: Entity, what: str) -> None:
    """Adds a name that must be new in its scope; `_` names nothing.

    Reports E1204 for two items or imports of one name, E1205 for two of anything else.
    """
    if name.text == "_" or not check_not_prelude(reporter, name):
        return
    earlier = scope.names.get(name.text)
    if earlier is not None and not isinstance(earlier, BrokenEntity):
        reporter.report(
            "E1204" if what in ("items", "names") else "E1205",
            f"there are two {what} named `{name.text}`",
            name.span,
            label="declared again",
            related=[(declared_span(earlier), "first declared here")],
        )
        return
    scope.names[name.text] = entity
