"""bounds: what an entry asks of its integer inputs, worked out from the IR.

An index outside its axis is an error where it can be seen before anything runs. This pass follows
an entry's inputs to every index they reach (`tokens` into an embedding, `pos` into a cache) and
gives a requirement for each, in the entry's own names. A divisor of integers is one more: it is
not 0. A requirement that fails is certainly broken when the entry runs; what cannot be worked out
is not required.

It needs functions that were checked, generic or specialised, in which library operations are still
calls (it knows the meaning of cache writes by name); it changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from linnet.diagnostics import Span
from linnet.dims import Dim, Symbol
from linnet.ir.core import Function, GenericVar
from linnet.passes.bound import Binding
from linnet.passes.bounding.analysis import Analysis
from linnet.passes.bounding.control import CONTROL
from linnet.passes.bounding.host import HostRun, Unavailable
from linnet.passes.bounding.values import Found, Guard, Host, Leaves
from linnet.types import DType, GenericArg


@dataclass(frozen=True, slots=True, eq=False)
class Requirement:
    """An index that inputs decide lies in `0 .. extent - 1`; without an extent it is a divisor,
    and not 0.

    `lo` and `hi` are its bounds in terms of inputs and sizes, `host` the index itself where they
    do not say it all. It counts when every dim in `positive` is at least 1 and every guard holds.
    """

    lo: Dim | None
    hi: Dim | None
    host: Host | None
    extent: Dim | None
    positive: tuple[Dim, ...]
    guards: tuple[Guard, ...]
    leaves: Leaves
    sizes: Mapping[str, Symbol]
    fixed: Mapping[str, int]
    span: Span | None

    @property
    def names(self) -> frozenset[str]:
        """The inputs it looks at."""
        found = self.leaves.names(self.lo) | self.leaves.names(self.hi)
        for host in (self.host, *(guard.value for guard in self.guards)):
            found |= frozenset() if host is None else host.names
        return found

    def check(self, inputs: Mapping[str, Any], sizes: Mapping[str, int]) -> str | None:
        """What is wrong, or None. Inputs that are not given (not on the host) are not looked at."""
        return self.check_in(self._run(inputs, sizes))

    def _run(self, inputs: Mapping[str, Any], sizes: Mapping[str, int]) -> HostRun:
        return HostRun(inputs, self.known(sizes), self.leaves.by_symbol)

    def known(self, sizes: Mapping[str, int]) -> dict[Symbol, int]:
        """Those sizes, given by name, as the requirement's own symbols."""
        given = {**self.fixed, **sizes}
        return {symbol: given[name] for name, symbol in self.sizes.items() if name in given}

    def check_in(self, run: HostRun) -> str | None:
        """As `check`, sharing what other requirements have worked out."""
        try:
            if any(run.dim(dim) < 1 for dim in self.positive):
                return None
            if not all(map(run.holds, self.guards)):
                return None
            return self._problem(run)
        except Unavailable:
            return None

    def _problem(self, run: HostRun) -> str | None:
        if self.extent is None:
            return self._zero(run)
        extent = run.dim(self.extent)
        for bound, low in ((self.lo, True), (self.hi, False)):
            if bound is None:
                continue
            value = run.dim(bound)
            if value < 0 if low else value >= extent:
                return f"{self._shown(bound)} is {value}, {self._outside(value, extent)}"
        if self.host is None or (self.lo is not None and self.hi is not None):
            return None
        index = run.value(self.host)
        for value in (int(index.min()), int(index.max())) if index.size else ():
            if not 0 <= value < extent:
                names = " and ".join(f"`{name}`" for name in sorted(self.host.names))
                verb = "gives" if len(self.host.names) == 1 else "give"
                return f"{names} {verb} the index {value}, {self._outside(value, extent)}"
        return None

    def _zero(self, run: HostRun) -> str | None:
        """What is wrong with a divisor. Without `host` it takes every value between its bounds."""
        bounds = [bound for bound in (self.lo, self.hi) if bound is not None]
        values = list(map(run.dim, bounds))
        for bound, value in zip(bounds, values, strict=True):
            if value == 0:
                return f"{self._shown(bound)} is 0, and an integer is divided by it"
        if self.host is None:
            if values and min(values) < 0 < max(values):
                shown = " to ".join(map(self._shown, bounds))
                return f"{shown} goes through 0, and an integer is divided by it"
            return None
        if not (run.value(self.host) == 0).any():
            return None
        names = " and ".join(f"`{name}`" for name in sorted(self.host.names))
        verb = "gives" if len(self.host.names) == 1 else "give"
        return f"{names} {verb} a 0 by which an integer is divided"

    def _shown(self, bound: Dim) -> str:
        def name(symbol: Symbol) -> str:
            leaf = self.leaves.by_symbol.get(symbol)
            return symbol.name if leaf is None else str(leaf)

        return bound.render(name)

    def _outside(self, value: int, extent: int) -> str:
        assert self.extent is not None
        if value < 0:
            where = "before the first position"
        else:
            where = "past the last position"
        if self.extent.constant is not None:
            return f"{where} of an axis of {extent}"
        return f"{where} of axis {self.extent} ({extent})"

    def __str__(self) -> str:
        """`0 <= pos, pos + S - 1 < MaxSeq`, for `explain` and tests."""
        parts: list[str] = []
        if self.extent is None:
            ends = [
                self._shown(end) for end in dict.fromkeys((self.lo, self.hi)) if end is not None
            ]
            return f"{' to '.join(ends) or ', '.join(sorted(self.names))} != 0"
        if self.lo is not None:
            parts.append(f"0 <= {self._shown(self.lo)}")
        if self.hi is not None:
            parts.append(f"{self._shown(self.hi)} < {self.extent}")
        if len(parts) < 2 and self.host is not None:
            parts.append(f"0 <= index({', '.join(sorted(self.host.names))}) < {self.extent}")
        return ", ".join(parts)


