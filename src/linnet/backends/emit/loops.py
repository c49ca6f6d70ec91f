"""Values as variables hold them, and loops that Python runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeVar

from linnet.backends.emit.dtypes import rank_of
from linnet.backends.emit.sizes import SIZE_LIMIT
from linnet.backends.emit.values import host_expr
from linnet.backends.emit.writer import Writer
from linnet.backends.expr import NO_NAMES, Expr
from linnet.ir import Op, Region, Value

AnyWriter = TypeVar("AnyWriter", bound=Writer)


def variable_expr(w: Writer, value: Value, name: str, alias: frozenset[str] = NO_NAMES) -> Expr:
    """The value as variable `name` holds it after a branch or in a loop."""
    if w.module.hosts.is_host(value):
        return host_expr(value, name)
    return Expr(name, rank=rank_of(value.type), names=frozenset((name,)), alias=alias)


def given(w: Writer, result: Value, target: Value) -> Expr:
    """One use of a region's result in the form that `target`'s variable has."""
    return w.get(result) if w.module.hosts.is_host(target) else w.component(result)


def assign_together(w: Writer, names: Sequence[str], exprs: Sequence[Expr]) -> None:
    """`a, b = x, y` in one step, leaving out what is already there."""
    pairs = [(n, e) for n, e in zip(names, exprs, strict=True) if n != e.text]
    clash = any(n in e.names for i, (n, _) in enumerate(pairs) for _, e in pairs[i + 1 :])
    if len(pairs) > 1 and clash:
        w.line(f"{', '.join(n for n, _ in pairs)} = {', '.join(e.text for _, e in pairs)}")
        return
    for name, expr in pairs:
        w.line(f"{name} = {expr.text}")


def can_take(
    w: Writer, expr: Expr, exprs: Sequence[Expr], locked: frozenset[str] = NO_NAMES
) -> bool:
    """Whether the operand's own variable can be carried: nobody reads it after the loop starts."""
    name = expr.text
    if not name.isidentifier() or name in w.size_names.values() or name in locked:
        return False
    if name not in w.owner or w.owner[name][1] != w.region:
        return False
    if sum(1 for each in exprs if name in each.names) > 1:
        return False
    return all(w.left[reader] <= 0 for reader in w.holders[name])


class Carried:
    """The variables a loop carries: set before it, again at the end of every turn."""

    def __init__(
        self, w: Writer, operands: Sequence[Value], results: Sequence[Value],
        params: Sequence[Value], locked: frozenset[str] = NO_NAMES,
    ) -> None:  # fmt: skip
        """Variables in `locked` keep their values."""
        self.w, self.results = w, results
        w.flush(locked)
        wanted = [p.name or r.name or o.name or "carried"
                  for p, r, o in zip(params, results, operands, strict=True)]  # fmt: skip
        exprs = [given(w, o, r) for o, r in zip(operands, results, strict=True)]
        self.names: list[str] = []
        before = w.locked
        for k, (name, expr) in enumerate(zip(wanted, exprs, strict=True)):
            if can_take(w, expr, exprs):
                self.names.append(expr.text)
                continue
            others = [each.names for i, each in enumerate(exprs) if i != k]
            w.locked = before.union(locked, self.names, *others)
            chosen = w.variable(None, name, expr)
            w.line(f"{chosen} = {expr.text}")
            w.owner.pop(chosen, None)
            self.names.append(chosen)
        w.locked = before

    def enter(self, params: Sequence[Value]) -> None:
        """Binds a region's parameters to the variables."""
        self._hold(params)

    def leave(self, values: Sequence[Value]) -> None:
        """Sets the variables for the next turn."""
        exprs = [given(self.w, v, r) for v, r in zip(values, self.results, strict=True)]
        assign_together(self.w, self.names, exprs)

    def finish(self) -> None:
        """Binds the results to the variables, after the loop."""
        self._hold(self.results)

    def _hold(self, values: Sequence[Value]) -> None:
        w = self.w
        for value, result, name in zip(values, self.results, self.names, strict=True):
            w.hold(value, variable_expr(w, result, name, w.memory))
            w.owner[name] = (value.id, w.region)


def emit_static_for(w: AnyWriter, op: Op, write: Callable[[AnyWriter, Region], None]) -> None:
    """`for i in range(...)`, between sizes."""
    body = op.regions[0]
    start, stop = w.size(op.attrs["start"]), w.size(op.attrs["stop"])
    carried = Carried(w, op.operands, op.results, body.params[1:])
    index = body.params[0]
    name = w.names.fresh(index.name or "i")
    span = stop.text if start.constant == 0 else f"{start.text}, {stop.text}"
    w.before_turns(body)
    with w.block(f"for {name} in range({span}):"):
        low = start.constant if start.constant is not None else -SIZE_LIMIT
        w.hold(index, replace(host_expr(index, name), bounds=(low, SIZE_LIMIT)))
        carried.enter(body.params[1:])
        write(w, body)
        carried.leave(body.results)
    carried.finish()


def run_text(op: Op) -> str:
    """The slice of the array that a loop over blocks runs over, `` where it is all of it."""
    first, last = op.attrs.get("start"), op.attrs.get("stop")
    if first is None and last is None:
        return ""
    return f"[{first or 0}:{'' if last is None else last}]"
