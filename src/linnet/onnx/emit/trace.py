"""Writing a graph by running the functions of a lowered program on held values.

Calls are written where they stand and loops over child blocks are written out: the graph is flat,
every node named after the block it belongs to. Sizes of callees are expressed in the entry's own.
Parameters, states and what sizes alone give live in the main graph.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from linnet.backends import folding
from linnet.diagnostics import InternalError
from linnet.dims import Dim
from linnet.ir import Function, Op, Ref, Region, SubVar, Value
from linnet.ir.renumber import substitute_attrs
from linnet.onnx.emit import elementwise, layout, reductions, views
from linnet.onnx.emit.core import Core
from linnet.onnx.emit.dtypes import dtype_of, tensor
from linnet.onnx.emit.errors import ExportError
from linnet.onnx.emit.held import Case, Held, Present
from linnet.passes import Instance, Lowered
from linnet.passes.placing import Traits
from linnet.types import DType, EnumType, StructType, Subst, Type

if TYPE_CHECKING:
    from linnet.onnx.emit.members import Members

Path = tuple[str | int, ...]
Kernel = Callable[["Tracer", "Frame", Op], Any]


@dataclass(slots=True)
class Frame:
    """One call being written."""

    function: Function
    subst: Subst
    receiver: Path
    values: dict[Value, Any]
    subs: dict[SubVar, Path] = field(default_factory=dict)

    def path(self, ref: Ref) -> Path:
        start = self.receiver if ref.root is None else self.subs[ref.root]
        return (*start, *ref.steps)

    def dims(self, type_: Type) -> tuple[Dim, ...]:
        found = self.subst.type(type_)
        return tensor(found).dims


class Tracer:
    """Writes one entry; `members` gives parameters and keeps states."""

    def __init__(
        self, core: Core, lowered: Lowered, members: Members, kernels: Mapping[str, Kernel],
        prepared: Callable[[Function], Any], appends: bool = False,
    ) -> None:  # fmt: skip
        self.c = core
        self.lowered = lowered
        self.functions = lowered.functions
        self.members = members
        self.kernels = kernels
        self.prepared = prepared
        self.appends = appends  # whether caches may be given to operators that need them in place
        self.depth = 0
        self.traits: Traits | None = None

    def is_total(self, function: Function) -> bool:
        """Whether it can be run where the program would not have."""
        if self.traits is None:
            self.traits = Traits(self.functions)
        return self.traits.is_total(function.name)

    # --- calls ----------------------------------------------------------------------------------

    def call(self, function: Function, args: Sequence[Any], subst: Subst, receiver: Path) -> Any:
        values = {p.value: arg for p, arg in zip(function.params, args, strict=True)}
        frame = Frame(function, subst, receiver, values)
        with self.c.b.at(_place(function, receiver)):
            results = self.region(frame, function.body)
        return results[0] if results else None

    def region(self, frame: Frame, region: Region, args: Sequence[Any] | None = None) -> list[Any]:
        if args is not None:
            frame.values.update(zip(region.params, args, strict=True))
        for op in region.ops:
            self.op(frame, op)
        return [frame.values[value] for value in region.results]

    def op(self, frame: Frame, op: Op) -> None:
        spans = self.c.b.spans
        spans.append(op.span)
        try:
            results = self._op(frame, op)
        except ExportError as error:
            if error.span is None:
                raise ExportError(error.problem, op.span or frame.function.span) from None
            raise
        finally:
            spans.pop()
        frame.values.update(zip(op.results, results, strict=True))

    def _op(self, frame: Frame, op: Op) -> Sequence[Any]:
        from linnet.onnx.emit.control import CONTROL

        if op.kind in CONTROL:
            return CONTROL[op.kind](self, frame, op)
        if op.kind == "native":
            made = self.kernels[op.attrs["kernel"]](self, frame, op)
            return (made,) if len(op.results) == 1 else made
        if op.kind in _AGGREGATES:
            return (self.aggregate(frame, op),)
        return (self.tensor_op(frame, op),)

    # --- operations on tensors ------------------------------------------------------------------

    def operands(self, frame: Frame, op: Op) -> list[Any]:
        return [frame.values[value] for value in op.operands]

    def tensor_op(self, frame: Frame, op: Op) -> Held:
        c, kind, hint = self.c, op.kind, op.result.name
        xs = self.operands(frame, op)
        attrs = substitute_attrs(op, frame.subst)
        if kind in ("eq", "ne") and isinstance(op.operands[0].type, EnumType):
            return elementwise.compare(c, kind, case_number(xs[0]), case_number(xs[1]), hint)
        dims = frame.dims(op.result.type)
        dtype = dtype_of(op.result.type)
        if kind in elementwise.UNARY:
            return elementwise.unary(c, kind, xs[0], hint)
        if kind in elementwise.BINARY or kind in _COMPARISONS:
            return elementwise.binary(c, kind, xs[0], xs[1], hint)
        match kind:
            case "const":
                return Held.number(_const(op.attrs["value"], dtype), dtype)
            case "dim":
                return elementwise.size(c, attrs["dim"], dtype)
            case "iota":
                return elementwise.iota(c, dims[0], dtype)
            case "cast":
                return elementwise.cast(c, xs[0], dtype)
            case "select":
                return elementwise.select(c, xs[0], xs[1], xs[2], hint)
            case "broadcast":
                return c.placed(xs[0], attrs["axes"], dims)
            case "reshape":
                return views.reshape(c, xs[0], dims, hint)
            case "permute":
                return views.permute(c, xs[0], attrs["order"], dims, hint)
            case "concat":
                return layout.concat(c, xs, attrs["axis"], dims, hint)
            case "slice":
                return layout.slice_(c, xs[0], attrs["bounds"], dims, hint)
            case "gather":
                return layout.gather(c, xs[0], xs[1:], attrs["source"], attrs["index_axes"], dims,
                                     hint)  # fmt: skip
            case "reduce":
                return reductions.reduce(c, attrs["op"], xs[0], attrs["axes"], dims, hint)
            case "cumsum":
                return reductions.cumsum(c, xs[0], attrs["axis"], hint)
            case "contract":
                left, right = attrs["inputs"]
                return reductions.contract(c, xs[0], xs[1], left, right, attrs["output"], dims,
                                           hint)  # fmt: skip
            case _:
                raise InternalError("onnx.emit", f"`{kind}` has no lowering", op.span)

    def aggregate(self, frame: Frame, op: Op) -> Any:
        xs = self.operands(frame, op)
        match op.kind:
            case "tuple" | "struct":
                return tuple(xs)
            case "tuple_get":
                return xs[0][op.attrs["index"]]
            case "struct_get":
                type_ = op.operands[0].type
                assert isinstance(type_, StructType)
                names = [name for name, _ in type_.fields]
                return xs[0][names.index(op.attrs["field"])]
            case "some":
                return Present(xs[0])
            case "none":
                return None
            case _:
                return int(op.attrs["case"])

    # --- blocks ---------------------------------------------------------------------------------

    def instance(self, path: Path) -> Instance | tuple[Instance, ...]:
        root = self.lowered.binding.root
        if root is None:
            raise InternalError("onnx.emit", "a module without a block has no members")
        return root.child(path)


def _const(value: Any, dtype: DType) -> Any:
    return folding.convert(value, dtype)


def case_number(value: Any) -> Held:
    if isinstance(value, Case):
        return value.number
    return Held.number(int(value), DType.I64)


def _place(function: Function, receiver: Path) -> str:
    """`layers.0.attention/rope`: the block, and the function unless it is one of its methods."""
    path = ".".join(map(str, receiver))
    name = function.name.rpartition("::")[2].rpartition(".")[2]
    if function.block is not None:
        return path
    return f"{path}/{name}" if path else name


_COMPARISONS = frozenset("eq ne lt le gt ge".split())
_AGGREGATES = frozenset("tuple tuple_get struct struct_get some none enum".split())
