"""What an entry's own generics stand for: values that are given, checked; else themselves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from linnet.diagnostics.escape import escape_text
from linnet.dims import Dim, Symbol
from linnet.ir import Function, Generic
from linnet.passes.generics import BindError, check_where, collected, concrete
from linnet.types import (
    DType,
    GenericArg,
    PackVar,
    Subst,
)

# No axis is longer, nor any count that runs along one.
LARGEST = 2**31 - 1


def check_names(
    functions: Sequence[Function], block: tuple[GenericArg, ...], sizes: Mapping[str, Any]
) -> None:
    """Raises `BindError` for names that none of the entries has as a generic of its own, after
    those that its block's arguments are for."""
    if not isinstance(sizes, Mapping):
        raise BindError(f"sizes come as a dict of values by name, not {_shown(sizes)}")
    own = {g.name for function in functions for g in function.generics[len(block) :]}
    unknown = [name for name in sizes if name not in own]
    if unknown:
        entries = ", ".join(f"`{function.short_name}`" for function in functions)
        known = ", ".join(f"`{name}`" for name in sorted(own)) or "none"
        named = ", ".join(_shown(name) for name in unknown)
        raise BindError(f"{entries} has no generic of its own called {named}; it has {known}")


def entry_arguments(
    function: Function, given: tuple[GenericArg, ...], sizes: Mapping[str, Any]
) -> tuple[GenericArg, ...]:
    """The arguments of an entry: `given` for its block's generics, then for each of its own what
    `sizes` says, or for a Dim itself. Raises `BindError` with every value that is none, else with
    each `where` clause that the values break."""
    pairs: dict[Any, GenericArg] = {
        g.var: arg for g, arg in zip(function.generics, given, strict=False)
    }
    own = function.generics[len(given) :]
    args = (*given, *collected(own, lambda g: _argument(function, g, sizes, pairs), pairs))
    _check_where(function, args, Subst.of(pairs))
    return args


def _argument(
    function: Function, generic: Generic, sizes: Mapping[str, Any], before: Mapping[Any, GenericArg]
) -> GenericArg:
    if generic.name in sizes:
        return concrete(function.short_name, generic, sizes[generic.name], _shown, LARGEST)
    if isinstance(generic.var, Symbol):
        return Dim.of(generic.var)
    if generic.default is not None:
        return Subst.of(dict(before)).arg(generic.default)
    what = "list of sizes" if isinstance(generic.var, PackVar) else "dtype"
    raise BindError(
        f"the entry `{function.short_name}` needs a {what} for its generic `{generic.name}`"
    )


def _check_where(function: Function, args: tuple[GenericArg, ...], subst: Subst) -> None:
    """Clauses between numbers have to hold; others wait for the sizes of a call."""
    known = []
    for clause in function.where:
        made = subst.relation(clause)
        if made.left.constant is not None and made.right.constant is not None:
            known.append(clause)
    check_where(function.short_name, function.generics, args, tuple(known), subst)


def _shown(value: Any) -> str:
    text = value.value if isinstance(value, DType) else value if isinstance(value, str) else None
    return escape_text(repr(value), 60) if text is None else f"`{escape_text(text, 60)}`"
