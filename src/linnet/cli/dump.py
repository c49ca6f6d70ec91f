"""Tokens as text, tokens and syntax trees as JSON."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass

from linnet.diagnostics.escape import escape_text
from linnet.diagnostics.span import Span
from linnet.syntax.tokens import Token

_MAX_VALUE = 200


def token_lines(tokens: tuple[Token, ...]) -> Iterator[str]:
    """`line:column kind text`, with comments on lines of their own."""
    for token in tokens:
        for comment in token.comments:
            yield f"{_place(comment.span):>8} comment {escape_text(comment.text, _MAX_VALUE)}"
        text = "" if token.kind == token.text else " " + escape_text(token.text, _MAX_VALUE)
        yield f"{_place(token.span):>8} {token.kind}{text}".rstrip()


def token_json(tokens: tuple[Token, ...]) -> list[dict[str, object]]:
    """One object a token: kind, text, start and end offsets in code points, comments."""
    return [
        {
            "kind": token.kind,
            "text": token.text,
            "start": token.span.start,
            "end": token.span.end,
            "comments": [comment.text for comment in token.comments],
        }
        for token in tokens
    ]


def tree_json(root: object) -> object:
    """The tree as nested objects, `node` naming the kind; spans as `[start, end]`."""
    top: list[object] = [None]
    # Where each value goes, and the value: no recursion, so the depth of a tree does not matter.
    waiting: list[tuple[list[object], int, object]] = [(top, 0, root)]
    while waiting:
        home, at, value = waiting.pop()
        if isinstance(value, Span):
            home[at] = [value.start, value.end]
        elif isinstance(value, tuple):
            items: list[object] = [None] * len(value)
            home[at] = items
            waiting += [(items, i, each) for i, each in enumerate(value)]
        elif isinstance(value, _Fields):
            home[at] = dict(zip(value.names, value.values, strict=True))
        elif dataclasses.is_dataclass(value):
            names = [field.name for field in dataclasses.fields(value)]
            fields = _Fields(["node", *names], [type(value).__name__] + [None] * len(names))
            waiting.append((home, at, fields))  # taken up again when its values are made
            waiting += [(fields.values, i, getattr(value, n)) for i, n in enumerate(names, 1)]
        else:
            home[at] = value
    return top[0]


@dataclass(frozen=True, slots=True)
class _Fields:
    """A node's object while the values of its fields are being made."""

    names: list[str]
    values: list[object]


def _place(span: Span) -> str:
    line, column = span.file.position(span.start)
    return f"{line}:{column}"
