"""Each syntax code, where it points, and that one mistake gives one report."""

from __future__ import annotations

import pytest

from linnet.diagnostics.span import SourceFile
from linnet.syntax import dump_tree, parse_module, tree

# (text, the reports as "line:column code")
FILES = [
    ("", ["1:1 E1102"]),
    ("fn f() {}", ["1:1 E1102"]),
    ("use a.b\nmodule m", ["1:1 E1102"]),
    ("module m\nmodule n", ["2:1 E1101"]),
    ("module", ["1:7 E1101"]),
    ("module m\nuse\nfn f() {}", ["3:1 E1101"]),
    ("module m\nfn g() {}\nuse a.b", ["3:1 E1101"]),
    ("module m\npub use a", ["2:5 E1101"]),
    ("module m\nuse a::{b as}\nuse c::{d e}", ["2:13 E1101", "3:11 E1101"]),
    ("module m.type.x", ["1:10 E1004"]),
    ("module m\n}\n}\nfn g() {}", ["2:1 E1101"]),
    ("module m\nimpl X { }\nfn g() {}", ["2:1 E1103"]),
    ("module m\nasync fn g() {}", ["2:1 E1103"]),
    ("module m\nparam x: i32\nfn g() {}", ["2:1 E1101"]),
    ("module m\nfn self() {}", ["2:4 E1004"]),
    ("module m\nfn f( {}\nfn g() {}", ["2:7 E1101"]),
    ("module m\nfn f(a: {}, b: i32) {}\nfn g() {}", ["2:9 E1101"]),
    ("module m\nfn f(a i32, b: i64) {}", ["2:8 E1101"]),
    ("module m\nfn f<A: Dim(a: A) {}\nfn g() {}", ["2:12 E1101"]),
    ("module m\nfn f<A>(a: A) {}", ["2:7 E1101"]),
    ("module m\nfn f<>() {}", ["2:5 E1101"]),
    ("module m\nop f() {}", ["2:8 E1101"]),
    ("module m\nfn f() {} grad(y, dy) {}", ["2:11 E1101"]),
    ("module m\nfn f() : i32 {}", ["2:8 E1101"]),
    ("module m\nfn f() where A = 3 {}", ["2:16 E1101"]),
    ("module m\nfn f() where {}", ["2:14 E1101"]),
    ("module m\nfn f() {\nlet x = 1\n\nfn g() {}", ["5:1 E1101"]),
    ("module m\nstruct A { a: i32, c }\nfn g() {}", ["2:22 E1101"]),
    ("module m\nenum A { B C }\nfn g() {}", ["2:12 E1101"]),
    ("module m\nconst A =\nfn g() {}", ["3:1 E1101"]),
    ("module m\ntype A =\nfn g() {}", ["3:1 E1101"]),
    ("module m\nblock A { let x = 3\n param x: i32 }", ["2:11 E1101"]),
    ("module m\nblock A { pub param x: T }", ["2:11 E1101"]),
    ("module m\nblock A { param x: T = 3 }", ["2:24 E4102"]),
    ("module m\nblock A { param x: T = none\n state s: T = 0 }", ["3:15 E1101"]),
    ("module m\nblock A { buffer x: T = none }", ["2:23 E1101"]),
    ("module m\n/* /* */\nfn f() {}", ["2:1 E1002"]),
]

