"""The operations, one row each: the single place that says which there are and what they take.

Axes are counted in shape items (a pack is one item) in generic functions, in dimensions once
packs are gone. "Scalar operand" means a tensor of rank 0.

Roles of attributes, which say what specialising must renumber or substitute:

    plain       left alone
    dim         a Dim
    dims        nested tuples of Dim or None
    axis        one item of operand 0
    axes        items of operand 0
    args        generic arguments
    placement   for each item of operand 0, an item of the result
    order       for each item of the result, an item of operand 0
    gather, contract, slice    explained at their rows
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

AttrRole = Literal[
    "plain",
    "dim",
    "axis",
    "axes",
    "args",
    "placement",
    "order",
    "gather",
    "contract",
    "slice",
]

# Which dtypes an operation takes.
DTypeRule = Literal["any", "numeric", "integer", "float", "bool", "integer_or_bool"]


@dataclass(frozen=True, slots=True)
class OpSpec:
    """A row: `operands` counts them (None: any number), `dtypes` is the rule for all of them."""

    name: str
    group: Literal[
        "constant", "unary", "binary", "compare", "select", "shape", "reduce", "aggregate",
        "control", "member", "call", "native",
    ]  # fmt: skip
    operands: int | None
    doc: str
    dtypes: DTypeRule = "any"
    attrs: dict[str, AttrRole] = field(default_factory=dict)
    regions: int = 0
    effects: bool = False


def _rows() -> list[OpSpec]:
    rows = [
        OpSpec(
            "const",
            "constant",
            0,
            "A scalar; `value` is a Python int, float or bool.",
            attrs={"value": "plain"},
        ),
        OpSpec(
            "dim",
            "constant",
            0,
            "A compile-time integer as a scalar of any numeric dtype.",
            attrs={"dim": "dim"},
        ),
        OpSpec("iota", "constant", 0, "0 .. n-1, n the result's only dimension.", "integer"),
        OpSpec(
            "cast",
            "unary",
            1,
            "To the result's dtype, rounded once. Float to integer truncates toward zero, what "
            "lies outside becomes the nearest value, NaN 0; integers wrap; bool gives 0 or 1, "
            "and anything but 0 is true.",
        ),
        OpSpec("neg", "unary", 1, "-x, wrapping.", "numeric"),
        OpSpec("not", "unary", 1, "Logical not.", "bool"),
        OpSpec("abs", "unary", 1, "|x|, wrapping.", "numeric"),
    ]
    for name, doc in {
        "exp": "e to the power x", "log": "Natural logarithm", "sqrt": "Square root",
        "rsqrt": "1 / sqrt(x), rounded once", "sin": "Sine", "cos": "Cosine",
        "tanh": "Hyperbolic tangent", "erf": "Error function",
        "floor": "The largest whole number not above x",
    }.items():  # fmt: skip
        rows.append(OpSpec(name, "unary", 1, f"{doc}.", "float"))
    for name, doc in {
        "add": "a + b", "sub": "a - b", "mul": "a * b",
        "div": "a / b; on integers truncating toward zero",
        "rem": "a - b * trunc(a / b), the sign of a",
        "min": "The smaller, NaN if either is", "max": "The larger, NaN if either is",
    }.items():  # fmt: skip
        rows.append(OpSpec(name, "binary", 2, f"{doc}; integers wrap.", "numeric"))
    for name, doc in {"and": "a & b", "or": "a | b", "xor": "a ^ b"}.items():
        rows.append(
            OpSpec(name, "binary", 2, f"{doc}: bitwise, logical on bool.", "integer_or_bool")
        )
    rows += [
        OpSpec("shl", "binary", 2, "a << b; 0 for b below 0, at or past the width.", "integer"),
        OpSpec(
            "shr",
            "binary",
            2,
            "a >> b, arithmetic on signed dtypes; b below 0, at or past the width gives 0 or -1.",
            "integer",
        ),
    ]
    signs = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}
    for name, sign in signs.items():
        rule: DTypeRule = "any" if name in ("eq", "ne") else "numeric"
        rows.append(OpSpec(name, "compare", 2, f"a {sign} b, bool.", rule))
    rows += [
        OpSpec("select", "select", 3, "Operand 1 where operand 0 is true, else operand 2."),
        OpSpec("broadcast", "shape", 1,
               "Operand item i is result item axes[i] (increasing), its extent equal or 1; the "
               "result's other items repeat.", attrs={"axes": "placement"}),
        OpSpec("reshape", "shape", 1, "The same elements in row-major order."),
        OpSpec("permute", "shape", 1, "Result item i is operand item order[i].",
               attrs={"order": "order"}),
        OpSpec("concat", "shape", None, "Side by side along item `axis` (never a pack).",
               attrs={"axis": "axis"}),
        OpSpec("slice", "shape", 1,
               "`bounds` gives for each item None (all of it, always so for a pack) or "
               "(start, stop, step) as Dims.", attrs={"bounds": "slice"}),
        OpSpec("gather", "shape", None,
               "result[...] = x[...]: `source` gives for each item of x ('axis', r), the result "
               "item that runs along it, or ('index', k), the integer operand 1 + k; "
               "`index_axes[k]` gives the result items that index operand k's items are. Each "
               "result item occurs at least once in either; two items of x with one r are a "
               "diagonal. A pack is indexed by ('axis', r) alone.",
               attrs={"source": "gather", "index_axes": "gather"}),
        OpSpec("reduce", "reduce", 1,
               "`op` (sum prod max min any all) over `axes`, in the operand's dtype; the order is "
               "free, and f16 and bf16 are rounded once at the end.",
               attrs={"op": "plain", "axes": "axes"}),
        OpSpec("contract", "reduce", 2,
               "Sum of products: `inputs[k]` labels operand k's items with small integers, unique "
               "within an operand, `output` the result's; labels missing there are summed over. "
               "A pack is one label. Each product is rounded to the dtype, then summed as `reduce` "
               "does.", "numeric",
               attrs={"inputs": "contract", "output": "contract"}),
        OpSpec("cumsum", "reduce", 1,
               "Running sum along `axis`; f16 and bf16 elements are each rounded from a wider sum.",
               "numeric",
               attrs={"axis": "axis"}),
        OpSpec("tuple", "aggregate", None, "A tuple of the operands."),
        OpSpec("tuple_get", "aggregate", 1, "Item `index`.", attrs={"index": "plain"}),
        OpSpec("struct", "aggregate", None, "A struct, operands in field order."),
        OpSpec("struct_get", "aggregate", 1, "Field `field`.", attrs={"field": "plain"}),
        OpSpec("some", "aggregate", 1, "The optional that holds the operand."),
        OpSpec("none", "aggregate", 0, "The empty optional of the result's type."),
        OpSpec("enum", "aggregate", 0, "Case number `case` of the result's enum.",
               attrs={"case": "plain"}),
        OpSpec("if", "control", 1, "Operand 0, a scalar bool, picks region 0 or 1.", regions=2),
        OpSpec("match_optional", "control", 1,
               "Region 0 with the held value as its parameter, else region 1.", regions=2),
        OpSpec("match_enum", "control", 1,
               "Region k when the case is among cases[k].", attrs={"cases": "plain"}, regions=-1),
        OpSpec("match_sub", "control", 0,
               "Region 0 when the optional child block `ref` is bound, else region 1.",
               attrs={"ref": "plain"}, regions=2),
        OpSpec("while", "control", None,
               "Operands are carried: while region 0 of them is true, region 1 makes the next.",
               regions=2),
        OpSpec("for", "control", None,
               "Operands: first, past-the-last (integers of one dtype), then the carried. The "
               "region takes (i, carried...) and gives (carried..., yielded...); each of the "
               "`yields` yielded tensors is stacked along a new first axis, as the last results.",
               attrs={"yields": "plain"}, regions=1),
        OpSpec("static_for", "control", None,
               "As `for` without yields, over start..stop known when sizes are; i is an i64 "
               "scalar.",
               attrs={"start": "dim", "stop": "dim"}, regions=1),
        OpSpec("for_subs", "control", None,
               "Operands are carried through the region once for each element of the sub array "
               "`array` (a Ref), which the region names by the SubVar `var`; in "
               "lowered functions of the elements `start` to `stop` alone, where those are set.",
               attrs={"array": "plain", "var": "plain"}, regions=1),
        OpSpec("param", "member", 0,
               "The block's param or buffer `ref`; optional ones have an optional type.",
               attrs={"ref": "plain"}),
        OpSpec("state_read", "member", 0, "The present value of state `ref`.",
               attrs={"ref": "plain"}, effects=True),
        OpSpec("state_write", "member", 1, "Makes the operand the value of state `ref`.",
               attrs={"ref": "plain"}, effects=True),
        OpSpec("call", "call", None,
               "Calls function `callee` with an argument for each of its generics; `receiver` is "
               "the Ref of the block a method runs on (None for others).",
               attrs={"callee": "plain", "generics": "args", "receiver": "plain"}, effects=True),
        OpSpec("native", "native", None,
               "Runs the backend's own code `kernel` in place of a call of the op `origin`; only "
               "that backend knows its operands. Stands only in lowered functions.",
               attrs={"kernel": "plain", "origin": "plain"}),
    ]  # fmt: skip
    return rows


OPS: dict[str, OpSpec] = {row.name: row for row in _rows()}
