"""natives: calls of ops that a backend has its own code for.

Needs specialised functions. Asks the backend's selector for each call of an op function; a call
that it answers becomes a `native` operation, and the mask or other operands that the choice leaves
out die in `drop`. A selector may rely on nothing but the query.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from linnet.dims import Dim
from linnet.ir import Function, Op, Value
from linnet.ir.rewrite import Rewriter
from linnet.ir.walk import walk
from linnet.passes.carry import carry
from linnet.passes.masks import MaskFact, mask_facts
from linnet.passes.module import Module, Note
from linnet.types import Subst


@dataclass(frozen=True, slots=True)
class NativeQuery:
    """A call of an op. `facts` says, for operand numbers, what is known of a mask; `generics` what
    the op's Dim generics are bound to, by their source names, in the caller's symbols."""

    call: Op
    callee: Function
    origin: str
    facts: Mapping[int, MaskFact] = field(default_factory=dict)
    generics: Mapping[str, Dim] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class NativeChoice:
    """The kernel to run instead, on these values of the caller's."""

    kernel: str
    operands: tuple[Value, ...]
    attrs: Mapping[str, Any] = field(default_factory=dict)


NativeSelector = Callable[[NativeQuery], NativeChoice | None]


def natives(module: Module, select: NativeSelector | None) -> Module:
    """The module with native operations where `select` has them."""
    if select is None:
        return module
    module = carry(module)
    facts = mask_facts(module)
    notes: list[Note] = []
    functions = {
        n: _function(module, f, select, facts[n], notes) for n, f in module.functions.items()
    }
    return module.with_functions(functions).noting(notes)


def _generics(module: Module, callee: Function, call: Op) -> dict[str, Dim]:
    sizes = {g.var: d for g, d in zip(callee.generics, call.attrs["generics"], strict=True)}
    subst = Subst.of(sizes)
    return {name: subst.dim(dim) for name, dim in module.arguments.get(callee.name, {}).items()}


def _function(
    module: Module,
    function: Function,
    select: NativeSelector,
    facts: Mapping[Value, MaskFact],
    notes: list[Note],
) -> Function:
    ops = {name for name, f in module.functions.items() if f.kind == "op"}
    if not any(op.kind == "call" and op.attrs["callee"] in ops for op in walk(function.body)):
        return function

    def transform(rw: Rewriter, op: Op) -> Sequence[Value] | None:
        if op.kind != "call" or op.attrs["callee"] not in ops:
            return None
        callee = module.functions[op.attrs["callee"]]
        known = {k: facts[v] for k, v in enumerate(op.operands) if v in facts}
        choice = select(
            NativeQuery(
                op, callee, module.origins[callee.name], known, _generics(module, callee, op)
            )
        )
        if choice is None:
            return None
        if any(op.operands[k] not in choice.operands for k in known):
            text = f"`{choice.kernel}` reads as far as the mask reaches; no mask is made"
            notes.append(Note("natives", module.origin(function.name), text))
        attrs = {**choice.attrs, "kernel": choice.kernel, "origin": module.origins[callee.name]}
        return rw.builder.emit_many(
            "native",
            tuple(map(rw.value, choice.operands)),
            attrs,
            types=tuple(v.type for v in op.results),
            names=tuple(v.name for v in op.results),
            span=op.span,
        )

    return Rewriter(transform, fresh=False).function(function)
