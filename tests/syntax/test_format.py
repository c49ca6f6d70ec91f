"""The one style, construct by construct."""

from __future__ import annotations

from textwrap import indent

import pytest

from linnet.diagnostics.span import SourceFile
from linnet.syntax import format_module, parse_module, same_tree, tokens

LONG = "some_rather_long_name_for_a_value"

# (source statements, the formatted ones)
STATEMENTS = {
    "spaces": ("let   x=a+b*-c", "let x = a + b * -c"),
    "literals stay as written": (
        'let x = f(0xFF, 1_000, 1.50e-3, "a\\n")',
        'let x = f(0xFF, 1_000, 1.50e-3, "a\\n")',
    ),
    "parentheses stay": ("let x = ((a) + (b * c))", "let x = ((a) + (b * c))"),
    "slices": ("let x = y[... , a : b+1 : 2,: :2, *s,:]", "let x = y[..., a:b + 1:2, ::2, *s, :]"),
    "generics": ("let x = f < T , 2*N > ( y )", "let x = f<T, 2 * N>(y)"),
    "indexed": ("let y[* s,o]=sum < f32 > [i]x[*s,i]", "let y[*s, o] = sum<f32>[i] x[*s, i]"),
    "a list with a comma at its end": (
        "let x = f(a, b,)",
        "let x = f(\n    a,\n    b,\n)",
    ),
    "a list that fits": ("let x = f(\n    a,\n    b\n)", "let x = f(a, b)"),
    "a list that doesn't": (
        f"let x = f({LONG}, {LONG}, {LONG})",
        f"let x = f(\n    {LONG},\n    {LONG},\n    {LONG},\n)",
    ),
    "the last list of a chain breaks": (
        f"let x = a.f({LONG}).g({LONG}, {LONG})",
        f"let x = a.f({LONG}).g(\n    {LONG},\n    {LONG},\n)",
    ),
    "a long sum goes to the next line": (
        f"let {LONG} = {LONG} + f({LONG})",
        f"let {LONG} =\n    {LONG} + f({LONG})",
    ),
    "a longer one breaks after its operators": (
        f"let x = {LONG} + {LONG} * 2 - {LONG}",
        f"let x =\n    {LONG} +\n        {LONG} * 2 -\n        {LONG}",
    ),
    "a returned one breaks in place": (
        f"return {LONG} && {LONG} && {LONG}",
        f"return {LONG} &&\n    {LONG} &&\n    {LONG}",
    ),
    "if": ("let x = if a{b}else if c{d}else{e}", "let x = if a { b } else if c { d } else { e }"),
    "a long if": (
        f"let x = if {LONG} {{ {LONG} }} else {{ {LONG} }}",
        f"let x = if {LONG} {{\n    {LONG}\n}} else {{\n    {LONG}\n}}",
    ),
    "match": (
        "let x = match a { some(b) => b none => c }",
        "let x = match a {\n    some(b) => b,\n    none => c,\n}",
    ),
    "static loops": (
        "static for x in xs { y = x } for i in 0..n {}",
        "static for x in xs {\n    y = x\n}\nfor i in 0..n {}",
    ),
    "loops": ("while a { b = !b return }", "while a {\n    b = !b\n    return\n}"),
    "a loop with a value": (
        "let ys = for t in 0 .. T { yield t }",
        "let ys = for t in 0..T {\n    yield t\n}",
    ),
    "one blank line at most": ("\n\n\nlet x = a\n\n\n\nlet y = b\n\n", "let x = a\n\nlet y = b"),
    "types": (
        "let x : Tensor[B,*S ; T]? = (a , b)",
        "let x: Tensor[B, *S; T]? = (a, b)",
    ),
}

COMMENTS = {
    "behind a statement": ("let x = a   // note  \nlet y = b", "let x = a // note\nlet y = b"),
    "before a statement": (
        "// one\n\n\n   // two\nlet x = a\n// last",
        "// one\n\n// two\nlet x = a\n// last",
    ),
    "in the line": ("let x = f(/* a */ 1, b /* c */)", "let x = f(/* a */ 1, b /* c */)"),
    "in a list": (
        "let x = f(a, // first\n  // own\n  b // second\n)",
        "let x = f(\n    a, // first\n    // own\n    b, // second\n)",
    ),
    "after an operator": ("let x = a + // why\nb", "let x =\n    a + // why\n        b"),
    "before an operator": ("let x = a // why\n+ b", "let x =\n    a + // why\n        b"),
    "after the equals sign": ("let x = // why\na", "let x = // why\n    a"),
    "before an arm": (
        "let x = match a { // all\n none => 0, // no\n // some\n some(b) => b }",
        "let x = match a { // all\n    none => 0, // no\n    // some\n    some(b) => b,\n}",
    ),
    "in an empty list": ("let x = f(// nothing\n)", "let x = f( // nothing\n)"),
    "a block over lines": ("/* a\n     b */\nlet x = a", "/* a\n     b */\nlet x = a"),
    "at odd places": ("let /* a */ x // b\n= c", "let /* a */ x // b\n    = c"),
}


