"""Writing one function: the base of every backend that prints Python.

What a framework calls things are its `Words`; what it has to do in its own way are the abstract
methods. All take and give expressions whose axes may be missing (see `Expr`).
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar

from linnet.backends.emit.dtypes import dtype_of, tensor
from linnet.backends.emit.sizes import Size, shown_sizes, size_lines, size_of, tuple_text
from linnet.backends.emit.values import Values
from linnet.backends.expr import ATOM, Expr
from linnet.dims import Dim, Symbol
from linnet.ir import Function, Op, Param, Ref, Region, Value
from linnet.types import DType, TensorType

if TYPE_CHECKING:
    from linnet.backends.emit.module import ModuleWriter

_WORD = re.compile(r"[A-Za-z_]\w*")


@dataclass(frozen=True, slots=True)
class Words:
    """A framework's names for what the frameworks have alike.

    `home` is the module of functions, those in `elsewhere` excepted; `device` ends the call of a
    function that makes an array of nothing. `numbers_first`: numbers among subscripts are taken
    out before it is seen whether the tensors among them stand side by side.
    """

    home: str
    concat: str
    axis: str
    swap: str
    permute: str
    device: str = ""
    numbers_first: bool = False
    elsewhere: Mapping[str, str] = field(default_factory=dict)

    def function(self, name: str) -> str:
        return f"{self.elsewhere.get(name, self.home)}.{name}"


class Writer(Values, ABC):
    """The state of one function being written."""

    words: ClassVar[Words]
    module: ModuleWriter[Any]

    def __init__(self, module: ModuleWriter[Any], function: Function, body: Region) -> None:
        """Readies `body`: the function's, or its gradient's."""
        super().__init__(body, module.names.inner())
        self.module, self.function = module, function
        self.size_names: dict[Symbol, str] = {}
        self.used_sizes: set[Symbol] = set()

    # --- what a framework does in its own way ---------------------------------------------------

    @abstractmethod
    def spelled(self, dtype: DType) -> str:
        """The dtype that values of `dtype` have inside generated code."""

    @abstractmethod
    def expanded(self, expr: Expr, dims: Sequence[Dim]) -> str:
        """The text of `expr` repeated to the whole shape."""

    @abstractmethod
    def filled(self, expr: Expr, type_: TensorType) -> Expr:
        """A tensor of equal elements, from a host number."""

    @abstractmethod
    def number(self, expr: Expr, dtype: DType) -> Expr:
        """A host number as arithmetic with a tensor of `dtype` takes it."""

    @abstractmethod
    def absolute(self, expr: Expr) -> str:
        """The text of a tensor's absolute values."""

    @abstractmethod
    def cast(self, expr: Expr, source: DType, target: DType) -> Expr:
        """A tensor of another dtype."""

    @abstractmethod
    def binary(self, op: Op, a: Expr, b: Expr, dtype: DType) -> Expr | None:
        """A tensor operation of two operands that is more than Python's operator, else None."""

    @abstractmethod
    def indexed(self, x: Expr, op: Op) -> Expr:
        """The whole tensor `x`, as a `gather` may index it."""

    @abstractmethod
    def index(self, expr: Expr, dtype: DType) -> Expr:
        """A whole tensor of indices, as the framework takes them."""

    def position(self, index: Expr) -> Expr:
        """A host number as a subscript takes it, where a negative one is an error."""
        return index

    def inside(self, index: Expr, dtype: DType, extent: Dim) -> Expr:
        """A tensor of indices as advanced indexing of an axis of this extent takes it, where
        negative ones are an error."""
        return index

    @abstractmethod
    def rows(self, x: Expr, axis: int, index: Expr, rank: int) -> str:
        """The text of `x` at an index of this rank along `axis`."""

    @abstractmethod
    def reduced(self, a: Expr, kind: str, axes: Sequence[int], dtype: DType) -> str:
        """The text of a reduction over `axes`, negative and in order."""

    def extreme(self, op: Op, a: Expr, axes: Sequence[int]) -> str:
        """The text of `op`, a minimum or maximum of `a` over axes that may have no elements."""
        return self.reduced(a, op.attrs["op"], axes, dtype_of(op.result.type))

    @abstractmethod
    def running(self, a: Expr, axis: int, dtype: DType) -> str:
        """The text of a running sum."""

    @abstractmethod
    def ref(self, ref: Ref) -> str:
        """The expression of a block or of a parameter."""

    @abstractmethod
    def ref_names(self, ref: Ref) -> frozenset[str]:
        """The variables in it."""

    def masked(self, expr: Expr, dtype: DType) -> Expr:
        """A result brought back into the range of `dtype`, where it is carried in a wider one."""
        return expr

    def before_turns(self, body: Region) -> None:
        """Readies what a Python loop's turns would change."""

    # --- forms ----------------------------------------------------------------------------------

    def tensor(self, value: Value) -> Expr:
        """One use of the value as a tensor of its whole shape (perhaps a view)."""
        return self.whole(self.get(value), tensor(value.type))

    def whole(self, expr: Expr, type_: TensorType) -> Expr:
        dims = type_.dims
        if expr.host:
            return self.filled(expr, type_)
        units = {p for p in expr.unit if dims[len(dims) - p].constant != 1}
        if expr.rank == len(dims) and not units:
            return replace(expr, unit=frozenset())
        text, names = self.expanded(expr, dims), expr.names | self.shape(dims)[1]
        return replace(expr, text=text, prec=ATOM, rank=len(dims), unit=frozenset(), names=names)

    def component(self, value: Value) -> Expr:
        """One use of the value inside a tuple, a call or a loop's carry, where scalars are
        tensors."""
        if isinstance(value.type, TensorType):
            return self.tensor(value)
        return self.get(value)

    # --- sizes ----------------------------------------------------------------------------------

    def size(self, dim: Dim) -> Size:
        """The dimension as text; the sizes in it count as used."""
        found = size_of(dim, self.size_names)
        self.used_sizes.update(dim.symbols)
        return found

    def shape(self, dims: Sequence[Dim]) -> tuple[str, frozenset[str]]:
        """A Python tuple of sizes, and the variables in it."""
        sizes = [self.size(d) for d in dims]
        names = frozenset().union(*(s.names for s in sizes))
        return tuple_text([s.text for s in sizes]), names

    def name_sizes(self) -> None:
        """Gives each size of the function its name, after its parameters have theirs."""
        for generic in self.function.generics:
            if isinstance(generic.var, Symbol):
                self.size_names[generic.var] = self.names.fresh(generic.name)

    def size_args(self, wanted: Collection[int] = frozenset()) -> tuple[int, ...]:
        """The numbers of the generics that come as integers: those used by what is written, or in
        `wanted`, that no parameter shows."""
        shown: Collection[Any] = shown_sizes(self.function.params)
        return tuple(
            k for k, g in enumerate(self.function.generics)
            if g.var not in shown and (k in wanted or g.var in self.used_sizes)
        )  # fmt: skip

    def size_variables(self, numbers: Sequence[int]) -> list[str]:
        """The names of these generics."""
        variables = [self.function.generics[k].var for k in numbers]
        return [self.size_names[var] for var in variables if isinstance(var, Symbol)]

    def body_lines(
        self, params: Sequence[Param], names: Sequence[str], given: Collection[str] = ()
    ) -> list[str]:
        """What is written, after the sizes in it that parameters show, but those `given`; `names`
        are the parameters' own."""
        words = set(_WORD.findall("\n".join(self.lines)))
        shown = {s: n for s, n in self.size_names.items() if n in words and n not in given}
        return spaced([*size_lines(shown, shown_sizes(params), params, names), *self.lines])


def spaced(lines: Sequence[str]) -> list[str]:
    """The lines, with an empty one before and after each local function."""
    made: list[str] = []
    inside: list[int] = []  # the indents of the functions that a line stands in
    for line in lines:
        indent = len(line) - len(line.lstrip())
        starts, left = line.lstrip().startswith("def "), False
        while inside and indent <= inside[-1]:
            inside.pop()
            left = True
        if made and (starts or left) and not made[-1].endswith(":"):
            made.append("")
        if starts:
            inside.append(indent)
        made.append(line)
    return made
