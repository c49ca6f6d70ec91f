"""inline: small pure helpers become part of their callers.

Needs specialised functions. Guarantees that what stays is called: an op (a backend may have its own
code for it), an entry, a method that uses its block (generated source keeps one function for each)
or is longer than `LONGEST_METHOD`, anything with control flow or longer than `LONGEST`.
`unwrap` is for what natives and `hoist` leave: functions, ops too, that give back what they are
given or hand on what one call gives.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from linnet.dims import Symbol
from linnet.ir import Function, GenericVar, Op, Value
from linnet.ir.rewrite import Rewriter
from linnet.ir.walk import callees
from linnet.passes.module import Module
from linnet.passes.simplify import simplify_function
from linnet.types import GenericArg, Subst

LONGEST = 6
LONGEST_METHOD = 2
_FREE = frozenset({"const", "dim", "tuple", "tuple_get", "some", "none"})
_HANDED = frozenset({"call", "tuple", "tuple_get"})


def inline(module: Module) -> Module:
    """Helpers inlined, callees first, so that helpers of helpers count at their full length."""
    done: dict[str, Function] = {}
    small: dict[str, Function] = {}
    for name, function in module.functions.items():
        if any(callee in small for callee in callees(function)):
            function = _inlined(function, small)
        done[name] = function
        if _is_small(function, LONGEST_METHOD if _is_method(module, name) else LONGEST):
            small[name] = function
    return module.with_functions(done)


def unwrap(module: Module) -> Module:
    """Functions that do nothing but hand on one call's values become part of their callers."""
    done: dict[str, Function] = {}
    wrappers: dict[str, Function] = {}
    for name, function in module.functions.items():
        if any(callee in wrappers for callee in callees(function)):
            function = simplify_function(_inlined(function, wrappers))
        done[name] = function
        if name not in module.prepared and _is_wrapper(function):
            wrappers[name] = function
    return module.with_functions(done)


def _is_wrapper(function: Function) -> bool:
    if function.kind == "entry" or function.block is not None or function.grad is not None:
        return False
    if not function.body.ops:
        return True  # it gives back what it is given
    if function.kind == "op":
        return False
    kinds = [op.kind for op in function.body.ops]
    calls = [op for op in function.body.ops if op.kind == "call"]
    return len(calls) == 1 and not calls[0].attrs.get("prepared") and set(kinds) <= _HANDED


def _is_method(module: Module, name: str) -> bool:
    """Whether the source has it in a block, though it may use nothing of that."""
    return "." in module.origins.get(name, name).rpartition("::")[2]


def _is_small(function: Function, longest: int) -> bool:
    if function.kind != "fn" or function.block is not None:
        return False
    ops = function.body.ops
    if any(op.regions for op in ops):
        return False
    return sum(op.kind not in _FREE for op in ops) <= longest


def _inlined(function: Function, small: Mapping[str, Function]) -> Function:
    def transform(rw: Rewriter, op: Op) -> Sequence[Value] | None:
        if op.kind != "call" or op.attrs["callee"] not in small:
            return None
        return inline_call(rw, op, small[op.attrs["callee"]])

    return Rewriter(transform, fresh=False).function(function)


def inline_call(rw: Rewriter, op: Op, callee: Function) -> tuple[Value, ...]:
    """The callee's operations in place of a call of it; its block's Refs are the receiver's."""
    pairs: dict[GenericVar, GenericArg] = {
        generic.var: dim
        for generic, dim in zip(callee.generics, op.attrs["generics"], strict=True)
        if isinstance(generic.var, Symbol)
    }
    inner = Rewriter(subst=Subst.of(pairs))
    inner.builder = rw.builder
    receiver = op.attrs.get("receiver")
    inner.self_ref = None if receiver is None else rw.ref(receiver)
    inner.values.update((p.value, v) for p, v in zip(callee.params, rw.operands(op), strict=True))
    for inner_op in callee.body.ops:
        inner.op(inner_op)
    return tuple(map(inner.value, callee.body.results))
