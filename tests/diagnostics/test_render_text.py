"""Diagnostics as text: the picture, and that a stranger's text can't reach the terminal."""

from __future__ import annotations

import re
import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from linnet.diagnostics import Diagnostic, Label, SourceFile, Span, render_text


def at(file: SourceFile, part: str) -> Span:
    start = file.text.index(part)
    return Span(file, start, start + len(part))


def test_the_whole_picture() -> None:
    file = SourceFile("src/lib.linnet", "module toy\n\nconst A: i32 = 1.5\n" + "\n" * 7 + "x y\n")
    found = Diagnostic(
        "E2101",
        "this is `f64`, and `i32` is needed",
        at(file, "1.5"),
        label="found `f64`",
        related=(Label(at(file, "x y\n"), "used here"),),
        notes=("expected `i32`\n   found `f64`",),
        help="write `cast<i32>(1.5)`",
    )
    assert render_text([found]) == (
        "error[E2101]: this is `f64`, and `i32` is needed\n"
        "  --> src/lib.linnet:3:16\n"
        "   |\n"
        " 3 | const A: i32 = 1.5\n"
        "   |                ^^^ found `f64`\n"
        "  ::: src/lib.linnet:11:1\n"
        "   |\n"
        "11 | x y\n"
        "   | --- used here\n"
        "   |\n"
        "   = note: expected `i32`\n"
        "              found `f64`\n"
        "   = help: write `cast<i32>(1.5)`\n"
        "\n"
        "1 error\n"
    )


def test_nothing_is_nothing() -> None:
    assert render_text([]) == ""


def test_problems_stand_in_order_of_place_and_are_counted() -> None:
    one, two = SourceFile("one", "a b c"), SourceFile("two", "a b c")
    found = [
        Diagnostic("W1001", "third", Span(one, 4, 5)),
        Diagnostic("E1101", "fourth", Span(two, 0, 1)),
        Diagnostic("E1101", "second", Span(one, 0, 1)),
        Diagnostic("E5001", "first", None),
    ]
    text = render_text(found)
    assert re.findall("first|second|third|fourth", text) == ["first", "second", "third", "fourth"]
    assert text.endswith("\n3 errors, 1 warning\n")
    assert "warning[W1001]: third" in text


def test_a_span_of_several_lines_shows_its_ends() -> None:
    file = SourceFile("f", "let a = (\n    b,\n    c,\n    d\n) + 1\n")
    text = render_text([Diagnostic("E1101", "m", at(file, file.text[8:28] + "d\n)"), "here")])
    assert "1 | let a = (\n  |         ^\n...\n5 | )" in text
    assert text.splitlines()[-3] == "  | ^ here"


def test_tabs_wide_and_combining_characters_keep_the_underline_in_place() -> None:
    file = SourceFile("f", "\tx 漢字 e\u0301 = y\n")
    lines = render_text([Diagnostic("E1201", "m", at(file, "y"))]).splitlines()
    source, under = lines[3], lines[4]
    assert source == "1 |     x 漢字 e\u0301 = y"
    width = sum(
        0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) == "W" else 1
        for c in source[: source.index("y")]
    )
    assert under.index("^") == width


def test_an_empty_span_and_one_at_the_end_are_one_caret() -> None:
    for text, place in (("ab", Span(SourceFile("f", "ab"), 2, 2)), ("", None)):
        span = place or Span(SourceFile("f", text), 0, 0)
        assert render_text([Diagnostic("E1101", "m", span)]).count("^") == 1


def test_a_very_long_line_is_cut_around_the_span() -> None:
    file = SourceFile("f", "a" * 100_000 + "!" + "b" * 100_000)
    text = render_text([Diagnostic("E1001", "m", at(file, "!"))])
    assert len(text) < 1000
    source, under = text.splitlines()[3:5]
    assert source.index("!") == under.index("^")
    assert source.count("…") == 2


def test_long_messages_and_many_problems_stay_bounded() -> None:
    file = SourceFile("f", "x")
    name = "n" * 1_000_000
    found = [Diagnostic("E1201", f"nothing is named `{name}`", Span(file, 0, 1))] * 5000
    text = render_text(found)
    assert len(text) < 500_000
    assert "... and 4800 more" in text
    assert text.endswith("5000 errors\n")


def test_colour_only_when_asked() -> None:
    found = [Diagnostic("E1201", "m", Span(SourceFile("f", "x"), 0, 1))]
    plain, colored = render_text(found), render_text(found, color=True)
    assert "\x1b" not in plain
    assert re.sub(r"\x1b\[[\d;]*m", "", colored) == plain


@pytest.mark.parametrize("char", ["\x1b", "\x9b", "\u202e", "\u2028", "\ud800", "\x07", "\r"])
def test_no_control_sequence_passes(char: str) -> None:
    hostile = f"a{char}[31m"
    file = SourceFile(f"p{char}", f"module {hostile} // x\n")
    span = Span(file, 7, 9)
    label = Label(span, hostile)
    found = Diagnostic("E1001", hostile, span, hostile, (label,), (hostile,), hostile)
    text = render_text([found])
    assert char not in text.replace("\n", "")
    assert f"\\u{{{ord(char):x}}}" in text or "\\r" in text


@settings(max_examples=200, deadline=None)
@given(st.text(max_size=60), st.data())
def test_any_text_and_span_render_to_printable_lines(text: str, data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(start, len(text)))
    shown = render_text([Diagnostic("E1101", text, Span(SourceFile(text, text), start, end), text)])
    for char in shown.replace("\n", ""):
        assert unicodedata.category(char)[0] != "C"
    assert shown.count("^") >= 1 or "^" in text
