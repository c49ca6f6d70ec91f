"""One specialised function as one C++ function."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from linnet.diagnostics import InternalError
from linnet.dims import Symbol
from linnet.ir import Op, Region, Value
from linnet.native.emit import aggregates, control, elementwise, layout, members, reductions
from linnet.native.emit.dtypes import held, stored
from linnet.native.emit.leaves import Leaf, leaves, rebuilt
from linnet.native.emit.names import comment
from linnet.native.emit.values import Maybe
from linnet.native.emit.writer import Writer
from linnet.passes.join import JOINED
from linnet.types import TensorType

if TYPE_CHECKING:
    from linnet.native.emit.module import Callee, ModuleWriter

Handler = Callable[[Writer, Op], None]

HANDLERS: dict[str, Handler] = {
    "const": elementwise.emit_const, "dim": elementwise.emit_dim, "iota": elementwise.emit_iota,
    "cast": elementwise.emit_cast, "select": elementwise.emit_select,
    "broadcast": layout.emit_broadcast, "reshape": layout.emit_reshape,
    "permute": layout.emit_permute, "concat": layout.emit_concat, "slice": layout.emit_slice,
    "gather": layout.emit_gather, "reduce": reductions.emit_reduce,
    "contract": reductions.emit_contract, "cumsum": reductions.emit_cumsum,
    "tuple": aggregates.emit_tuple, "tuple_get": aggregates.emit_tuple_get,
    "struct": aggregates.emit_struct, "struct_get": aggregates.emit_struct_get,
    "some": aggregates.emit_some, "none": aggregates.emit_none, "enum": aggregates.emit_enum,
    "param": members.emit_param, "state_read": members.emit_state_read,
    "state_write": members.emit_state_write, "call": members.emit_call,
    "native": members.emit_native,
    **dict.fromkeys(elementwise.UNARY, elementwise.emit_unary),
    **dict.fromkeys(elementwise.BINARY, elementwise.emit_binary),
}  # fmt: skip

_CONTROL: dict[str, Callable[[Writer, Op, control.RegionWriter], None]] = {
    "if": control.emit_if, "match_optional": control.emit_match_optional,
    "match_enum": control.emit_match_enum, "match_sub": control.emit_match_sub,
    "while": control.emit_while, "for": control.emit_for,
    "static_for": control.emit_static_for, "for_subs": control.emit_for_subs,
}  # fmt: skip

HANDLED = frozenset((*HANDLERS, *_CONTROL))


def write_region(w: Writer, region: Region) -> None:
    for op in region.ops:
        if op in w.absorbed:
            continue
        w.at(op)
        handler = members.emit_joined if op.attrs.get(JOINED) else HANDLERS.get(op.kind)
        if handler is not None:
            handler(w, op)
            continue
        branching = _CONTROL.get(op.kind)
        if branching is None:
            raise InternalError("native.emit", f"no code for `{op.kind}`", op.span)
        branching(w, op, write_region)


def write_function(module: ModuleWriter, callee: Callee) -> list[str]:
    """The lines of one function, its signature among `callee.header`."""
    function = callee.function
    w = Writer(module, function, callee.instance)
    parameters = ["Context& context"]
    if callee.takes_block:
        parameters.append(f"{module.struct_of(callee)}& block")
    for param in function.params:
        found = leaves(param.type, param.name)
        names = [w.names.fresh(leaf.name) for leaf in found]
        parameters += [f"{_given(leaf)} {name}" for leaf, name in zip(found, names, strict=True)]
        w.env[param.value] = rebuilt(param.type, iter(names))
    for generic in function.generics:
        if isinstance(generic.var, Symbol):
            name = w.names.fresh(generic.name)
            w.size_names[generic.var] = name
            parameters.append(f"int64_t {name}")
    outs = _outs(w, callee)
    parameters += outs[1]
    _targets(w, callee, outs[0])
    body = function.body
    for value, param in zip(body.params, function.params, strict=False):
        w.env[value] = w.env[param.value]
    write_region(w, body)
    _finish(w, callee, outs[0])
    kind = held(leaves(body.results[0].type, "out")[0].dtype) if callee.by_value else "void"
    callee.header = f"{kind} {callee.name}({', '.join(parameters)})"
    scope = [] if callee.by_value or callee.keeps else ["  const Scope scope(context.arena);"]
    if not any("context.arena" in line or "(context" in line for line in w.lines):
        scope = []
    origin = f"// {comment(callee.origin_text)}"
    return [origin, f"static {callee.header} {{", *scope, *w.lines, "}"]


def _given(leaf: Leaf) -> str:
    return f"const {stored(leaf.dtype)}*" if leaf.is_tensor else held(leaf.dtype)


def _outs(w: Writer, callee: Callee) -> tuple[list[str], list[str]]:
    """Names and declarations of where the result goes."""
    if callee.by_value or not callee.function.body.results:
        return [], []
    value = callee.function.body.results[0]
    names, parameters = [], []
    for leaf in leaves(value.type, "out"):
        names.append(w.names.fresh(leaf.name))
        kind = f"{stored(leaf.dtype)}*" if leaf.is_tensor else f"{held(leaf.dtype)}&"
        parameters.append(f"{kind} {names[-1]}")
    return names, parameters


def _targets(w: Writer, callee: Callee, outs: list[str]) -> None:
    """Lets the operations that make the result write it where the caller wants it."""
    body = callee.function.body
    if not outs:
        return
    makers = {result: op for op in body.ops for result in op.results}
    names = iter(outs)

    def visit(value: Value) -> None:
        op = makers.get(value)
        single = w.left.get(value) == 1
        if isinstance(value.type, TensorType):
            name = next(names)
            while op is not None and single and value.type.shape:
                w.targets[value] = name
                if op.kind != "reshape" and op.attrs.get("alias") != (0,):
                    break
                value = op.operands[0]
                op, single = makers.get(value), w.left.get(value) == 1
        elif op is not None and single and op.kind == "tuple":
            for operand in op.operands:
                visit(operand)
        else:
            for _ in leaves(value.type, ""):
                next(names)

    visit(body.results[0])


def _finish(w: Writer, callee: Callee, outs: list[str]) -> None:
    results = callee.function.body.results
    if not results:
        return
    w.span = callee.function.span
    if callee.by_value:
        w.line(f"return {w.scalar(results[0]).text};")
        return
    entry = w.env[results[0]]
    if isinstance(entry, Maybe) and entry.has == outs[0]:
        return
    control.returned(w, results[0], outs)
