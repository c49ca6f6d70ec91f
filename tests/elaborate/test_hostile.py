"""Sources made to hurt: each is an error or cheap, never a crash, a wait or a flood of reports."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.patience import patient

from linnet.elaborate import check
from linnet.packages import load_sources

HEAD = "module a\nfn f<N: Dim, T: Float>(x: Tensor[N; T], a: f32, n: i64) -> f32 {\n"
END = "\n return a\n}\n"
CALLS = "module a\nfn g(a: f32) -> f32 { return a }\nfn f(a: f32, x: Tensor[4; f32]) -> f32 {\n"


def lines(count: int, line: str, start: int = 1) -> str:
    """`line` once for each number, `{i}` being it and `{p}` the one before."""
    return "\n".join(line.format(i=i, p=i - 1, n=i + 1) for i in range(start, count))


def nested(count: int, before: str, after: str) -> str:
    return f"{CALLS}let y = {before * count}a{after * count}{END}"


DIMS = ", ".join(f"A{i}: Dim" for i in range(40))
FACTORS = " * ".join(f"(A{i} + {i})" for i in range(40))
POWER = " * ".join(["(A + B)"] * 90)
CHAIN = ", ".join(f"N{i} <= N{i + 1}" for i in range(99))
MANY = ", ".join(f"N{i}: Dim" for i in range(100))
ALL = ", ".join(f"N{i}" for i in range(100))
CALLER = f"fn g<{MANY}>(x: f32) -> f32 where {CHAIN} {{ return f<{ALL}>(x) }}\n"
ARRAY = """module a
block B0 { param w: Tensor[2; f32] }
block B {
    sub ls: [B0; 1000000000000]
    entry forward(x: f32) -> f32 {
        var y = x
        static for l in ls { y = y + l.w[0] }
        return y
    }
}
"""
RESULT = ") -> f32 { return 1.0 }\n"

# name: (source, a code that must be reported or None for a clean check)
SOURCES: dict[str, tuple[str, str | None]] = {
    "parentheses": (HEAD + "let y = " + "(" * 10_000 + "a" + ")" * 10_000 + END, "E1101"),
    "sums": (HEAD + "let y = " + " + ".join(["a"] * 10_000) + END, "E1101"),
    "indices": (HEAD + "let y = x" + "[0]" * 10_000 + END, "E1101"),
    "else-if": (HEAD + "let y = " + "if true { a } else " * 5_000 + "{ a }" + END, "E1101"),
    "comments": (
        "module a\n" + "/*" * 10_000 + "*/" * 10_000 + "\nfn f() -> f32 { return 1.0 }",
        None,
    ),
    "calls": (nested(98, "g(", ")"), None),
    "ifs": (nested(98, "if true { ", " } else { a }"), None),
    "somes": (nested(98, "some(", ")"), None),
    "tuples": (nested(98, "(a, ", ")"), None),
    "tuples that double": (
        HEAD + "let t0 = (a, a)\n" + lines(200, "let t{i} = (t{p}, t{p})") + END, "E2101",
    ),
    "aliases that double": (
        "module a\ntype A0 = (f32, f32)\n" + lines(200, "type A{i} = (A{p}, A{p})")
        + "\nfn f(x: A199" + RESULT, "E2101",
    ),
    "structs that double": (
        "module a\nstruct A0 { x: f32 y: f32 }\n"
        + lines(200, "struct A{i} {{ x: A{p} y: A{p} }}") + "\nfn f(x: A199" + RESULT, "E2101",
    ),
    "products of sums": (f"module a\nfn f<{DIMS}>(x: Tensor[{FACTORS}; f32]{RESULT}", "E2123"),
    "a power": (f"module a\nfn f<A: Dim, B: Dim>(x: Tensor[{POWER}; f32]{RESULT}", "E2123"),
    "static for": (
        HEAD + "var s = a\nstatic for i in 0..1000000000000 { s = s + 1.0 }" + END, None,
    ),
    "a big tensor": (
        HEAD + "let y = fill<f32>([1000000000000000], 1.0)\nlet _z = sum[i] y[i]" + END, None,
    ),
    "sums that double": (
        "module a\nfn f<N: Dim>(x: Tensor[N; f32]) -> f32 {\n let y0 = x\n"
        + lines(3_000, "let y{i} = concat(y{p}, y{p}, axis = 0)")
        + "\nreturn sum[i] y2999[i]\n}\n", "E2123",
    ),
    "a long body": (
        "module a\nfn f<N: Dim>(x: Tensor[N; f32]) -> Tensor[N; f32] {\n let y0 = x\n"
        + lines(3_000, "let y{i} = y{p} + y{p}") + "\nreturn y2999\n}\n", None,
    ),
    "a chain of calls": (
        "module a\n" + lines(3_000, "fn f_{i}(x: f32) -> f32 {{ return f_{n}(x) }}")
        + "\nfn f_3000(x: f32) -> f32 { return x }\n", None,
    ),
    "a ring of calls": (
        "module a\nfn f_0(x: f32) -> f32 { return f_1(x) }\n"
        + lines(3_000, "fn f_{i}(x: f32) -> f32 {{ return f_{n}(x) }}")
        + "\nfn f_3000(x: f32) -> f32 { return f_0(x) }\n", "E2119",
    ),
    "consts that double": (
        "module a\nconst C0 = 1\n" + lines(5_000, "const C{i} = C{p} + C{p}"), "E2123",
    ),
    "consts backwards": (
        "module a\n" + lines(3_000, "const C{i} = C{n} + C{n}") + "\nconst C3000 = 1", "E2122",
    ),
    "many generics": (
        "module a\nfn f<" + ", ".join(f"N{i}: Dim" for i in range(2_000)) + ">(x: f32" + RESULT,
        None,
    ),
    "many clauses": (
        (f"module a\nfn f<{MANY}>(x: f32) -> f32 where {CHAIN} {{ return x }}\n"
         f"fn g<{MANY}>(x: f32) -> f32 where {CHAIN} {{ return f<{ALL}>(x) }}\n"), None,
    ),
    "blocks in a ring": (
        "module a\nblock A { sub a: A }\nblock B { sub c: [C; 2] }\nblock C { sub b: B }", "E2119",
    ),
    "blocks that double": (
        "module a\nblock B0 { param w: Tensor[2; f32] }\n"
        + lines(300, "block B{i} {{ sub x: B{p} sub y: B{p} }}"), None,
    ),
    "a deep chain of blocks": (
        "module a\nblock B0 { param w: Tensor[2; f32] }\n"
        + lines(3_000, "block B{i} {{ sub x: B{p} }}"), None,
    ),
    "a huge array": (ARRAY, None),
    "a huge rank": (f"module a\nfn f(x: Tensor[{', '.join(['1'] * 5_000)}; f32]{RESULT}", "E2101"),
    "a huge number": (f"module a\nfn f(x: Tensor[{'9' * 5_000}; f32]{RESULT}", "E1005"),
}  # fmt: skip


@pytest.mark.parametrize("name", SOURCES)
def test_hostile(name: str, tmp_path: Path) -> None:
    source, code = SOURCES[name]
    path = tmp_path / "a.linnet"
    path.write_text(source, encoding="utf-8")
    with patient():
        program = check(load_sources([path]))
    errors = {d.code for d in program.diagnostics if d.severity == "error"}
    assert errors == (set() if code is None else errors | {code})
    assert len(program.diagnostics) <= 600
