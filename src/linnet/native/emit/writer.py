"""Writing one function: lines, names, and which values lie in memory.

A value is kept lazy (see `values`) while that is cheap or it has one reader, and written to memory
where it is needed there: for a kernel, a call, a loop, or before the state it reads is changed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from linnet.diagnostics import InternalError, Span
from linnet.dims import Dim, Symbol
from linnet.ir import Function, Op, Ref, Region, SubVar, Value
from linnet.ir.walk import free_values, use_counts
from linnet.native.emit.dtypes import HALF, dtype_of, held, stored, to_store
from linnet.native.emit.fusion import gated_products
from linnet.native.emit.names import Names, comment, quoted
from linnet.native.emit.nest import Nest
from linnet.native.emit.sizes import Size, size_text
from linnet.native.emit.values import (
    Buffer,
    Dims,
    Entry,
    Items,
    Lazy,
    Maybe,
    Scalar,
    Strided,
    Tensor,
    Term,
    is_unit,
)
from linnet.passes import Instance
from linnet.types import DType, TensorType

if TYPE_CHECKING:
    from linnet.native.emit.module import ModuleWriter

CHEAP = 3  # the work of an element that may be done again for each reader
DEEPEST = 24


class Writer:
    """The state of one function being written."""

    def __init__(self, module: ModuleWriter, function: Function, instance: Instance | None) -> None:
        self.module, self.function, self.instance = module, function, instance
        self.names = Names(module.top_names)
        self.lines: list[str] = []
        self.indent = 1
        self.env: dict[Value, Entry] = {}
        self.left: dict[Value, int] = use_counts(function)
        self.size_names: dict[Symbol, str] = {}
        self.subs: dict[SubVar, tuple[str, Instance]] = {}
        self.targets: dict[Value, str] = {}  # where a value that is returned is to be written
        self.gated = gated_products(function)
        self.absorbed: set[Op] = set()  # operations that another one's code takes care of
        self.span: Span | None = function.span
        self.shown: str = ""

    # --- text -----------------------------------------------------------------------------------

    def line(self, text: str) -> None:
        self.lines.append("  " * self.indent + text)

    def pragma(self, text: str) -> None:
        self.lines.append(f"#pragma {text}")

    @contextmanager
    def braces(self, header: str) -> Iterator[None]:
        self.line(f"{header} {{")
        self.indent += 1
        before, names = dict(self.env), self.names
        self.names = names.inner()
        yield
        self.names = names
        self.env = before  # what was put in memory inside is gone
        self.indent -= 1
        self.line("}")

    @contextmanager
    def measured(self, name: str) -> Iterator[None]:
        """Where a profile is wanted, the lines written inside are a place of their own in it."""
        if not self.module.options.profile:
            yield
            return
        self.line(f"context.profile.enter({self.module.place(name)});")
        yield
        self.line("context.profile.leave();")

    def at(self, op: Op) -> None:
        """Notes where in the source the next lines come from."""
        self.span = op.span or self.function.span

    @property
    def where(self) -> str:
        """The place in the source, as a C++ string."""
        return quoted("the program" if self.span is None else _place(self.span))

    def origin(self) -> None:
        """A comment with the source line, where it is not the one of the lines above."""
        if self.span is None:
            return
        shown = _place(self.span)
        if shown != self.shown:
            self.shown = shown
            self.line(f"// {comment(shown)}")

    # --- sizes ----------------------------------------------------------------------------------

    def size(self, dim: Dim) -> Size:
        return size_text(dim, self.size_names, self.where)

    def count(self, dims: Sequence[Dim]) -> str:
        """The number of elements, checked against overflow."""
        known = 1
        rest: list[str] = []
        for dim in dims:
            if dim.constant is not None:
                known *= dim.constant
            else:
                rest.append(self.size(dim).text)
        if not rest or known == 0:
            return str(known) if known < 2**31 else f"int64_t{{{known}}}"
        if known != 1:
            rest.append(str(known) if known < 2**31 else f"int64_t{{{known}}}")
        return rest[0] if len(rest) == 1 else f"product({', '.join(rest)})"

    # --- values ---------------------------------------------------------------------------------

    def entry(self, value: Value) -> Entry:
        """The value, for one use."""
        self.left[value] = self.left.get(value, 0) - 1
        if value not in self.env:
            raise InternalError("native.emit", f"{value!r} is used before it is made", value.span)
        found = self.env[value]
        if isinstance(found, Buffer) and found.param is not None:
            self.module.structs.use(found.param)
        return found

    def weight(self, value: Value) -> Buffer:
        """A kernel's weight: where it is a parameter, its packed form alone is looked at."""
        found = self.env.get(value)
        if not isinstance(found, Buffer) or found.param is None:
            return self.buffer(value)
        self.left[value] = self.left.get(value, 0) - 1
        return found

    def tensor(self, value: Value) -> Tensor:
        found = self.entry(value)
        if isinstance(found, Items | Maybe):
            raise InternalError("native.emit", f"{value!r} is no tensor", value.span)
        return found

    def scalar(self, value: Value) -> Scalar:
        found = self.tensor(value)
        if not isinstance(found, Scalar):
            raise InternalError("native.emit", f"{value!r} is no scalar", value.span)
        return found

    def buffer(self, value: Value) -> Buffer:
        """The value in memory."""
        found = self.tensor(value)
        if isinstance(found, Buffer):
            return found
        made = self.in_memory(found, value.name)
        self.env[value] = made
        return made

    def strided(self, value: Value) -> Strided:
        """The value in memory with a step for each axis, the last one's 1."""
        found = self.env.get(value)
        if isinstance(found, Lazy) and found.strided is not None and found.strided.steps[-1] == "1":
            self.left[value] = self.left.get(value, 0) - 1
            return found.strided
        made = self.buffer(value)
        steps = (self.count(made.dims[k + 1 :]) for k in range(len(made.dims)))
        return Strided(made.text, tuple(steps))

    def repeated(self, value: Value) -> Tensor:
        """The value for a reader that looks at elements more than once."""
        found = self.tensor(value)
        if isinstance(found, Lazy) and (found.cost > CHEAP or found.fails):
            made = self.in_memory(found, value.name)
            self.env[value] = made
            return made
        return found

    def define(self, value: Value, entry: Entry) -> None:
        """Makes `entry` the value: in memory at once where it is dear and read more than once."""
        if isinstance(entry, Lazy):
            uses = self.left.get(value, 0)
            if uses == 0:
                return
            if not entry.dims:
                entry = self.settle(entry, value)
            elif value in self.targets:
                entry = self.in_memory(entry, value.name, self.targets[value])
            elif (uses > 1 and (entry.cost > CHEAP or entry.fails)) or entry.depth > DEEPEST:
                entry = self.in_memory(entry, value.name)
        elif isinstance(entry, Scalar):
            entry = self._named(entry, value)
        self.env[value] = entry

    def _named(self, entry: Scalar, value: Value) -> Scalar:
        """The scalar in a variable where its text is long or it is read again."""
        if entry.const is not None or entry.text.replace("_", "").isalnum():
            return entry
        if self.left.get(value, 0) <= 1 and not value.name and len(entry.text) <= 60:
            return entry
        return self.variable(entry, value.name or "value")

    def variable(self, entry: Scalar, hint: str) -> Scalar:
        name = self.names.fresh(hint)
        self.line(f"const {held(entry.dtype)} {name} = {entry.text};")
        return Scalar(name, entry.dtype)

    def settle(self, entry: Lazy, value: Value) -> Scalar:
        """A lazy tensor of rank 0 in a register."""
        nest = Nest(self, ())
        term = nest.element(entry, ())
        self.origin()
        nest.write()
        made = Scalar(term.text, entry.dtype, atomic=term.atomic)
        if term.text.replace("_", "").isalnum():
            return made
        return self.variable(made, value.name or entry.name or "value")

    # --- memory ---------------------------------------------------------------------------------

    def take(self, dtype: DType, dims: Dims, hint: str, target: str | None = None) -> Buffer:
        """Memory for a tensor: fresh, or `target`."""
        if target is not None:
            return Buffer(target, dtype, dims)
        name = self.names.fresh(hint or "made")
        kind = stored(dtype)
        self.line(f"{kind}* const {name} = context.arena.take<{kind}>({self.count(dims)});")
        return Buffer(name, dtype, dims)

    def result(self, value: Value) -> Buffer:
        """Memory for an operation's result."""
        type_ = value.type
        assert isinstance(type_, TensorType)
        return self.take(dtype_of(type_), type_.dims, value.name, self.targets.get(value))

    def in_memory(self, entry: Tensor, hint: str, target: str | None = None) -> Buffer:
        """The tensor in memory, at `target` where that is given."""
        if isinstance(entry, Buffer):
            return entry if target is None or target == entry.text else self.copied(entry, target)
        self.origin()
        dims = entry.dims if isinstance(entry, Lazy) else ()
        made = self.take(entry.dtype, dims, hint or getattr(entry, "name", ""), target)
        self.fill(made, entry)
        return made

    def fill(self, out: Buffer, entry: Tensor, start: Term | None = None) -> None:
        """Writes every element of `entry`, from element `start` of `out` on."""
        dims = entry.dims if not isinstance(entry, Scalar) else ()
        if isinstance(entry, Lazy) and entry.added is not None and start is None:
            a, b = entry.added
            self.module.uses_kernels = True
            self.line(f"linnet::add({a.text}, {b.text}, {self.count(dims)}, {out.text});")
            return
        nest = Nest(self, dims)
        term = nest.element(entry, nest.index, last=True)
        place = nest.flat(dims, nest.index)
        text = place.text if start is None else f"{start.operand} + {place.operand}"
        nest.inner(f"{out.text}[{text}] = {to_store(out.dtype, term.text)};")
        if nest.depth:
            nest.pragmas[nest.depth - 1] = "omp simd"
        nest.write(parallel=self.module.options.numerics != "exact")

    def copied(self, entry: Buffer, target: str) -> Buffer:
        count, kind = self.count(entry.dims), stored(entry.dtype)
        if all(is_unit(dim) for dim in entry.dims):
            self.line(f"{target}[0] = {entry.text}[0];")
        else:
            self.line(f"copy<{kind}>({target}, {entry.text}, {count});")
        return Buffer(target, entry.dtype, entry.dims)

    # --- what is about to change ------------------------------------------------------------------

    def flush(self) -> None:
        """Puts in memory every value still needed that reads a state not yet changed."""
        for value, entry in list(self.env.items()):
            if isinstance(entry, Lazy) and entry.roots and self.left.get(value, 0) > 0:
                self.env[value] = self.in_memory(entry, value.name)

    def enter(self, op: Op, loop: bool) -> None:
        """Readies the values that an operation's regions take from outside."""
        if any(self.module.writes(region) for region in op.regions):
            self.flush()
        for region in op.regions:
            for value in free_values(region):
                entry = self.env.get(value)
                if not isinstance(entry, Lazy):
                    continue
                if entry.fails or entry.roots or entry.cost > (CHEAP if loop else 0):
                    self.env[value] = self.in_memory(entry, value.name)

    # --- blocks ---------------------------------------------------------------------------------

    def ref(self, ref: Ref) -> str:
        """The C++ expression of a block or member."""
        text = "block" if ref.root is None else self.subs[ref.root][0]
        for step in ref.steps:
            text += f"[{step}]" if isinstance(step, int) else f".{self.module.member(step)}"
        return text

    def instance_at(self, ref: Ref) -> Instance | tuple[Instance, ...]:
        start = self.instance if ref.root is None else self.subs[ref.root][1]
        if start is None:
            raise InternalError("native.emit", f"no block for {ref}", self.span)
        return start.child(ref.steps)


def _place(span: Span) -> str:
    return f"{span.file.path}:{span.line}"


def region_results(region: Region) -> tuple[Value, ...]:
    return region.results


__all__ = ["CHEAP", "HALF", "Writer"]
