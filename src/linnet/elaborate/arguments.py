"""Matching a call's arguments with parameter names."""

from __future__ import annotations

from collections.abc import Sequence

from linnet.elaborate.context import Context
from linnet.elaborate.reporter import did_you_mean
from linnet.syntax import tree


def match_arguments(
    ctx: Context, name: str, params: Sequence[str], required: int, call: tree.Call
) -> dict[str, tree.Argument] | None:
    """Arguments by parameter, positional ones first; None after reporting E2102.

    The first `required` parameters must be given.
    """
    found: dict[str, tree.Argument] = {}
    broken = False
    named = False
    for index, argument in enumerate(call.args):
        if argument.name is None:
            if named:
                ctx.report(
                    "E2102", "a positional argument cannot follow a named one", argument.span
                )
                return None
            if index >= len(params):
                ctx.report(
                    "E2102",
                    f"`{name}` takes {_count(len(params))}, {len(call.args)} are given",
                    argument.span,
                    notes=[f"its parameters are {', '.join(params)}"] if params else (),
                )
                return None
            found[params[index]] = argument
            continue
        named = True
        key = argument.name.text
        if key not in params:
            ctx.report(
                "E2102",
                f"`{name}` has no parameter `{key}`",
                argument.name.span,
                help=did_you_mean(key, params),
            )
            broken = True
        elif key in found:
            ctx.report("E2102", f"`{key}` is given twice", argument.span)
            broken = True
        else:
            found[key] = argument
    missing = [param for param in params[:required] if param not in found]
    if missing and not broken:
        listed = ", ".join(f"`{param}`" for param in missing)
        ctx.report("E2102", f"`{name}` needs {listed}", call.span)
        return None
    return None if broken else found


def _count(count: int) -> str:
    return f"{count} argument{'' if count == 1 else 's'}"
