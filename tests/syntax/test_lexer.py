"""Tokens, comments and literals."""

from __future__ import annotations

import pytest

from linnet.diagnostics.span import SourceFile
from linnet.syntax import parse_module, tokens, tree


def kinds(text: str) -> list[str]:
    found, problems = tokens(SourceFile("t", text))
    assert problems == ()
    return [token.kind for token in found]


def test_kinds() -> None:
    assert kinds("let x_1 = 0..n + 1.5 true self") == [
        *("let", "name", "=", "int", "..", "name", "+", "float", "true", "reserved", "eof"),
    ]
    assert kinds("a::b -> => == != <= >= && || ... .. <> >> ?") == [
        *("name", "::", "name", "->", "=>", "==", "!=", "<=", ">=", "&&", "||", "...", ".."),
        *("<", ">", ">", ">", "?", "eof"),
    ]


def test_spans_count_code_points() -> None:
    found, _ = tokens(SourceFile("t", '"é😀" x'))
    assert [(token.span.start, token.span.end) for token in found] == [(0, 4), (5, 6), (6, 6)]


def test_byte_order_mark_is_white_space() -> None:
    assert kinds("\ufeffmodule m") == ["module", "name", "eof"]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("42", 42),
        ("1_000_000", 1_000_000),
        ("0xff", 255),
        ("0xAB_cd", 0xABCD),
        ("0b1010", 10),
        ("007", 7),
        ("1.0", 1.0),
        ("1e-5", 1e-5),
        ("2E3", 2e3),
        ("3.141_592", 3.141592),
        ("1e-999", 0.0),
    ],
)
def test_numbers(text: str, value: float) -> None:
    literal = constant(text)
    assert isinstance(literal, (tree.IntLit, tree.FloatLit))
    assert literal.value == value and type(literal.value) is type(value)


def test_strings() -> None:
    literal = constant(r'"a\n\t\"\\\x41\u{1F600}\0é//"')
    assert isinstance(literal, tree.StringLit)
    assert literal.value == 'a\n\t"\\A😀\0é//'


def constant(text: str) -> tree.Expr:
    module, problems = parse_module(SourceFile("t", f"module m\nconst A = {text}"))
    assert problems == ()
    item = module.items[0]
    assert isinstance(item, tree.Const)
    return item.value


def test_comment_places() -> None:
    text = "// top\n\na /* in */ b // end\n/* own */\n\n\nc /* x */ // y\n/* p */ d\n// last"
    found, problems = tokens(SourceFile("t", text))
    assert problems == ()
    notes = [[(note.text, note.place, note.blank) for note in token.comments] for token in found]
    assert notes == [
        [("// top", "own", False)],
        [("/* in */", "inline", False)],
        [("// end", "trailing", False), ("/* own */", "own", False)],
        [
            ("/* x */", "trailing", False),
            ("// y", "trailing", False),
            ("/* p */", "inline", False),
        ],
        [("// last", "own", False)],
    ]
    assert [token.blank for token in found] == [True, False, True, False, False]


def test_documentation() -> None:
    text = (
        "module m\n/// One.\n//// not\n/// Two.\n// not\n/** Three\n * four */\n"
        "pub fn f() {}\nblock B {\n    /// A member.\n    param x: T\n}\n/**/ fn g() {}\n"
    )
    module, _ = parse_module(SourceFile("t", text))
    f, block, g = module.items
    assert f.doc == "One.\nTwo.\nThree\nfour"
    assert isinstance(block, tree.BlockDecl) and block.members[0].doc == "A member."
    assert g.doc is None


def test_nested_comments() -> None:
    assert kinds("a /* /* b */ // */ c") == ["name", "name", "eof"]
