"""Text made to exhaust the stack, the memory or the patience of whoever reads it."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import fields, is_dataclass

import pytest
from tests.patience import patient

from linnet.diagnostics.span import SourceFile
from linnet.syntax import format_module, parse_module, tree

N = 10_000
STATEMENTS = {
    "parentheses": "let x = " + "(" * N,
    "closed parentheses": "let x = " + "(" * N + "a" + ")" * N,
    "sum": "let x = a" + " + a" * N,
    "mixed operators": "let x = a" + " || a && b == c" * N,
    "comparisons": "let x = a" + " < b" * N,
    "angles": "let x = " + "a<" * N + "b" + ">" * N + "(x)",
    "subscripts": "let x = x" + "[0]" * N,
    "nested subscripts": "let x = " + "x[" * N + "0" + "]" * N,
    "nested slices": "let x = " + "x[a:" * N,
    "calls": "let x = x" + "(a)" * N,
    "nested calls": "let x = " + "f(" * N + ")" * N,
    "nested generic calls": "let x = " + "f<A>(" * N + ")" * N,
    "fields": "let x = a" + ".b" * N,
    "else if": "let x = if a { b } " + "else if a { b } " * N + "else { c }",
    "if": "let x = " + "if " * N,
    "nested if": "let x = " + "if a { " * N,
    "match": "let x = " + "match a { _ => " * N + "b" + "}" * N,
    "unary": "let x = " + "-" * N + "a",
    "grouped unary": "let x = -" + "(-" * N,
    "some": "let x = " + "some(" * N + "a" + ")" * N,
    "shapes": "let x = " + "[*s, " * N,
    "reductions": "let x = " + "sum[i] " * N + "x",
    "generic types": "let x: " + "F<" * N + "A" + ">" * N + " = 1",
    "tuple types": "let x: " + "(A, " * N + "B" + ")" * N + " = 1",
    "array types": "let x: " + "[" * N,
    "argument tuples": "let x = f<" + "(a, " * N,
    "argument groups": "let x = f<" + "(" * N + "a" + ")" * N + ">(x)",
    "patterns": "let " + "(" * N + "a",
    "comments": "/*" * N + "*/" * N,
    "open comments": "/*" * N,
    "loops": "while a { " * N,
    "closed loops": "while a { " * N + "}" * N,
    "blocks": "} " + "block A { " * N,
    "strings": '"' * (2 * N),
    "question marks": "let x: T" + "?" * N + " = 1",
}
VALID = {"comments"}


def body(statement: str) -> str:
    return f"module m\nfn f() {{\n{statement}\n}}\n"


@pytest.mark.parametrize("name", STATEMENTS)
def test_ten_thousand_deep(name: str) -> None:
    file = SourceFile("t", body(STATEMENTS[name]))
    with patient():
        _, problems = parse_module(file)
        formatted, _ = format_module(file)
    assert (not problems) == (formatted is not None) == (name in VALID)
    # One mistake, and at most the brace that is missing at the end.
    assert len(problems) <= 2


@pytest.mark.parametrize(
    "text",
    [
        " " * 1_000_000,
        "\n" * 1_000_000,
        "module m" + ".a" * N,
        "module m\nfn f() where " + "a < b, " * N,
        "module m\nblock B<" + "A: Dim = " * N,
        "module m\nconst A = " + "9" * 100_000,
        "module m\nconst A = 1." + "9" * 100_000,
        'module m\nconst A = "' + "\\" * 100_000,
        "module m\nconst A = " + "a" * 1_000_000,
        "module m\n" + "// a\n" * 100_000,
        "module m\nfn f() {" + "x = a < b\n" * N + "}",
        "module m\nfn f() {" + "let " * 400_000,
        "module m\n" + "fn " * 400_000,
        "module m\nconst A = f(" + "+, " * 200_000 + ")",
    ],
    ids=lambda text: text[:25].strip() or "space",
)
def test_long(text: str) -> None:
    with patient():
        format_module(SourceFile("t", text))


def test_too_large() -> None:
    module, problems = parse_module(SourceFile("t", "module m\n" + "a" * 5_000_000))
    assert [problem.code for problem in problems] == ["E1101"] and module.items == ()
    _, problems = parse_module(SourceFile("t", "module m\nfn f() {" + "(" * 3_000_000))
    assert len(problems) == 2 and "tokens" in problems[1].message


def test_trees_stay_low() -> None:
    """The highest tree that is accepted can be walked with four frames a level."""
    level = "f(" * 90 + "a" + ")" * 90 + " + a" * 50
    module, problems = parse_module(SourceFile("t", body(f"let x = {level}")))
    assert problems == ()
    assert 140 <= height(module) <= 150
    assert format_module(SourceFile("t", body(f"let x = {level}")))[0] is not None


def height(node: object) -> int:
    """Expressions on the longest way down."""
    children: Iterator[object]
    if isinstance(node, tuple):
        return max(map(height, node), default=0)
    if not is_dataclass(node):
        return 0
    children = (getattr(node, field.name) for field in fields(node) if "span" not in field.name)
    return isinstance(node, tree.Expr) + max(map(height, children), default=0)


def test_deep_caller_has_room() -> None:
    """Nesting at the limit is read and formatted with 200 frames of the stack in use."""

    def within(frames: int, text: str) -> None:
        if frames:
            within(frames - 1, text)
        else:
            assert format_module(SourceFile("t", text))[1] == ()

    used = 0
    frame = sys._getframe()
    while frame.f_back is not None:
        frame, used = frame.f_back, used + 1
    room = max(0, 200 - used)
    for opening, closing in (("f(", ")"), ("(", ")"), ("x[", "]"), ("[", "]"), ("f<A>(", ")")):
        within(room, body("let x = " + opening * 95 + "a" + closing * 95))
    within(room, body("let x = " + "x[a:" * 72 + "a" + "]" * 72))
    within(room, body("let x: " + "F<" * 95 + "A" + ">" * 95 + " = a"))