def body(text: str) -> str:
    return f"module m\n\nfn f() {{\n{text}\n}}\n"


@pytest.mark.parametrize("name", [*STATEMENTS, *COMMENTS])
def test_statement(name: str) -> None:
    source, expected = (STATEMENTS | COMMENTS)[name]
    lines = indent(expected, "    ")
    if "\n     b */" in expected:
        lines = lines.replace("\n         b */", "\n     b */")
    assert formatted(body(source)) == body(lines)
    assert formatted(body(lines)) == body(lines)


def formatted(text: str) -> str:
    result, problems = format_module(SourceFile("t", text))
    assert problems == () and result is not None
    return result


MODULE = """\
// About this file.
module m

use std.a::{b, c as d}
use crate.e
use std.a.long_module_name::{
    first_long_imported_name,
    second_long_imported_name,
    third_long_imported_name,
}

/// The documentation.
pub const A: i64 = 1
const B = 2

type Pair = (f32, f32)

struct Both {
    left: f32,
    right: Tensor[A; f32], // note
}

enum Kind { Small, Large }

// Before the block.
pub block Model<H: Dim, *S: Shape, T: Float = bf16> {
    param weight: Tensor[H; T]
    param bias: Tensor[H; T]? = none

    // Before the state.
    state seen: Tensor[H; T]

    pub fn one(x: Tensor[H; T]) -> Tensor[H; T]
    where H % 2 == 0 {
        return x
    }

    fn two<B: Dim>(
        first_parameter: Tensor[B, H; T],
        second_parameter: Tensor[B, H; T],
        third: i32 = 3,
    ) -> (Tensor[B, H; T], Tensor[B, H; T])
    where
        B > 0, // why
        H > 0
    {
        return (first_parameter, second_parameter)
    }
}

op scale(x: f32) -> f32 {
    return x
} grad(y, dy) {
    return dy
}

block Empty {}
"""


def test_module() -> None:
    assert formatted(MODULE) == MODULE
    squeezed = "\n".join(line.strip() for line in MODULE.split("\n"))
    assert formatted(squeezed) == MODULE
    # Blank lines around functions and the like come by themselves.
    small = "pub const A: i64 = 1\nconst B = 2\n"
    without = squeezed.replace("\n\n", "\n").replace(small, small + "\n")
    assert formatted(without.replace("none\n// Before", "none\n\n// Before")) == MODULE


def test_line_breaks_of_every_kind_become_one() -> None:
    text = "module m\r\n\r\n// a\r\nconst A = 1\r\n/* b\r\n c */\r\n"
    assert formatted(text) == "module m\n\n// a\nconst A = 1\n/* b\n c */\n"


def test_long_array_and_tuple_types() -> None:
    text = f"module m\nblock B {{ sub {LONG}: [{LONG}<{LONG}>; N]\nparam x: Tensor[A, B; T] }}"
    assert formatted(text) == (
        f"module m\n\nblock B {{\n    sub {LONG}: [\n        {LONG}<{LONG}>;\n        N\n    ]\n"
        "    param x: Tensor[A, B; T]\n}\n"
    )


def test_file_with_errors_is_left_alone() -> None:
    result, problems = format_module(SourceFile("t", "module m\nfn f() { let x = }"))
    assert result is None and [problem.code for problem in problems] == ["E1101"]


@pytest.mark.parametrize(
    "text",
    [
        "module m\nfn f() -> T // own\n/* a\n   b */ {\n}",
        "module m\nfn f() { return x - // own\n/* in */ 1 }",
        "module m\nfn f() { return x + /* in */\n// own\n1 }",
        "module m\nfn f() -> T /* one */ /* two */ where A > 0 { }",
        "module m\nblock B /// not the member's\n{ param w: T }",
        "module m\nfn f() { let x = /* a */ /* b */\n/* c */ 1 /* d */ // e\n}",
    ],
)
def test_comments_in_odd_places(text: str) -> None:
    file = SourceFile("t", text)
    once = formatted(text)
    assert formatted(once) == once
    assert same_tree(parse_module(file)[0], parse_module(SourceFile("t", once))[0])
    notes = [note.text for token in tokens(file)[0] for note in token.comments]
    assert notes == [
        note.text for token in tokens(SourceFile("t", once))[0] for note in token.comments
    ]
