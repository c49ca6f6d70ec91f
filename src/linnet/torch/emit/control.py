"""Branches and loops: Python's own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from linnet.backends.emit.dtypes import dtype_of, rank_of, tensor
from linnet.backends.emit.loops import (
    Carried,
    assign_together,
    given,
    run_text,
    variable_expr,
)
from linnet.backends.emit.values import host_expr
from linnet.backends.expr import COMPARE, TERNARY, Expr
from linnet.backends.names import attribute
from linnet.ir import Op, Region, Value
from linnet.torch.emit.aggregates import is_nested
from linnet.torch.emit.dtypes import carried
from linnet.torch.emit.writer import Writer
from linnet.types import EnumType

RegionWriter = Callable[[Writer, Region], None]


# --- branches -------------------------------------------------------------------------------------


class Branches:
    """Writes the arms of one branching op, all of which set the same variables."""

    def __init__(self, w: Writer, op: Op, write: RegionWriter) -> None:
        self.w, self.op, self.write = w, op, write
        w.flush()
        self.results = [v for v in op.results if w.left[v.id] > 0]
        for k, value in enumerate(op.results):
            if value not in self.results:  # nor is what the arms give for it; effects still happen
                for region in op.regions:
                    w.left[region.results[k].id] -= 1
        self.variables = [w.names.fresh(v.name or "chosen") for v in self.results]
        self.alias: list[frozenset[str]] = [frozenset()] * len(self.results)

    def arm(self, header: str, region: Region) -> None:
        w = self.w
        with w.block(header):
            self.write(w, region)
            kept = [k for k, v in enumerate(self.op.results) if v in self.results]
            exprs = [given(w, region.results[k], self.op.results[k]) for k in kept]
            for k, expr in enumerate(exprs):
                self.alias[k] = self.alias[k] | expr.alias
            assign_together(w, self.variables, exprs)

    def finish(self) -> None:
        for value, name, alias in zip(self.results, self.variables, self.alias, strict=True):
            self.w.hold(value, variable_expr(self.w, value, name, alias))
            self.w.owner[name] = (value.id, self.w.region)


def emit_if(w: Writer, op: Op, write: RegionWriter) -> None:
    plain = not op.regions[0].ops and not op.regions[1].ops
    if plain and len(op.results) == 1:
        _inline_if(w, op, w.get(op.operands[0]))
        return
    w.flush()
    condition = w.get(op.operands[0])
    arms = Branches(w, op, write)
    arms.arm(f"if {condition.text}:", op.regions[0])
    other = op.regions[1]
    if other.ops or arms.results:
        arms.arm("else:", other)
    arms.finish()


def _inline_if(w: Writer, op: Op, condition: Expr) -> None:
    """`a if c else b` where both arms are values that are there already."""
    value = op.results[0]
    a, b = (given(w, region.results[0], value) for region in op.regions)
    text = f"{a.at(TERNARY + 1)} if {condition.at(TERNARY + 1)} else {b.at(TERNARY)}"
    names = a.names | b.names | condition.names
    made = variable_expr(w, value, text, a.alias | b.alias)
    w.define(value, replace(made, prec=TERNARY, names=names), hint="chosen")


def emit_match_optional(w: Writer, op: Op, write: RegionWriter) -> None:
    operand = op.operands[0]
    w.flush()
    optional = w.settle(operand, "optional")
    arms = Branches(w, op, write)
    (inner,) = op.regions[0].params
    text = f"{optional.text}[0]" if is_nested(operand.type) else optional.text
    w.hold(inner, Expr(text, rank=rank_of(inner.type), names=optional.names,
                       alias=optional.alias))  # fmt: skip
    arms.arm(f"if {optional.at(COMPARE + 1)} is not None:", op.regions[0])
    if op.regions[1].ops or arms.results:
        arms.arm("else:", op.regions[1])
    arms.finish()


def emit_match_enum(w: Writer, op: Op, write: RegionWriter) -> None:
    w.flush()
    subject = w.settle(op.operands[0], "case")
    type_ = op.operands[0].type
    arms = Branches(w, op, write)
    count = len(op.regions)
    for k, (cases, region) in enumerate(zip(op.attrs["cases"], op.regions, strict=True)):
        if k == count - 1 and k > 0:
            arms.arm("else:", region)
            continue
        texts = (
            [w.module.types.case(type_, case) for case in cases]
            if isinstance(type_, EnumType)
            else []
        )
        test = f"== {texts[0]}" if len(texts) == 1 else f"in ({', '.join(texts)},)"
        header = (
            "if True:" if count == 1 else f"{'if' if k == 0 else 'elif'} {subject.text} {test}:"
        )
        arms.arm(header, region)
    arms.finish()


def emit_match_sub(w: Writer, op: Op, write: RegionWriter) -> None:
    arms = Branches(w, op, write)
    arms.arm(f"if {w.ref(op.attrs['ref'])} is not None:", op.regions[0])
    if op.regions[1].ops or arms.results:
        arms.arm("else:", op.regions[1])
    arms.finish()


# --- loops ----------------------------------------------------------------------------------------


def emit_while(w: Writer, op: Op, write: RegionWriter) -> None:
    test, body = op.regions
    carried = Carried(w, op.operands, op.results, test.params)
    with w.block("while True:"):
        header = len(w.lines) - 1
        carried.enter(body.params)
        carried.enter(test.params)
        for name in carried.names:  # the body still reads what the test reads
            w.owner.pop(name, None)
        write(w, test)
        condition = w.get(test.results[0])
        if len(w.lines) == header + 1 and not w.pending:
            w.lines[header] = w.lines[header].replace("while True:", f"while {condition.text}:")
        else:
            w.flush(condition.names)
            inverse = condition.text if condition.prec >= COMPARE else f"({condition.text})"
            w.line(f"if not {inverse}:")
            w.lines.append("    " * (w.indent + 1) + "break")
        carried.enter(body.params)
        write(w, body)
        carried.leave(body.results)
    carried.finish()


def emit_for(w: Writer, op: Op, write: RegionWriter) -> None:
    w.flush()
    first, stop = w.get(op.operands[0]), w.get(op.operands[1])
    yields = op.attrs.get("yields", 0)
    count = len(op.results) - yields
    body = op.regions[0]
    bounds = [e.text if e.host else f"int({e.text})" for e in (first, stop)]
    locked = first.names | stop.names
    carried = Carried(w, op.operands[2:], op.results[:count], body.params[1:], locked)
    stacked = [w.names.fresh(value.name or "stacked") for value in op.results[count:]]
    for each in stacked:
        w.line(f"{each} = []")
    index = body.params[0]
    name = w.names.fresh(index.name or "i")
    span = bounds[1] if bounds[0] == "0" else ", ".join(bounds)
    with w.block(f"for {name} in range({span}):"):
        w.hold(index, _counter(index, name, first))
        carried.enter(body.params[1:])
        write(w, body)
        for each, value in zip(stacked, body.results[count:], strict=True):
            w.line(f"{each}.append({w.tensor(value).text})")
        carried.leave(body.results[:count])
    carried.finish()
    for value, each in zip(op.results[count:], stacked, strict=True):
        _stack(w, value, each)


def _counter(index: Value, name: str, first: Expr) -> Expr:
    """A loop's counter, which is never below where it starts."""
    counter = host_expr(index, name)
    if counter.bounds is None or first.bounds is None:
        return counter
    low, high = counter.bounds
    return replace(counter, bounds=(max(low, first.bounds[0]), high))


def _stack(w: Writer, value: Value, name: str) -> None:
    type_ = tensor(value.type)
    empty, _ = w.shape(type_.dims)
    made = f"torch.zeros({empty}, dtype={carried(dtype_of(type_))}, device=device)"
    w.line(f"{name} = torch.stack({name}) if {name} else {made}")
    w.hold(value, Expr(name, rank=len(type_.shape), names=frozenset((name,))))


def emit_for_subs(w: Writer, op: Op, write: RegionWriter) -> None:
    body, array, var = op.regions[0], op.attrs["array"], op.attrs["var"]
    carried = Carried(w, op.operands, op.results, body.params)
    name = w.names.fresh(var.name or attribute(str(array.steps[-1])))
    w.subs[var] = name
    with w.block(f"for {name} in {w.ref(array)}{run_text(op)}:"):
        carried.enter(body.params)
        w.in_sub_loop += 1
        write(w, body)
        w.in_sub_loop -= 1
        carried.leave(body.results)
    carried.finish()
