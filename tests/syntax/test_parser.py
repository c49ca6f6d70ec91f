"""What the parser makes of the grammar's less plain corners."""

from __future__ import annotations

import pytest

from linnet.diagnostics.span import SourceFile
from linnet.syntax import dump_tree, parse_module, same_tree, tree


def parse(text: str) -> tree.Module:
    module, problems = parse_module(SourceFile("t", text))
    assert problems == ()
    return module


def value(text: str) -> tree.Expr:
    item = parse(f"module m const A = {text}").items[0]
    assert isinstance(item, tree.Const)
    return item.value


def shown(node: object) -> str:
    """An expression with every grouping and list spelled out."""
    match node:
        case tree.Binary():
            return f"({shown(node.left)} {node.op} {shown(node.right)})"
        case tree.Unary():
            return f"({node.op}{shown(node.operand)})"
        case tree.NameExpr():
            return node.name.text
        case tree.IntLit():
            return str(node.value)
        case tree.Field():
            return f"{shown(node.base)}.{node.name.text}"
        case tree.Call():
            generics = "" if node.generics is None else f"<{', '.join(map(shown, node.generics))}>"
            args = ", ".join(shown(arg.value) for arg in node.args)
            return f"{shown(node.callee)}{generics}({args})"
        case tree.GenericArg():
            return ("" if isinstance(node.value, tree.NamedType) else "$") + shown(node.value)
        case tree.NamedType():
            generics = "" if node.generics is None else f"<{', '.join(map(shown, node.generics))}>"
            return f"{node.path}{generics}"
        case tree.Tuple() | tree.TupleTypeExpr():
            return f"({', '.join(map(shown, node.items))})"
        case tree.Subscript():
            return f"{shown(node.base)}[{', '.join(map(shown, node.items))}]"
        case tree.IndexItem():
            return shown(node.value)
        case tree.IndexSlice():
            bounds = (node.start, node.stop, node.step)
            return ":".join("" if bound is None else shown(bound) for bound in bounds)
        case tree.Reduction():
            return f"{node.op}[{', '.join(i.name.text for i in node.indices)}]({shown(node.body)})"
    return type(node).__name__


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a || b && c == d < e | f", "(a || (b && (c == (d < (e | f)))))"),
        ("e | f ^ g & h + i * -j", "(e | (f ^ (g & (h + (i * (-j))))))"),
        ("a % b * c / d", "(((a % b) * c) / d)"),
        ("a * b & c + d ^ e | f >= g", "(((((a * b) & (c + d)) ^ e) | f) >= g)"),
        ("a > b != c && d || e", "((((a > b) != c) && d) || e)"),
        ("a * b + c - d", "(((a * b) + c) - d)"),
        ("a - (b - c)", "(a - (b - c))"),
        ("!-a.b[0](c)", "(!(-a.b[0](c)))"),
        ("sum[h] x[h] * y / 2", "sum[h](((x[h] * y) / 2))"),
        ("a + sum[i] b + c", "(a + sum[i]((b + c)))"),
        ("sum<f32>[i, j] x", "sum[i, j](x)"),
        ("max(a, b)", "max(a, b)"),
        ("max<f32>(a)", "max<f32>(a)"),
        ("sum < b", "(sum < b)"),
        ("f<a>(b)", "f<a>(b)"),
        ("f<a, b>(c)", "f<a, b>(c)"),
        ("f(a < b, c > d)", "f((a < b), (c > d))"),
        ("f(a < b, c > (d))", "f(a<b, c>(d))"),
        ("a < b > c", "((a < b) > c)"),
        ("a.f<T, 2 * N, N / 2>(x)", "a.f<T, $(2 * N), $(N / 2)>(x)"),
        ("f<g<a>, (a, b), (a) + 1>(x)", "f<g<a>, $(a, b), $(a + 1)>(x)"),
        ("f<min(a, b)>(x)", "f<$min(a, b)>(x)"),
        ("f<(a < b)>(x)", "f<$(a < b)>(x)"),
        ("x[0] < y > (z)", "((x[0] < y) > z)"),
        ("x[::2, 1:, :b, a:b:c, :, a::c]", "x[::2, 1::, :b:, a:b:c, ::, a::c]"),
    ],
)
def test_expressions(text: str, expected: str) -> None:
    assert shown(value(text)) == expected


