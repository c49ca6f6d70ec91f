"""The text form: deterministic, readable, and safe with names made to break out of it."""

from __future__ import annotations

from dataclasses import replace

from linnet.dims import Dim, Relation
from linnet.ir import Ref, SubVar, Value
from linnet.ir.build import Builder
from linnet.ir.printer import plain, print_function, print_program, print_region
from linnet.types import fresh_dtype_var, fresh_pack, scalar

from .helpers import BOOL, F32, I64, SELF, function, generic, symbols, tensor


def sample() -> object:
    (n,) = symbols("N")
    s, t = fresh_pack("S"), fresh_dtype_var("T", "Float")

    def body(b: Builder, x: Value, flag: Value) -> Value:
        y = b.emit("reduce", [x], {"op": "sum", "axes": (1,)}, name="y")
        var = SubVar("layer")
        carried = Value(tensor(t, s))
        with b.region([carried]) as each:
            w = b.emit("param", attrs={"ref": Ref(var, ("w",))}, type=tensor(t, s))
            each.give(b.emit("add", [carried, w]))
        attrs = {"array": SELF.child("layers"), "var": var}
        z = b.emit("for_subs", [y], attrs, regions=[each.region], name="z")
        with b.region() as then:
            then.give(z)
        with b.region() as other:
            other.give(b.emit("neg", [z]))
        return b.emit("if", [flag], regions=[then.region, other.region])

    return replace(
        function("m::B.f", {"x": tensor(t, s, n), "flag": scalar(BOOL)}, body, block="m::B"),
        generics=(generic(s), generic(n, Dim.of(4)), generic(t)),
        where=(Relation(Dim.of(n), ">", Dim.of(0)),),
    )


EXPECTED = """\
fn m::B.f<*S: Shape, N: Dim = 4, T: Float>(x %x.0: Tensor[*S, N; T], flag %flag.1: bool) -> \
Tensor[*S; T]
    where N > 0 {
    %y.2 = reduce(%x.0) [axes = (1,), op = sum] : Tensor[*S; T]
    %z.3 = for_subs(%y.2) [array = self.layers, var = layer$0] : Tensor[*S; T] \
(%4: Tensor[*S; T]) {
        %5 = param() [ref = layer$0.w] : Tensor[*S; T]
        %6 = add(%4, %5) : Tensor[*S; T]
        give %6
    }
    %7 = if(%flag.1) : Tensor[*S; T] {
        give %z.3
    } {
        %8 = neg(%z.3) : Tensor[*S; T]
        give %8
    }
    give %7
}
"""


def test_text() -> None:
    assert print_function(sample()) == EXPECTED  # type: ignore[arg-type]


def test_equal_functions_print_alike() -> None:
    first, second = sample(), sample()
    assert first != second
    assert print_function(first) == print_function(second)  # type: ignore[arg-type]


def test_names_cannot_break_out() -> None:
    evil = "x\n} fn y() {\u2028\x1b[31m"
    b = Builder()
    value = Value(scalar(I64), evil)
    (result,) = b.emit_many(
        "native", [value], {"kernel": evil, "origin": "m::a"}, types=[scalar(F32)], names=[evil]
    )
    text = print_region(b.finish([result]))
    assert text.isascii()
    assert len(text.splitlines()) == 2
    assert plain(evil).startswith('"x\\n}')
    assert len(plain("a" * 100_000)) < 300
    assert plain("a.b::c") == "a.b::c"


def test_program_text_holds_every_function() -> None:
    f = function("m::f", {}, lambda b: None)
    g = replace(f, name="m::g", broken=True)
    assert print_program({"m::f": f, "m::g": g}) == (
        "fn m::f() -> nothing {\n}\n\nfn m::g() -> nothing\n    broken {\n}\n"
    )
