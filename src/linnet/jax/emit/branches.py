"""Branches: their arms are local functions, of which the device runs one."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from linnet.backends.emit.loops import variable_expr
from linnet.backends.expr import Expr
from linnet.diagnostics import InternalError
from linnet.ir import Op, Region, Value
from linnet.jax.emit.names import STATE
from linnet.jax.emit.state import writes_state
from linnet.jax.emit.writer import Writer
from linnet.types import EnumType, TensorType

RegionWriter = Callable[[Writer, Region], None]


class Arms:
    """The arms of one branching op as local functions, all giving the same results."""

    def __init__(self, w: Writer, op: Op, write: RegionWriter) -> None:
        self.w, self.op, self.write = w, op, write
        self.kept = [k for k, v in enumerate(op.results) if w.left[v.id] > 0]
        self.writes = any(writes_state(w, region) for region in op.regions)

    @property
    def needed(self) -> bool:
        return bool(self.kept) or self.writes

    def arm(self, wanted: str, region: Region) -> str:
        """Writes one arm; its parameters are the region's."""
        w = self.w
        name = w.names.fresh(wanted)
        params = [w.names.fresh(v.name or "held") for v in region.params]
        listed = [*params, *([STATE] if self.writes else [])]
        with w.block(f"def {name}({', '.join(listed)}):"):
            for value, param in zip(region.params, params, strict=True):
                w.hold(value, variable_expr(w, value, param))
            self.write(w, region)
            give(w, [region.results[k] for k in self.kept], self.writes)
        return name

    def finish(self, text: str) -> None:
        """`text` is the call that runs one of the arms, without its closing parenthesis."""
        w = self.w
        ending = f", {STATE})" if self.writes else ")"
        receive(w, [self.op.results[k] for k in self.kept], f"{text}{ending}", self.writes)


def give(w: Writer, values: Sequence[Value], state: bool) -> None:
    """The `return` of a local function: values as arrays, and the state."""
    exprs = [w.component(v) for v in values]
    w.flush(frozenset().union(*(e.names for e in exprs)))
    parts = [e.text for e in exprs] + ([STATE] if state else [])
    w.line(f"return {', '.join(parts) if parts else '()'}")


def receive(w: Writer, values: Sequence[Value], text: str, state: bool) -> None:
    """`a, b, state = text`."""
    if state:
        w.keep_old_state()
    names = [w.place_for(v, "chosen") for v in values] + ([STATE] if state else [])
    w.line(f"{', '.join(names)} = {text}" if names else text)


def emit_if(w: Writer, op: Op, write: RegionWriter) -> None:
    condition = w.get(op.operands[0])
    plain = not op.regions[0].ops and not op.regions[1].ops
    if plain and len(op.results) == 1 and isinstance(op.results[0].type, TensorType):
        a, b = (w.component(region.results[0]) for region in op.regions)
        text = f"jnp.where({condition.text}, {a.text}, {b.text})"
        names = a.names | b.names | condition.names
        w.define(op.results[0], Expr(text, rank=a.rank, names=names), hint="chosen")
        return
    w.flush(condition.names)
    _either(w, op, write, f"lax.cond({condition.text}", ("then", "otherwise"))


def emit_match_optional(w: Writer, op: Op, write: RegionWriter) -> None:
    w.flush()
    optional = w.get(op.operands[0])
    call = f"{w.module.helper('match_optional')}({optional.text}"
    _either(w, op, write, call, ("present", "absent"))


def _either(w: Writer, op: Op, write: RegionWriter, call: str, names: tuple[str, str]) -> None:
    """`call`, which has yet to be closed, with the two arms under `names`."""
    arms = Arms(w, op, write)
    if arms.needed:
        first, second = map(arms.arm, names, op.regions)
        arms.finish(f"{call}, {first}, {second}")


def emit_match_enum(w: Writer, op: Op, write: RegionWriter) -> None:
    w.flush()
    subject = w.get(op.operands[0])
    type_ = op.operands[0].type
    if not isinstance(type_, EnumType):
        raise InternalError("jax.emit", f"{type_} is no enum", op.span)
    arms = Arms(w, op, write)
    if not arms.needed:
        return
    names = [arms.arm("case", region) for region in op.regions]
    chosen = {case: k for k, cases in enumerate(op.attrs["cases"]) for case in cases}
    table = [chosen[case] for case in range(len(type_.cases))]
    at = subject.text
    if table != list(range(len(names))):
        at = f"jnp.array({table}, jnp.int32)[{subject.text}]"
    arms.finish(f"lax.switch({at}, ({', '.join(names)},)")


def emit_match_sub(w: Writer, op: Op, write: RegionWriter) -> None:
    raise InternalError("jax.emit", "a `match` on a child block was not decided", op.span)
