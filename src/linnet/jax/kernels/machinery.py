"""What generated modules need around their arithmetic."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from jax import lax


def put(tree: Any, value: Any, step: Any, *rest: Any) -> Any:
    """`tree` with `value` at the end of the steps, names of fields or numbers"""
    if isinstance(step, str):
        inner = put(getattr(tree, step), value, *rest) if rest else value
        return tree._replace(**{step: inner})
    inner = put(tree[step], value, *rest) if rest else value
    return (*tree[:step], inner, *tree[step + 1 :])


def optional(value: Any, zeros: Any) -> Any:
    """a parameter that may be missing as the pair that an optional is"""
    return (False, zeros) if value is None else (True, value)


def match_optional(
    pair: Any, some: Callable[..., Any], none: Callable[..., Any], *state: Any
) -> Any:
    """some(value, *state) where there is one, else none(*state)"""
    present, value = pair
    if isinstance(present, bool):
        return some(value, *state) if present else none(*state)
    return lax.cond(present, some, lambda _, *rest: none(*rest), value, *state)
