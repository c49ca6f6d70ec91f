"""Building, walking and rebuilding functions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from linnet.diagnostics import InternalError
from linnet.dims import Dim
from linnet.ir import Function, Grad, Op, Ref, Region, SubVar, Value
from linnet.ir.build import Builder
from linnet.ir.evaluate import Evaluator
from linnet.ir.printer import print_function
from linnet.ir.renumber import substitute_attrs
from linnet.ir.rewrite import Rewriter, clone_region, count_ops, drop_dead, rewrite
from linnet.ir.verify import verify
from linnet.ir.walk import (
    callees,
    callees_first,
    definitions,
    free_of_op,
    free_values,
    has_effects,
    use_counts,
    users,
    walk,
    walk_regions,
)
from linnet.types import Subst, fresh_pack, scalar

from .helpers import BOOL, F32, I64, SELF, call_attrs, function, symbols, tensor


def sample() -> Function:
    """`x` doubled `3` times in a loop that also reads `y` from outside, if `flag`."""

    def body(b: Builder, x: Value, y: Value, flag: Value) -> Value:
        first, stop = b.const(0, I64), b.const(3, I64)
        i, carried = Value(scalar(I64)), Value(scalar(F32))
        with b.region([i, carried]) as step:
            step.give(b.emit("add", [b.emit("add", [carried, carried]), y]))
        looped = b.emit("for", [first, stop, x], {"yields": 0}, regions=[step.region])
        b.emit("exp", [looped], name="dead")
        with b.region() as then:
            then.give(looped)
        with b.region() as other:
            other.give(b.emit("neg", [looped]))
        return b.emit("if", [flag], regions=[then.region, other.region])

    return function("m::f", {"x": scalar(F32), "y": scalar(F32), "flag": scalar(BOOL)}, body)


def run(f: Function, *inputs: object) -> object:
    return Evaluator({f.name: f}).run(f.name, inputs)


def test_builder_needs_closed_regions() -> None:
    b = Builder()
    with b.region() as inner:
        with pytest.raises(InternalError, match="inside an open region"):
            b.finish()
        with pytest.raises(InternalError, match="while it was open"):
            _ = inner.region
    assert inner.region.ops == ()
    with pytest.raises(InternalError, match="has 0 results"):
        b.emit("state_write", [b.const(1.0, F32)], {"ref": SELF.child("s")})


def test_builder_helpers_leave_out_what_does_nothing() -> None:
    b = Builder()
    x = b.const(1.0, F32)
    assert b.cast(x, F32) is x
    assert b.cast(x, I64).type == scalar(I64)
    assert b.broadcast(x, (), scalar(F32)) is x
    assert b.broadcast(x, (), tensor(F32, 3)).type == tensor(F32, 3)
    assert b.dim(7, I64).type == scalar(I64)
    assert len(b.finish().ops) == 4


def test_walking() -> None:
    f = sample()
    kinds = [op.kind for op in walk(f)]
    assert kinds == ["const", "const", "for", "add", "add", "exp", "if", "neg"]
    assert [len(r.ops) for r in walk_regions(f.body)] == [5, 2, 0, 1]
    assert count_ops(f) == len(kinds)
    (loop,) = (op for op in walk(f) if op.kind == "for")
    y = f.params[1].value
    assert free_values(loop.regions[0]) == (y,)
    assert free_of_op(loop) == (*loop.operands, y)
    assert free_values(f.body) == ()
    assert definitions(f)[loop.result] is loop
    assert use_counts(f)[loop.result] == 3
    assert [op.kind for op in users(f)[loop.result]] == ["exp", "neg"]
    assert not has_effects(loop)


def test_copies_have_values_of_their_own_and_mean_the_same() -> None:
    f = sample()
    copy = Rewriter().function(f)
    verify(copy, {f.name: copy})
    assert print_function(copy) == print_function(f)
    mine = {v for op in walk(f) for v in op.results} | {p.value for p in f.params}
    other = {v for op in walk(copy) for v in op.results} | {p.value for p in copy.params}
    assert not mine & other
    assert run(copy, 1.0, 0.5, True) == run(f, 1.0, 0.5, True) == 11.5


def test_transform() -> None:
    """`neg` becomes `0 - x`; everything else keeps its identity."""

    def transform(rw: Rewriter, op: Op) -> Sequence[Value] | None:
        if op.kind == "exp":
            return rw.operands(op)
        if op.kind != "neg":
            return None
        zero = rw.builder.const(0.0, F32)
        return [rw.builder.emit("sub", [zero, *rw.operands(op)])]

    f = sample()
    made = rewrite(f, transform)
    verify(made, {f.name: made})
    assert [op.kind for op in walk(made)][-3:] == ["if", "const", "sub"]
    assert made.params == f.params
    assert made.body.ops[2].results == f.body.ops[2].results
    assert run(made, 1.0, 0.5, False) == -11.5


def test_a_transform_gives_a_value_for_each_result() -> None:
    with pytest.raises(InternalError, match="0 values stand for `const`'s"):
        rewrite(sample(), lambda rw, op: [])


def test_inlining_an_if() -> None:
    def transform(rw: Rewriter, op: Op) -> Sequence[Value] | None:
        return rw.inline(op.regions[1], ()) if op.kind == "if" else None

    f = sample()
    made = rewrite(f, transform)
    verify(made, {f.name: made})
    assert run(made, 1.0, 0.5, True) == -11.5


def test_clone_region_maps_what_comes_from_outside() -> None:
    f = sample()
    (loop,) = (op for op in walk(f) if op.kind == "for")
    other = Value(scalar(F32), "other")
    clone = clone_region(loop.regions[0], {f.params[1].value: other})
    assert free_values(clone) == (other,)
    assert not set(clone.params) & set(loop.regions[0].params)


def test_references_and_loop_variables_move() -> None:
    var = SubVar("layer")
    b = Builder()
    with b.region() as each:
        w = b.emit("param", attrs={"ref": Ref(var, ("w",))}, type=scalar(F32))
        b.emit_many("state_write", [w], {"ref": SELF.child("s")})
    attrs = {"array": SELF.child("layers"), "var": var}
    b.emit_many("for_subs", [], attrs, regions=[each.region])
    b.emit_many("call", [], call_attrs("m::f"), types=[])
    b.emit_many("call", [], call_attrs("m::B.g", receiver=SELF), types=[])
    rw = Rewriter()
    rw.self_ref = Ref(None, ("child", 3))
    made = rw.region(b.finish())
    loop, plain, method = made.ops
    assert str(loop.attrs["array"]) == "self.child.3.layers"
    assert loop.attrs["var"] != var
    param, write = loop.regions[0].ops
    assert param.attrs["ref"] == Ref(loop.attrs["var"], ("w",))
    assert str(write.attrs["ref"]) == "self.child.3.s"
    assert plain.attrs["receiver"] is None
    assert str(method.attrs["receiver"]) == "self.child.3"


def test_substitution_renumbers_axes() -> None:
    """A function over a pack, copied with the pack bound to two dimensions."""
    s = fresh_pack("S")
    n, p, q = symbols("N", "P", "Q")

    def body(b: Builder, x: Value, w: Value, at: Value) -> Value:
        y = b.emit("contract", [x, w], {"inputs": ((0, 1), (2, 1)), "output": (2, 0)})  # [n, *s]
        y = b.emit("permute", [y], {"order": (1, 0)})
        y = b.emit("cumsum", [y], {"axis": 1})
        source = {"source": (("axis", 0), ("index", 0)), "index_axes": ((0,),)}
        z = b.emit("gather", [y, at], source)  # [*s]
        wide = b.emit("broadcast", [z], {"axes": (0,)}, type=tensor(F32, s, n))
        both = b.emit("concat", [y, wide], {"axis": 1})
        bounds = {"bounds": (None, (Dim.of(n), 2 * Dim.of(n), Dim.of(1)))}
        cut = b.emit("slice", [both], bounds)
        return b.emit("reduce", [cut], {"op": "sum", "axes": (0,)})  # [n]

    params = {"x": tensor(F32, s, n), "w": tensor(F32, n, n), "at": tensor(I64, s)}
    f = function("m::f", params, body, generics=[s, n])
    verify(f, {})
    subst = Subst.of({s: (Dim.of(p), Dim.of(q))})
    made = replace(Rewriter(subst=subst).function(f), generics=(f.generics[1],))
    verify(made, {})
    ops = {op.kind: op for op in walk(made)}
    assert ops["permute"].attrs["order"] == (1, 2, 0)
    assert ops["reduce"].attrs["axes"] == (0, 1)
    assert ops["gather"].attrs["source"] == (("axis", 0), ("axis", 1), ("index", 0))
    assert ops["gather"].attrs["index_axes"] == ((0, 1),)
    rng = np.random.default_rng(3)
    x = rng.normal(size=(2, 3, 4)).astype(np.float32)
    w = rng.normal(size=(4, 4)).astype(np.float32)
    at = rng.integers(0, 4, (2, 3))
    generic = Evaluator({"m::f": f}).run("m::f", [x, w, at])
    full = Rewriter(subst=Subst.of({p: Dim.of(2), q: Dim.of(3)})).function(made)
    np.testing.assert_array_equal(Evaluator({"m::f": full}).run("m::f", [x, w, at]), generic)


def test_attributes_without_axes_are_shared() -> None:
    f = sample()
    (loop,) = (op for op in walk(f) if op.kind == "for")
    assert substitute_attrs(loop, Subst()) is loop.attrs


def test_drop_dead() -> None:
    f = sample()
    made = drop_dead(f)
    assert [op.kind for op in walk(made)] == ["const", "const", "for", "add", "add", "if", "neg"]
    assert drop_dead(made) is made
    verify(made, {f.name: made})


def test_drop_dead_keeps_effects() -> None:
    def body(b: Builder, x: Value) -> Value:
        b.emit("state_read", attrs={"ref": SELF.child("s")}, type=scalar(F32))
        with b.region() as then:
            b.emit_many("state_write", [b.emit("neg", [x])], {"ref": SELF.child("s")})
            b.emit("exp", [x])
            then.give(x)
        with b.region() as other:
            other.give(b.emit("exp", [x]))
        flag = b.const(True, BOOL)
        b.emit("if", [flag], regions=[then.region, other.region])
        b.emit("call", [x], call_attrs("m::pure"), type=scalar(F32))
        return x

    f = function("m::f", {"x": scalar(F32)}, body)
    kinds = ["const", "if", "neg", "state_write", "exp"]
    assert [op.kind for op in walk(drop_dead(f, lambda op: False))] == kinds
    assert [op.kind for op in walk(drop_dead(f))] == [*kinds, "call"]


def test_drop_dead_reaches_gradients() -> None:
    f = function("m::f", {"x": scalar(F32)}, lambda b, x: x, kind="op")
    b = Builder()
    params = tuple(Value(scalar(F32)) for _ in range(3))
    b.emit("exp", [params[0]])
    f = replace(f, grad=Grad(params, b.finish([params[2]])))
    made = drop_dead(f)
    assert made.grad is not None
    assert made.grad.body.ops == ()


def calling(name: str, *names: str) -> Function:
    def body(b: Builder) -> None:
        for callee in names:
            b.emit_many("call", [], call_attrs(callee), types=[])

    return function(name, {}, body)


def test_callees_come_first() -> None:
    functions = {
        f.name: f
        for f in [calling("a", "b", "c", "b"), calling("b", "d"), calling("c", "d"), calling("d")]
    }
    assert callees(functions["a"]) == ("b", "c")
    assert callees_first(functions) == ("d", "b", "c", "a")
    assert callees_first(functions, ["c"]) == ("d", "c")
    assert callees_first({"a": functions["a"]}) == ("a",)
    functions["d"] = calling("d", "b")
    with pytest.raises(InternalError, match="calls itself"):
        callees_first(functions)


def test_deep_call_chains_are_no_recursion() -> None:
    functions = {f"f{k}": calling(f"f{k}", f"f{k + 1}") for k in range(5000)}
    functions["f5000"] = calling("f5000")
    assert callees_first(functions)[0] == "f5000"


def test_region_identity_is_kept_where_nothing_is_dead() -> None:
    f = drop_dead(sample())
    assert isinstance(f.body, Region)
    assert drop_dead(f).body is f.body