def input_requirements(
    functions: Mapping[str, Function],
    entry: Function,
    *,
    args: Mapping[GenericVar, GenericArg] | None = None,
    origins: Mapping[str, str] | None = None,
    fixed: Mapping[str, int] | None = None,
) -> tuple[Requirement, ...]:
    """What `entry` asks of its inputs.

    Generics of the entry stand for themselves, and their values are given by name when a
    requirement is checked; `args` binds some of them beforehand (dtypes above all, so that it is
    known which values are integers), `fixed` gives sizes by name that every check would repeat.
    `origins` gives specialised functions' source names.
    """
    analysis = Analysis(functions, origins or {}, CONTROL)
    analysis.entry(entry, args or {})
    sizes = {g.name: g.var for g in entry.generics if isinstance(g.var, Symbol)}
    grouped: dict[Any, list[Found]] = {}
    for found in analysis.found:
        same = grouped.setdefault(_key(found), [])
        positive = set(found.positive)
        if any(set(other.positive) <= positive for other in same):
            continue  # another asks the same under less
        same[:] = [other for other in same if not positive <= set(other.positive)] + [found]
    return tuple(
        _requirement(found, analysis, sizes, fixed or {})
        for same in grouped.values()
        for found in same
    )


def bound_requirements(
    binding: Binding, entry: str, forms: Mapping[str, GenericArg] | None = None
) -> tuple[Requirement, ...]:
    """What the entry of a bound model asks of its inputs; the model's generics need not be given
    again when a requirement is checked. `forms` gives the entry's own dtypes and shapes."""
    program = binding.program
    function = program.entries(binding.block)[entry]
    values = binding.generics
    own = forms or {}
    args: dict[GenericVar, GenericArg] = {
        g.var: own[g.name] for g in function.generics if g.name in own
    }
    fixed: dict[str, int] = {}
    for generic in function.generics:
        value = values.get(generic.name)
        if isinstance(value, int):
            fixed[generic.name] = value
        elif isinstance(value, DType):
            args[generic.var] = value
        elif value is not None:
            args[generic.var] = tuple(map(Dim.of, value))
    return input_requirements(program.functions, function, args=args, fixed=fixed)


def violations(
    requirements: Iterable[Requirement], inputs: Mapping[str, Any], sizes: Mapping[str, int]
) -> tuple[str, ...]:
    """Every broken requirement's message, each once."""
    messages: dict[str, None] = {}
    run: HostRun | None = None
    for requirement in requirements:
        if run is None or run.leaves is not requirement.leaves.by_symbol:
            run = requirement._run(inputs, sizes)
        message = requirement.check_in(run)
        if message is not None:
            messages[message] = None
    return tuple(messages)


def _key(found: Found) -> Any:
    index = found.index
    host = _host(found)
    guards = tuple((guard.value, guard.expected) for guard in found.guards)
    return index.lo, index.hi, host, found.extent, guards


def _host(found: Found) -> Host | None:
    """The value itself, where the bounds do not say all that is asked of it."""
    index = found.index
    enough = index.bounded and (found.extent is not None or index.dense)
    return None if enough else index.host


def _requirement(
    found: Found, analysis: Analysis, sizes: Mapping[str, Symbol], fixed: Mapping[str, int]
) -> Requirement:
    index, leaves = found.index, analysis.leaves
    return Requirement(
        index.lo,
        index.hi,
        _host(found),
        found.extent,
        found.positive,
        found.guards,
        leaves,
        sizes,
        fixed,
        found.op.span,
    )


__all__ = ["Requirement", "bound_requirements", "input_requirements", "violations"]
