"""The tree as text, and whether two trees are the same program."""

from __future__ import annotations

from dataclasses import fields, is_dataclass

from linnet.diagnostics.span import Span
from linnet.syntax.tree import Module

_UNPLACED = frozenset(("span", "op_span", "default_span"))


_names: dict[type, tuple[str, ...]] = {}


def _field_names(node: object) -> tuple[str, ...]:
    kind = type(node)
    if kind not in _names:
        known = fields(node) if is_dataclass(node) else ()
        _names[kind] = tuple(field.name for field in known if field.name not in _UNPLACED)
    return _names[kind]


def dump_tree(module: Module) -> str:
    """One line a node, children indented under it, with line and column of each node's start."""
    lines: list[str] = []
    # An explicit stack: `label` is the name of the parent's field.
    stack: list[tuple[int, str, object]] = [(0, "", module)]
    while stack:
        depth, label, node = stack.pop()
        head = "  " * depth + (f"{label}: " if label else "")
        if isinstance(node, tuple):
            lines.append(head + ("[]" if not node else f"[{len(node)}]"))
            stack.extend((depth + 1, "", child) for child in reversed(node))
            continue
        names = _field_names(node)
        if not names and not is_dataclass(node):
            lines.append(head + repr(node))
            continue
        plain, children = [], []
        for name in names:
            value = getattr(node, name)
            if isinstance(value, tuple) or is_dataclass(value):
                children.append((depth + 1, name, value))
            elif value is not None:
                plain.append(f"{name}={value!r}")
        span = getattr(node, "span", None)
        place = ""
        if isinstance(span, Span):
            line, column = span.file.position(span.start)
            place = f" @{line}:{column}"
        lines.append(" ".join([head + type(node).__name__, *plain]) + place)
        stack.extend(reversed(children))
    return "\n".join(lines) + "\n"


def same_tree(a: object, b: object) -> bool:
    """Whether two trees, or parts of trees, are equal but for their places."""
    stack = [(a, b)]
    while stack:
        left, right = stack.pop()
        if type(left) is not type(right):
            return False
        if isinstance(left, tuple):
            assert isinstance(right, tuple)
            if len(left) != len(right):
                return False
            stack.extend(zip(left, right, strict=True))
            continue
        names = _field_names(left)
        if not names and not is_dataclass(left):
            if left != right and not (left != left and right != right):
                return False
            continue
        # A span given where none stands is a difference: it says that a default was written.
        if (getattr(left, "default_span", None) is None) != (
            getattr(right, "default_span", None) is None
        ):
            return False
        stack.extend((getattr(left, name), getattr(right, name)) for name in names)
    return True
