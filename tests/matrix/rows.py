"""A function for every row of the operation table, in every dtype the row takes.

Groups of rows (functions of one operand, of two, comparisons) are generated from the table; each of
the others says here how it is built. Sizes are symbolic, so that one function runs at many.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from linnet.dims import Dim
from linnet.ir import OPS, Function, Region, Value
from linnet.ir.build import Builder
from linnet.types import (
    BOOL,
    DType,
    EnumType,
    OptionalType,
    StructType,
    TensorType,
    TupleType,
    scalar,
)

from ..ir.helpers import function, symbols, tensor

# Extents of most operands, and how many places a look-up asks for.
N, M, P = symbols("N", "M", "P")
RULES = {
    "any": list(DType),
    "numeric": [d for d in DType if d.is_numeric],
    "integer": [d for d in DType if d.is_integer],
    "float": [d for d in DType if d.is_float],
    "bool": [DType.BOOL],
    "integer_or_bool": [d for d in DType if d.is_integer or d is DType.BOOL],
}
Row = Callable[[Builder, dict[str, Value], DType], list[Value]]


def unary(kind: str) -> Row:
    return lambda b, v, d: [b.emit(kind, [v[f"x_{d}"]]), b.emit(kind, [v[f"s_{d}"]])]


def binary(kind: str) -> Row:
    def make(b: Builder, v: dict[str, Value], d: DType) -> list[Value]:
        x, y, s = v[f"x_{d}"], v[f"y_{d}"], v[f"s_{d}"]
        made = [b.emit(kind, [x, y]), b.emit(kind, [x, spread(b, s, N, M)])]
        constant = b.const(True if d is DType.BOOL else 3, d)
        return [*made, b.emit(kind, [x, spread(b, constant, N, M)])]

    return make


def spread(b: Builder, x: Value, *shape: Any) -> Value:
    type_ = x.type
    assert isinstance(type_, TensorType)
    axes = tuple(range(len(shape) - len(type_.shape), len(shape)))
    to = type_.with_shape(tuple(Dim.of(s) for s in shape))
    return b.emit("broadcast", [x], {"axes": axes}, type=to)


def cast(b: Builder, v: dict[str, Value], d: DType) -> list[Value]:
    return [b.cast(v[f"x_{d}"], to) for to in DType]


def select(b: Builder, v: dict[str, Value], d: DType) -> list[Value]:
    x, y = v[f"x_{d}"], v[f"y_{d}"]
    row = b.emit("reduce", [v["x_bool"]], {"op": "any", "axes": (0,)})
    wide = spread(b, row, N, M)
    return [b.emit("select", [v["x_bool"], x, y]), b.emit("select", [wide, x, x])]


def broadcast(b: Builder, v: dict[str, Value], d: DType) -> list[Value]:
    x = v[f"x_{d}"]
    middle = tensor(d, N, 2, M)
    up = b.emit("broadcast", [x], {"axes": (0, 2)}, type=middle)
    return [up, spread(b, v[f"s_{d}"], N, M), b.emit("permute", [up], {"order": (2, 1, 0)})]


def reshape(b: Builder, v: dict[str, Value], d: DType) -> list[Value]:
    x = v[f"x_{d}"]
    flat = b.emit("reshape", [x], type=tensor(d, Dim.of(N) * Dim.of(M)))
    return [flat, b.emit("reshape", [x], type=tensor(d, N, 1, M, 1))]


def permute(b: Builder, v: dict[str, Value], d: DType) -> list[Value]:
    return [b.emit("permute", [v[f"x_{d}"]], {"order": (1, 0)})]


def concat(b: Builder, v: dict[str, Value], d: DType) -> list[Value]:
    x, y = v[f"x_{d}"], v[f"y_{d}"]
    return [b.emit("concat", [x, y, x], {"axis": axis}) for axis in (0, 1)]


def slices(b: Builder, v: dict[str, Value], d: DType) -> list[Value]:
    x, zero, one, two = v[f"x_{d}"], Dim.of(0), Dim.of(1), Dim.of(2)
    n, m = Dim.of(N), Dim.of(M)
    made = [(None, (zero, m, two)), ((zero, n, one), None), ((n, n, one), (zero, m, one))]
    return [b.emit("slice", [x], {"bounds": bounds}) for bounds in made]


def square(b: Builder, x: Value, d: DType) -> Value:
    """A tensor whose two axes have one extent."""
    if d.is_numeric:
        return b.emit("contract", [x, x], {"inputs": ((0, 1), (2, 1)), "output": (0, 2)})
    return b.emit("concat", [spread(b, b.const(True, d), N, N)], {"axis": 0})


def gather(b: Builder, v: dict[str, Value], d: DType) -> list[Value]:
    x, i, j, k = v[f"x_{d}"], v["i"], v["j"], v["k"]
    cases: list[tuple[list[Value], dict[str, Any]]] = [
        ([x, i], {"source": (("index", 0), ("axis", 2)), "index_axes": ((0, 1),)}),
        ([x, i], {"source": (("index", 0), ("axis", 0)), "index_axes": ((1, 2),)}),
        ([x, i, k], {"source": (("index", 0), ("index", 1)), "index_axes": ((1, 0), (1, 2))}),
        ([x, j], {"source": (("axis", 0), ("index", 0)), "index_axes": ((0, 1),)}),
        ([square(b, x, d)], {"source": (("axis", 0), ("axis", 0)), "index_axes": ()}),
        ([x], {"source": (("axis", 1), ("axis", 0)), "index_axes": ()}),
    ]
    return [b.emit("gather", values, attrs) for values, attrs in cases]


def gather_by(b: Builder, v: dict[str, Value], d: DType) -> list[Value]:
    """Looked up by every integer dtype, as indices of a tensor and as one."""
    x, places = v["x_f32"], v[f"p_{d}"]
    attrs = {"source": (("index", 0), ("axis", 1)), "index_axes": ((0,),)}
    return [b.emit("gather", [x, places], attrs)]


def reduce(b: Builder, v: dict[str, Value], d: DType) -> list[Value]:
    ops = ["any", "all"] if d is DType.BOOL else ["sum", "prod"]
    x = v[f"x_{d}"]
    made = [b.emit("reduce", [x], {"op": o, "axes": a}) for o in ops for a in ((0,), (1,), (0, 1))]
    if d is not DType.BOOL:  # the largest of nothing is an error: one more row and column
        more = b.emit("concat", [x, spread(b, v[f"s_{d}"], 1, M)], {"axis": 0})
        more = b.emit("concat", [more, spread(b, v[f"s_{d}"], Dim.of(N) + 1, 1)], {"axis": 1})
        made += [b.emit("reduce", [more], {"op": o, "axes": a})
                 for o in ("max", "min") for a in ((0,), (0, 1))]  # fmt: skip
    return made


def contract(b: Builder, v: dict[str, Value], d: DType) -> list[Value]:
    x, y = v[f"x_{d}"], v[f"y_{d}"]
    labels = [
        ((0, 1), (2, 1), (0, 2)), ((0, 1), (0, 2), (1, 2)), ((0, 1), (0, 1), (0,)),
        ((0, 1), (2, 3), (0, 3, 1, 2)), ((0, 1), (2, 1), (2,)), ((0, 1), (0, 1), ()),
        ((0, 1), (0, 1), (1, 0)),
    ]  # fmt: skip
    return [b.emit("contract", [x, y], {"inputs": (a, c), "output": o}) for a, c, o in labels]


def batched(b: Builder, v: dict[str, Value], d: DType) -> list[Value]:
    """Head groups against shared keys, as attention has them."""
    x = spread(b, v[f"x_{d}"], 2, 2, N, M)
    y = spread(b, v[f"y_{d}"], 2, N, M)
    attrs = {"inputs": ((0, 1, 2, 3), (0, 4, 3)), "output": (0, 1, 2, 4)}
    return [b.emit("contract", [x, y], attrs)]


def cumsum(b: Builder, v: dict[str, Value], d: DType) -> list[Value]:
    return [b.emit("cumsum", [v[f"x_{d}"]], {"axis": axis}) for axis in (0, 1)]


def constants(b: Builder, v: dict[str, Value], d: DType) -> list[Value]:
    made = [b.const(True if d is DType.BOOL else 2, d)]
    if d.is_float:
        made += [b.const(0.1, d), b.const(-1e30 if d in (DType.F32, DType.F64) else 3.14159, d)]
    return [spread(b, value, N) for value in made]


def dims(b: Builder, v: dict[str, Value], d: DType) -> list[Value]:
    sizes = [Dim.of(N), Dim.of(N) * 2 + Dim.of(M), Dim.of(7)]
    return [b.dim(size, d) for size in sizes]


def iota(b: Builder, v: dict[str, Value], d: DType) -> list[Value]:
    return [b.emit("iota", type=tensor(d, size)) for size in (Dim.of(N), Dim.of(M) + 1, Dim.of(4))]


PAIR = StructType("m::P", "P", (), (("a", scalar(DType.F32)), ("b", tensor(DType.I32, N))))
KIND = EnumType("m::K", "K", ("A", "B", "C"))


def aggregates(b: Builder, v: dict[str, Value], d: DType) -> list[Value]:
    x, ids = v["x_f32"], v["ids"]
    both = b.emit("tuple", [x, ids])
    made = b.emit("struct", [v["s_f32"], ids], type=PAIR)
    some, none = b.emit("some", [x]), b.emit("none", type=OptionalType(x.type))
    return [
        b.emit("tuple_get", [both], {"index": 1}),
        b.emit("struct_get", [made], {"field": "b"}),
        match_optional(b, some, x),
        match_optional(b, none, x),
        match_optional(b, branch(b, v["flag"], some, none), x),
        match_enum(b, branch(b, v["flag"], case(b, 1), case(b, 2)), x),
        b.emit("eq", [branch(b, v["flag"], case(b, 0), case(b, 2)), case(b, 0)]),
        match_enum(b, case(b, 0), x),
        branch(b, v["flag"], made, made),
    ]


def case(b: Builder, number: int) -> Value:
    return b.emit("enum", [], {"case": number}, type=KIND)


def branch(b: Builder, flag: Value, x: Value, y: Value) -> Value:
    regions = []
    for value in (x, y):
        with b.region([]) as inner:
            inner.give(value)
        regions.append(inner.region)
    return b.emit("if", [flag], regions=regions)


def match_optional(b: Builder, optional: Value, x: Value) -> Value:
    held = Value(x.type)
    with b.region([held]) as there:
        there.give(b.emit("mul", [held, held]))
    with b.region([]) as missing:
        missing.give(b.emit("neg", [x]))
    return b.emit("match_optional", [optional], regions=[there.region, missing.region])


def match_enum(b: Builder, subject: Value, x: Value) -> Value:
    regions: list[Region] = []
    for number in range(2):
        with b.region([]) as inner:
            inner.give(b.emit("abs" if number else "neg", [x]))
        regions.append(inner.region)
    return b.emit("match_enum", [subject], {"cases": ((0, 2), (1,))}, regions=regions)


def loops(b: Builder, v: dict[str, Value], d: DType) -> list[Value]:
    x, count = v["x_f32"], v["count"]
    i, carried = Value(scalar(DType.I32)), Value(x.type)
    with b.region([i, carried]) as turn:
        next_ = b.emit("add", [carried, spread(b, b.cast(i, DType.F32), N, M)])
        turn.give(next_, b.emit("reduce", [next_], {"op": "sum", "axes": (1,)}))
    stacked = tensor(DType.F32, N, N)
    ends = [b.const(0, DType.I32), b.dim(Dim.of(N), DType.I32)]
    made = b.emit_many("for", [*ends, x], {"yields": 1}, regions=[turn.region],
                       types=(x.type, stacked))  # fmt: skip
    j, also = Value(scalar(DType.I64)), Value(x.type)
    with b.region([j, also]) as static:
        static.give(b.emit("mul", [also, spread(b, b.cast(j, DType.F32), N, M)]))
    fixed = {"start": Dim.of(1), "stop": Dim.of(4)}
    open_ = {"start": Dim.of(1), "stop": Dim.of(N) + 1}
    unrolled = b.emit("static_for", [x], fixed, regions=[static.region])
    first, second = [Value(scalar(DType.I32)), Value(x.type)], [Value(scalar(DType.I32)),
                                                                Value(x.type)]  # fmt: skip
    with b.region(first) as test:
        test.give(b.emit("gt", [first[0], b.const(0, DType.I32)]))
    with b.region(second) as step:
        step.give(b.emit("sub", [second[0], b.const(2, DType.I32)]), b.emit("neg", [second[1]]))
    ended = b.emit_many("while", [count, x], regions=[test.region, step.region])
    j, also = Value(scalar(DType.I64)), Value(x.type)
    with b.region([j, also]) as again:
        again.give(b.emit("mul", [also, spread(b, b.cast(j, DType.F32), N, M)]))
    looped = b.emit("static_for", [x], open_, regions=[again.region])
    return [*made, unrolled, *ended, looped]


def split_tuple(b: Builder, v: dict[str, Value], d: DType) -> list[Value]:
    """Tuples in tuples, through a branch and a loop that exchanges their items."""
    x, y = v[f"x_{d}"], v[f"y_{d}"]
    pair = TupleType((x.type, y.type))
    made = branch(b, v["flag"], b.emit("tuple", [x, y], type=pair),
                  b.emit("tuple", [y, x], type=pair))  # fmt: skip
    i, carried = Value(scalar(DType.I64)), Value(pair)
    with b.region([i, carried]) as turn:
        items = [b.emit("tuple_get", [carried], {"index": k}) for k in (1, 0)]
        turn.give(b.emit("tuple", items, type=pair))
    bounds = {"start": Dim.of(0), "stop": Dim.of(N)}
    turned = b.emit("static_for", [made], bounds, regions=[turn.region])
    return [b.emit("tuple_get", [turned], {"index": k}) for k in (0, 1)]


def _of(*groups: str) -> list[str]:
    return [kind for kind, spec in OPS.items() if spec.group in groups and kind != "cast"]


def _dtypes(kind: str) -> list[DType]:
    return RULES[OPS[kind].dtypes]


# Each with the operations it is a case of, how it is made, and its dtypes.
ROWS: dict[str, tuple[Row, list[DType]]] = {
    **{kind: (unary(kind), _dtypes(kind)) for kind in _of("unary")},
    **{kind: (binary(kind), _dtypes(kind)) for kind in _of("binary", "compare")},
    "cast": (cast, list(DType)),
    "select": (select, list(DType)),
    "broadcast": (broadcast, list(DType)),
    "reshape": (reshape, list(DType)),
    "permute": (permute, list(DType)),
    "concat": (concat, list(DType)),
    "slice": (slices, list(DType)),
    "gather": (gather, list(DType)),
    "gather, by": (gather_by, RULES["integer"]),
    "reduce": (reduce, list(DType)),
    "contract": (contract, RULES["numeric"]),
    "contract, batched": (batched, RULES["numeric"]),
    "cumsum": (cumsum, RULES["numeric"]),
    "const": (constants, list(DType)),
    "dim": (dims, RULES["numeric"]),
    "iota": (iota, RULES["integer"]),
    "tuple tuple_get struct struct_get some none enum if match_optional match_enum": (
        aggregates, [DType.F32]),
    "tuple if static_for, turned": (split_tuple, list(DType)),
    "for static_for while": (loops, [DType.F32]),
}  # fmt: skip
# Operations of blocks and calls, which the programs of `blocks.py` hold.
IN_BLOCKS = frozenset({"match_sub", "for_subs", "param", "state_read", "state_write", "call"})
# Stands for a backend's own code: what the library's cases reach.
IN_LIBRARY = frozenset({"native"})


def kinds_of(row: str) -> list[str]:
    """The operations that a row of `ROWS` is a case of."""
    return row.partition(",")[0].split()


def entry(row: str, dtypes: Sequence[DType]) -> Function:
    """The row's operations on operands of each of the dtypes, their results in a tuple."""
    make, _ = ROWS[row]
    params: dict[str, Any] = {}
    for dtype in dict.fromkeys([*dtypes, DType.BOOL, DType.F32]):
        params[f"x_{dtype}"] = params[f"y_{dtype}"] = tensor(dtype, N, M)
        params[f"s_{dtype}"] = scalar(dtype)
        if dtype.is_integer:
            params[f"p_{dtype}"] = tensor(dtype, P)
    params |= {"i": tensor(DType.I32, P, 3), "j": tensor(DType.I64, N, P),
               "k": tensor(DType.U8, P, 2), "flag": BOOL,
               "ids": tensor(DType.I32, N), "count": scalar(DType.I32)}  # fmt: skip

    def body(b: Builder, *values: Value) -> Value:
        by_name = dict(zip(params, values, strict=True))
        made = [value for dtype in dtypes for value in make(b, by_name, dtype)]
        return b.emit("tuple", made)

    return function("m::run", params, body, generics=[N, M, P])
