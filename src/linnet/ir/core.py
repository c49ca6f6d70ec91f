"""Values, operations, functions, blocks: the program every stage after the parser works on.

Functions are generic as written: types hold symbolic dimensions, packs and dtype variables. A
function body is one `Region`, a straight list of operations in program order; control flow is
operations with regions of their own. A region may use values of the regions around it. Parameters
and state of a block are reached by `param`, `state_read` and `state_write`, whose `Ref` starts at
the block the function is a method of.

Everything is immutable; a pass builds new functions (`linnet.ir.rewrite`). What an operation means,
its operands and attributes, stands in `linnet.ir.table`.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Literal

from linnet.diagnostics import Diagnostic, Span
from linnet.dims import Dim, Relation, Symbol
from linnet.types import DTypeVar, GenericArg, PackVar, Type

_value_ids = itertools.count()
_sub_ids = itertools.count()


@dataclass(frozen=True, slots=True, eq=False)
class Value:
    """A result or a region's parameter; equal only to itself. `name` is the source's, or empty."""

    type: Type
    name: str = ""
    span: Span | None = None
    id: int = field(default_factory=lambda: next(_value_ids))

    def give_name(self, name: str) -> None:
        """Names a value that has no name: a `let` comes after the operation it names."""
        if not self.name:
            object.__setattr__(self, "name", name)

    def __repr__(self) -> str:
        return f"%{self.name or ''}{self.id}: {self.type}"


@dataclass(frozen=True, slots=True)
class SubVar:
    """The child block that a `for_subs` loop is at."""

    name: str
    id: int = field(default_factory=lambda: next(_sub_ids))


@dataclass(frozen=True, slots=True)
class Ref:
    """A block, parameter or state, from `root` (None: the block whose method this is) down."""

    root: SubVar | None
    steps: tuple[str | int, ...]

    def child(self, step: str | int) -> Ref:
        return Ref(self.root, (*self.steps, step))

    def __str__(self) -> str:
        start = "self" if self.root is None else self.root.name
        return ".".join([start, *map(str, self.steps)])


Attrs = Mapping[str, Any]
NO_ATTRS: Attrs = MappingProxyType({})


@dataclass(frozen=True, slots=True, eq=False)
class Op:
    """One operation; `kind` is its row in `linnet.ir.table.OPS`."""

    kind: str
    operands: tuple[Value, ...]
    results: tuple[Value, ...]
    attrs: Attrs = field(default_factory=lambda: NO_ATTRS)
    regions: tuple[Region, ...] = ()
    span: Span | None = None

    @property
    def result(self) -> Value:
        """The only result."""
        (value,) = self.results
        return value


@dataclass(frozen=True, slots=True, eq=False)
class Region:
    params: tuple[Value, ...]
    ops: tuple[Op, ...]
    results: tuple[Value, ...]


GenericVar = Symbol | PackVar | DTypeVar


@dataclass(frozen=True, slots=True)
class Generic:
    """A generic parameter; `var` is what types mention. `kind` is the source's word."""

    name: str
    kind: str
    var: GenericVar
    default: GenericArg | None = None


# A default of an entry's parameter: a Python scalar, or `NONE_DEFAULT` for `none`.
NONE_DEFAULT = "none"


@dataclass(frozen=True, slots=True)
class Param:
    """A function's parameter. `default` is a literal value (int, float, bool, NONE_DEFAULT)."""

    name: str
    value: Value
    default: int | float | bool | str | None = None

    @property
    def type(self) -> Type:
        return self.value.type


@dataclass(frozen=True, slots=True, eq=False)
class Grad:
    """An op's gradient: a function of the op's parameters, its result and the result's gradient,
    in this order; gives the gradients of the float tensor parameters, one value or a tuple."""

    params: tuple[Value, ...]
    body: Region


@dataclass(frozen=True, slots=True, eq=False)
class Function:
    """`fn`, `op` or `entry`; a method when `block` names its block.

    `name` is unique in the program: `module::fn` or `module::Block.method`; for an op it is the
    identity backends know it by. `generics` of a method start with its block's, all of them, and
    a call gives an argument for each. `where` holds inside, the block's clauses included.
    """

    name: str
    kind: Literal["fn", "op", "entry"]
    block: str | None
    generics: tuple[Generic, ...]
    params: tuple[Param, ...]
    where: tuple[Relation, ...]
    body: Region  # its one result is the returned value; no result when nothing is returned
    grad: Grad | None = None
    doc: str | None = None
    span: Span | None = None
    broken: bool = False  # holds an error: never verified, lowered or run

    @property
    def short_name(self) -> str:
        """The name without its module: `linear`, `Block.method`."""
        return self.name.rpartition("::")[2]

    @property
    def result_types(self) -> tuple[Type, ...]:
        return tuple(value.type for value in self.body.results)


@dataclass(frozen=True, slots=True)
class Member:
    """A `param`, `buffer` or `state`. `type` is the inner type when `optional`."""

    kind: Literal["param", "buffer", "state"]
    name: str
    type: Type
    optional: bool
    span: Span | None = None


@dataclass(frozen=True, slots=True)
class Sub:
    """A child block, or an array of `count`."""

    name: str
    block: str
    args: tuple[GenericArg, ...]
    count: Dim | None
    optional: bool
    span: Span | None = None


@dataclass(frozen=True, slots=True)
class Block:
    """A block's declaration. `members` and `subs` keep the source's order."""

    name: str  # "module::Block"
    generics: tuple[Generic, ...]
    where: tuple[Relation, ...]
    members: Mapping[str, Member]
    subs: Mapping[str, Sub]
    methods: Mapping[str, str]  # method name -> function name
    public: bool = True
    doc: str | None = None
    span: Span | None = None

    @property
    def short_name(self) -> str:
        return self.name.rpartition("::")[2]


@dataclass(frozen=True, slots=True)
class Program:
    """A checked package: what `linnet.load_program` gives.

    `root` is the id of the module that was asked for; `diagnostics` holds every problem found, in
    file order. With errors among them the functions that hold one are `broken`.
    """

    root: str
    functions: Mapping[str, Function]
    blocks: Mapping[str, Block]
    diagnostics: tuple[Diagnostic, ...] = ()

    @property
    def has_errors(self) -> bool:
        return any(d.severity == "error" for d in self.diagnostics)

    def entries(self, block: str | None) -> dict[str, Function]:
        """Entries by name: of a block, or with None the root module's own."""
        return {
            f.short_name.rpartition(".")[2]: f
            for f in self.functions.values()
            if f.kind == "entry"
            and f.block == block
            and (block is not None or f.name.startswith(f"{self.root}::"))
        }