# (a statement, the reports for it on line 3, whether a statement is left of it)
STATEMENTS = [
    ("let x = $a", ["9 E1001"], True),
    ("let x = @@@@ + b", ["9 E1001"], True),
    ("let é = 1", ["5 E1001"], False),
    ('let x = "abc', ["9 E1003"], True),
    (r'let x = "a\q\n"', ["11 E1003"], True),
    (r'let x = "\u{110000}"', ["10 E1003"], True),
    ("let x = 1_", ["9 E1005"], True),
    ("let x = 0xg", ["9 E1005"], True),
    ("let x = 0b12", ["9 E1005"], True),
    ("let x = 12abc", ["9 E1005"], True),
    ("let x = 9223372036854775807", [], True),
    ("let x = 9223372036854775808", ["9 E1005"], True),
    ("let x = -9223372036854775808", [], True),
    ("let x = a - 9223372036854775808", ["13 E1005"], True),
    ("let x = 1e999", ["9 E1005"], True),
    ("let self = 1", ["5 E1004"], True),
    ("let match = 2", ["5 E1004"], True),
    ("let x = self.weight", ["9 E1004"], True),
    ("let x = type + 1", ["9 E1004"], True),
    ("mut x = 1", ["1 E1103"], False),
    ("let mut x = 1", ["5 E1103"], True),
    ("unsafe { }", ["1 E1103"], False),
    ("x += 1", ["3 E1101"], False),
    ("x[0] = 1", ["1 E1101"], False),
    ("foo(1)", ["1 E1101"], False),
    ("if a { let y = 1 } else { }", ["1 E1101"], False),
    ("let x = 1;", ["10 E1101"], True),
    ("let x = a as f32", ["11 E1101"], True),
    ("let x = a << 2", ["12 E1101"], True),
    ("let x = 1 + if a { b } else { c }", ["13 E1101"], True),
    ("let x = if a { let y = 1 } else { y }", ["16 E1101"], True),
    ("let x = f(a b)", ["13 E1101"], True),
    ("let x = f(a,, b)", ["13 E1101"], True),
    ("let x = a b", ["11 E1101"], True),
    ("let = 3", ["5 E1101"], False),
    ("let x 3", ["7 E1101"], False),
    ("let x = ()", ["10 E1101"], True),
    ("let x = (a,)", ["9 E1101"], True),
    ("let x = a[]", ["11 E1101"], True),
    ("let x = sum[] a", ["13 E1101"], True),
    ("let x = foo<>(a)", ["12 E1101"], True),
    ("let x: Tensor[B, S] = a", ["19 E1101"], True),
    ("let x: Tensor[; f32] = a", ["8 E1101"], True),
    ("let x: (A) = a", ["8 E1101"], True),
    ("let x: [A] = b", ["10 E1101"], True),
    ("let x: Foo<A + > = a", ["16 E1101"], True),
    ("const N = 3", ["1 E1101"], False),
    ("let x = match a { some(b => 1 }", ["26 E1101"], True),
    ("let x = match a { 3 => 1, _ => 2 }", ["19 E1101"], True),
    ("while a b { x = 1 }", ["9 E1101"], False),
    ("for i in x { }", ["12 E1101"], True),
    ("for i in 0..n { let q = }", ["25 E1101"], True),
    ("static for x { }", ["14 E1101"], False),
    ("let x = y::z(3)", ["10 E1101"], True),
    ("let x = a.3", ["11 E1101"], True),
    ("return", [], True),
]


def reports(text: str) -> tuple[tree.Module, list[str]]:
    module, found = parse_module(SourceFile("t", text))
    places: list[str] = []
    for problem in found:
        assert problem.span is not None
        line, column = problem.span.file.position(problem.span.start)
        places.append(f"{line}:{column} {problem.code}")
    return module, places


@pytest.mark.parametrize(("text", "expected"), FILES)
def test_file(text: str, expected: list[str]) -> None:
    assert reports(text)[1] == expected


@pytest.mark.parametrize(("statement", "expected", "kept"), STATEMENTS)
def test_statement(statement: str, expected: list[str], kept: bool) -> None:
    """The mistake is reported once, and what comes after it is read as if it weren't there."""
    text = f"module m\nfn f() {{\n{statement}\n    let after = 1\n}}\nfn g() {{}}\n"
    module, found = reports(text)
    assert found == [f"3:{place}" for place in expected]
    first, second = module.items
    assert isinstance(first, tree.Function) and isinstance(second, tree.Function)
    assert len(first.body.statements) == 1 + kept
    last = first.body.statements[-1]
    assert isinstance(last, tree.Let) and "text='after'" in dump_tree_of(last)


def dump_tree_of(node: object) -> str:
    return dump_tree(node)  # type: ignore[arg-type]


def test_unclosed_delimiters_end_at_the_next_statement() -> None:
    for value in ("(a + b", "f(a, b", "[1, 2", "a[", "!", "a +", "a."):
        text = f"module m\nfn f() {{\n    let x = {value}\n    let after = 1\n}}\nfn g() {{}}\n"
        module, found = reports(text)
        assert found == ["4:5 E1101"], value
        first = module.items[0]
        assert isinstance(first, tree.Function) and len(first.body.statements) == 2
        assert len(module.items) == 2


def test_broken_signature_keeps_its_other_parts() -> None:
    module, found = reports("module m\nfn f<A: Dim>(a: {}, b: i32 = , c: f32) -> f32 { return c }")
    assert found == ["2:17 E1101", "2:30 E1101"]
    function = module.items[0]
    assert isinstance(function, tree.Function)
    assert [param.name.text for param in function.params] == ["a", "c"]
    assert isinstance(function.params[0].type, tree.ErrorType)
    assert function.result is not None and len(function.body.statements) == 1


def test_param_value_is_kept_as_a_place() -> None:
    module, _ = reports("module m\nblock A {\n param x: T = 1 + 2\n param y: T = none\n}")
    block = module.items[0]
    assert isinstance(block, tree.BlockDecl)
    x, y = block.members
    assert x.default_span is not None and x.default_span.text == "1 + 2" and not x.optional
    assert y.default_span is None and y.optional


def test_unclosed_body_points_at_its_brace() -> None:
    _, found = parse_module(SourceFile("t", "module m\nfn f() {\n    let x = 1\nfn g() {}"))
    assert [label.span.start for label in found[0].related] == [16]


def test_many_problems_are_cut_off() -> None:
    text = "module m\n" + "fn f() { let x = }\n" * 500
    _, found = parse_module(SourceFile("t", text))
    assert len(found) == 100
    assert "only the first 100" in found[-1].notes[0]
