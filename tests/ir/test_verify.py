"""The verifier accepts what is well formed and names what is not."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from linnet.diagnostics import InternalError
from linnet.dims import Dim, Relation
from linnet.ir import Function, Grad, Member, Op, Program, Ref, Region, Sub, SubVar, Value
from linnet.ir.build import Builder
from linnet.ir.verify import verify
from linnet.types import OptionalType, fresh_pack, scalar

from .helpers import BOOL, F32, I32, SELF, block, call_attrs, function, symbols, tensor

N, M = symbols("N", "M")


def with_ops(change: Callable[[tuple[Op, ...]], tuple[Op, ...]], f: Function) -> Function:
    return replace(f, body=replace(f.body, ops=change(f.body.ops)))


def good() -> Function:
    def body(b: Builder, x: Value) -> Value:
        y = b.emit("neg", [x])
        with b.region() as then:
            then.give(b.emit("add", [y, y]))
        with b.region() as other:
            other.give(y)
        return b.emit("if", [b.const(True, BOOL)], regions=[then.region, other.region])

    return function("m::f", {"x": tensor(F32, N)}, body, generics=[N])


def check(f: Function, *others: Function) -> None:
    verify(f, {other.name: other for other in (f, *others)})


def test_accepts() -> None:
    check(good())


def test_equalities_of_the_where_clause_count() -> None:
    params = {"x": tensor(F32, N), "y": tensor(F32, M)}
    f = function("m::f", params, lambda b, x, y: x, generics=[N, M])
    x, y = (p.value for p in f.params)
    add = Op("add", (x, y), (Value(tensor(F32, M)),))
    f = replace(f, body=Region((x, y), (add,), add.results))
    with pytest.raises(InternalError, match="operands of one type"):
        check(f)
    check(replace(f, where=(Relation(Dim.of(N), "==", Dim.of(M)),)))


def test_values_are_defined_once_and_before_use() -> None:
    f = good()
    with pytest.raises(InternalError, match="used before it is defined"):
        check(with_ops(lambda ops: tuple(reversed(ops)), f))
    with pytest.raises(InternalError, match="defined twice"):
        check(with_ops(lambda ops: (ops[0], *ops), f))
    inner = f.body.ops[-1].regions[0].results
    with pytest.raises(InternalError, match="used out of its region"):
        check(replace(f, body=replace(f.body, results=inner)))
    with pytest.raises(InternalError, match="more than one value"):
        check(replace(f, body=replace(f.body, results=f.body.results * 2)))
    with pytest.raises(InternalError, match="the body's parameters"):
        check(replace(f, body=replace(f.body, params=(Value(tensor(F32, N)),))))


def test_rules_are_checked_and_errors_name_the_function() -> None:
    bad = Op("add", (), (Value(scalar(F32)),))
    with pytest.raises(InternalError, match=r"ir.verify: in `m::f`: `add`: 0 operands"):
        check(with_ops(lambda ops: (*ops, bad), good()))
    odd = Op("permute", (good().params[0].value,), (Value(scalar(F32)),), {"order": 3})
    f = with_ops(lambda ops: ops, good())
    odd = replace(odd, operands=(f.params[0].value,))
    with pytest.raises(InternalError, match="`order` is 3"):
        check(with_ops(lambda ops: (*ops, odd), f))
    worse = replace(odd, kind="gather", attrs={"source": 5, "index_axes": None})
    with pytest.raises(InternalError, match="is malformed"):
        check(with_ops(lambda ops: (*ops, worse), f))


def test_results_are_what_the_rule_gives() -> None:
    f = function("m::f", {"x": scalar(F32)}, lambda b, x: b.emit("neg", [x], type=scalar(I32)))
    with pytest.raises(InternalError, match="`neg` gives f32, not i32"):
        check(f)


def test_broken_functions_pass() -> None:
    check(replace(good(), body=Region((), (), (Value(BOOL),)), broken=True))


def caller(name: str = "m::g", args: Any = None, operand: Any = None, **more: Any) -> Function:
    args = (Dim.of(M) + 1,) if args is None else args
    type_ = tensor(F32, Dim.of(M) + 1)
    return function(
        "m::caller",
        {"x": operand or type_},
        lambda b, x: b.emit("call", [x], {**call_attrs(name, args), **more}, type=type_),
        generics=[M],
    )


def callee(**changes: Any) -> Function:
    f = function("m::g", {"x": tensor(F32, N)}, lambda b, x: b.emit("neg", [x]), generics=[N])
    return replace(f, **changes)


def test_calls() -> None:
    check(caller(), callee())
    for f, g, message in [
        (caller("m::h"), callee(), "there is no function `m::h`"),
        (caller(), callee(broken=True), "holds an error"),
        (caller(), callee(kind="entry"), "is an entry"),
        (caller(), callee(block="m::B"), "wrong receiver"),
        (caller(receiver=Ref(None, ())), callee(), "wrong receiver"),
        (caller(args=()), callee(), "has 1 generics, not 0"),
        (caller(args=(F32,)), callee(), "cannot be bound"),
        (caller(args=(Dim.of(M),)), callee(), r"takes \(Tensor\[M; f32\]\), not"),
        (caller(operand=tensor(F32, M)), callee(), "takes"),
    ]:
        with pytest.raises(InternalError, match=message):
            check(f, g)


def test_packs_are_substituted_in_calls() -> None:
    s = fresh_pack("S")
    f = function("m::g", {"x": tensor(F32, s, N)}, lambda b, x: x, generics=[s, N])
    args = ((Dim.of(M), Dim.of(2)), Dim.of(3))
    type_ = tensor(F32, M, 2, 3)

    def body(b: Builder, x: Value) -> Value:
        return b.emit("call", [x], call_attrs("m::g", args), type=type_)

    check(function("m::f", {"x": type_}, body, generics=[M]), f)


def test_ops_are_pure() -> None:
    def body(b: Builder, x: Value) -> Value:
        return b.emit("state_read", attrs={"ref": SELF.child("s")}, type=scalar(F32))

    f = function("m::f", {"x": scalar(F32)}, body, kind="op")
    with pytest.raises(InternalError, match="an op has `state_read`"):
        check(f)


def test_gradients_are_checked() -> None:
    f = function("m::f", {"x": tensor(F32, N)}, lambda b, x: x, kind="op", generics=[N])
    params = tuple(Value(tensor(F32, N)) for _ in range(3))
    check(replace(f, grad=Grad(params, Region((), (), (params[2],)))))
    with pytest.raises(InternalError, match="the gradient does not take"):
        check(replace(f, grad=Grad(params[:2], Region((), (), (params[1],)))))
    with pytest.raises(InternalError, match="used out of its region"):
        check(replace(f, grad=Grad(params, Region((), (), (f.params[0].value,)))))


def program(method: Callable[[Builder], Value | None]) -> Program:
    child = block(
        "m::Child",
        generics=[N],
        members=[
            Member("param", "w", tensor(F32, N), False),
            Member("param", "bias", tensor(F32, N), True),
            Member("state", "s", tensor(F32, N), False),
        ],
    )
    subs = [
        Sub("one", "m::Child", (Dim.of(M) + 1,), None, False),
        Sub("many", "m::Child", (Dim.of(M),), Dim.of(3), False),
    ]
    parent = block("m::Parent", generics=[M], subs=subs)
    f = function("m::Parent.f", {}, method, block="m::Parent", generics=[M])
    return Program("m", {f.name: f}, {b.name: b for b in (child, parent)})


def read(kind: str, ref: Ref, type_: Any) -> Callable[[Builder], Value]:
    return lambda b: b.emit(kind, attrs={"ref": ref}, type=type_)


ONE = SELF.child("one")
WIDE = tensor(F32, Dim.of(M) + 1)


@pytest.mark.parametrize(
    ("method", "message"),
    [
        (read("param", ONE.child("w"), WIDE), None),
        (read("param", ONE.child("bias"), OptionalType(WIDE)), None),
        (read("state_read", ONE.child("s"), WIDE), None),
        (read("param", SELF.child("many").child(2).child("w"), tensor(F32, M)), None),
        (read("param", ONE.child("bias"), WIDE), r"is Tensor\[M \+ 1; f32\]\?, not"),
        (read("param", ONE.child("w"), tensor(F32, M)), "is Tensor"),
        (read("param", ONE.child("s"), WIDE), "no such member"),
        (read("state_read", ONE.child("w"), WIDE), "no such member"),
        (read("param", SELF.child("two").child("w"), WIDE), "has no child `two`"),
        (read("param", Ref(SubVar("x"), ("w",)), WIDE), "used outside its loop"),
    ],
)
def test_members(method: Callable[[Builder], Value], message: str | None) -> None:
    made = program(method)
    (f,) = made.functions.values()
    if message is None:
        verify(f, made)
        return
    with pytest.raises(InternalError, match=message):
        verify(f, made)


def test_loops_over_children() -> None:
    var = SubVar("x")

    def loop(array: str) -> Callable[[Builder], None]:
        def body(b: Builder) -> None:
            with b.region() as each:
                w = b.emit("param", attrs={"ref": Ref(var, ("w",))}, type=tensor(F32, M))
                b.emit_many("state_write", [w], {"ref": Ref(var, ("s",))})
            attrs = {"array": SELF.child(array), "var": var}
            b.emit_many("for_subs", [], attrs, regions=[each.region])

        return body

    made = program(loop("many"))
    verify(made.functions["m::Parent.f"], made)
    made = program(loop("one"))
    with pytest.raises(InternalError, match=r"`self\.one` is no array"):
        verify(made.functions["m::Parent.f"], made)


def test_references_need_a_block() -> None:
    f = function("m::f", {}, read("param", SELF.child("w"), scalar(F32)))
    with pytest.raises(InternalError, match="used outside a block"):
        check(f)
