"""What the emitter knows of a value: a scalar, memory, or how to work out one element.

A `Lazy` tensor is not in memory: `make` gives an element at an index, inside the loops of whatever
reads it. Views, constants and cheap arithmetic stay lazy, so that chains of them become one loop.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from linnet.dims import Dim
from linnet.ir import Ref
from linnet.passes import Instance
from linnet.types import DType

if TYPE_CHECKING:
    from linnet.native.emit.nest import Nest

Dims = tuple[Dim, ...]
NO_ROOTS: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Term:
    """A C++ expression that depends on the first `level` loops around it."""

    text: str
    level: int = 0
    atomic: bool = True

    @property
    def operand(self) -> str:
        return self.text if self.atomic else f"({self.text})"


@dataclass(frozen=True, slots=True)
class Scalar:
    """A tensor of rank 0 or an enum's case, in a register; `const` when it is known."""

    text: str
    dtype: DType
    const: int | float | bool | None = None
    atomic: bool = True

    @property
    def term(self) -> Term:
        return Term(self.text, 0, self.atomic)


@dataclass(frozen=True, slots=True)
class Place:
    """A block's parameter: the block, its C++ expression, the parameter's name; `parts` are the
    paths from the block of the parameters that lie together as this one, if they do."""

    instance: Instance
    block: str
    member: str
    ref: Ref
    parts: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Buffer:
    """A dense row-major tensor at pointer `text`. `root` names the state whose memory it is."""

    text: str
    dtype: DType
    dims: Dims
    root: str | None = None
    param: Place | None = None  # for a parameter, where it is held

    @property
    def roots(self) -> frozenset[str]:
        return NO_ROOTS if self.root is None else frozenset((self.root,))


@dataclass(frozen=True, slots=True, eq=False)
class Lazy:
    """`cost` counts the work of one element, `fails` says that working it out may fail."""

    dtype: DType
    dims: Dims
    make: Callable[[Nest, tuple[Term, ...]], Term]
    cost: int = 0
    depth: int = 0
    roots: frozenset[str] = NO_ROOTS
    fails: bool = False
    name: str = ""
    # The same elements by other names, so that a slice, a turn or a reshape can be memory:
    pieces: tuple[Piece, ...] = ()  # runs of the positions along one axis
    turned: tuple[Buffer, tuple[int, ...]] | None = None  # this memory's axes in this order
    forms: tuple[Lazy, ...] = ()  # in other shapes
    strided: Strided | None = None  # memory with a step for each axis
    added: tuple[Buffer, Buffer] | None = None  # the sum of two tensors of this shape


@dataclass(frozen=True, slots=True)
class Strided:
    """Elements at pointer `text`, each axis with the C++ expression of its step."""

    text: str
    steps: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Piece:
    """`extent` positions of an axis, from `start` on, as a tensor of its own."""

    axis: int
    start: Dim
    extent: Dim
    entry: Buffer | Lazy


Tensor = Scalar | Buffer | Lazy


@dataclass(frozen=True, slots=True)
class Items:
    """A tuple, or a struct by field."""

    items: tuple[Entry, ...]
    fields: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Maybe:
    """An optional: whether it holds `inner` is the C++ expression `has`."""

    has: str
    inner: Entry


Entry = Scalar | Buffer | Lazy | Items | Maybe


def cost_of(entry: Tensor) -> int:
    return entry.cost if isinstance(entry, Lazy) else 0


def depth_of(entry: Tensor) -> int:
    return entry.depth if isinstance(entry, Lazy) else 0


def roots_of(entry: Tensor) -> frozenset[str]:
    return NO_ROOTS if isinstance(entry, Scalar) else entry.roots


def fails_of(entry: Tensor) -> bool:
    return isinstance(entry, Lazy) and entry.fails


def is_unit(dim: Dim) -> bool:
    return dim.constant == 1