def test_generic_arguments_in_types() -> None:
    module = parse("module m type A = F<[B; N], [1, *S], Tensor[N; f32], G<H>?, c.d, -1>")
    alias = module.items[0]
    assert isinstance(alias, tree.Alias) and isinstance(alias.type, tree.NamedType)
    kinds = [type(arg.value).__name__ for arg in alias.type.generics or ()]
    assert kinds == [
        *("ArrayTypeExpr", "ShapeLit", "TensorTypeExpr", "OptionalTypeExpr", "NamedType", "Unary"),
    ]


def test_closing_angle_may_touch_the_equals_sign() -> None:
    spaced = (
        "module m\nfn f(x: F<A> = 3) {}\ntype X<N: Dim> = F<N>\nblock B { param x: F<A> = none }"
    )
    assert same_tree(parse(spaced), parse(spaced.replace("> =", ">=")))


def test_where_compares_and_never_takes_arguments() -> None:
    function = parse("module m fn f() where A < B, C > (D + 1) * 2, E % 2 == 0, {}").items[0]
    assert isinstance(function, tree.Function)
    assert [(shown(w.left), w.op, shown(w.right)) for w in function.where] == [
        ("A", "<", "B"),
        ("C", ">", "((D + 1) * 2)"),
        ("(E % 2)", "==", "0"),
    ]


def test_statements_need_no_separators() -> None:
    text = "module m fn f() { let a = b c = a return d = e let y[*s, o] = z while a {} return }"
    function = parse(text).items[0]
    assert isinstance(function, tree.Function)
    names = [type(statement).__name__ for statement in function.body.statements]
    assert names == ["Let", "Assign", "Return", "Assign", "LetIndexed", "While", "Return"]


def test_match_arms_need_no_commas() -> None:
    node = value("match a { some((b, _)) => b none => c K.A => d, _ => e }")
    assert isinstance(node, tree.Match)
    names = [type(arm.pattern).__name__ for arm in node.arms]
    assert names == ["SomePattern", "NonePattern", "CasePattern", "WildcardPattern"]


def test_spans_leave_out_grouping_parentheses() -> None:
    node = value("((a + b)) * c")
    assert isinstance(node, tree.Binary)
    assert node.span.text == "((a + b)) * c" and node.left.span.text == "a + b"
    assert node.op_span.text == "*"


def test_same_tree_ignores_places_only() -> None:
    first = parse("module m fn f(a: i32) { return a + 1 }")
    assert same_tree(first, parse("module m\n\nfn f( a : i32, ) {\n return (a)+1\n}"))
    for other in ("a + 2", "a - 1", "b + 1", "1 + a", "(a, 1)", "a + 1.0", "a"):
        assert not same_tree(first, parse(f"module m fn f(a: i32) {{ return {other} }}"))
    assert not same_tree(parse("module m const A = true"), parse("module m const A = 1"))


def test_dump_names_nodes_fields_and_places() -> None:
    text = dump_tree(parse("module m\nconst A: i64 = -x"))
    assert text == (
        "Module @1:1\n"
        "  name: Path @1:8\n"
        "    parts: [1]\n"
        "      Name text='m' @1:8\n"
        "  uses: []\n"
        "  items: [1]\n"
        "    Const public=False @2:1\n"
        "      name: Name text='A' @2:7\n"
        "      type: NamedType @2:10\n"
        "        path: Path @2:10\n"
        "          parts: [1]\n"
        "            Name text='i64' @2:10\n"
        "      value: Unary op='-' @2:16\n"
        "        operand: NameExpr @2:17\n"
        "          name: Name text='x' @2:17\n"
    )
