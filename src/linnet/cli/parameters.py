"""A block's parameters with symbolic shapes: what a checkpoint must hold."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

from linnet.ir import Block, Program
from linnet.types import Subst, render_arg

MAX_ROWS = 100_000
_MAX_DEPTH = 64


@dataclass(frozen=True, slots=True)
class Row:
    """One member; `{i}` in its path stands for an array's element, `{i}`, `{j}`, ... outside in.

    `optional` is true for a member, or one within a sub, that a checkpoint may lack.
    """

    kind: str
    path: str
    type: str
    optional: bool


def manifest(program: Program, block: Block) -> tuple[Row, ...]:
    """Every parameter, buffer and state under `block`, in the source's order."""
    rows = tuple(islice(_rows(program, block, Subst(), "", 0, 0, False), MAX_ROWS + 1))
    if len(rows) > MAX_ROWS:
        raise ValueError(f"the block `{block.short_name}` has more than {MAX_ROWS:,} members")
    return rows


def root_blocks(program: Program) -> list[Block]:
    """The public blocks of the module asked for, in the source's order."""
    own = f"{program.root}::"
    return [each for each in program.blocks.values() if each.name.startswith(own) and each.public]


def heading(block: Block) -> str:
    """`Model<H: Dim, T: Float = bf16>`."""
    generics = [
        f"{each.name}: {each.kind}"
        + ("" if each.default is None else f" = {render_arg(each.default)}")
        for each in block.generics
    ]
    return block.short_name + (f"<{', '.join(generics)}>" if generics else "")


def _rows(
    program: Program,
    block: Block,
    subst: Subst,
    prefix: str,
    depth: int,
    arrays: int,
    optional: bool,
) -> Iterator[Row]:
    if depth > _MAX_DEPTH:
        raise ValueError(f"blocks nest deeper than {_MAX_DEPTH}")
    for member in block.members.values():
        may_lack = optional or member.optional
        shown = str(subst.type(member.type))
        yield Row(member.kind, prefix + member.name, shown, may_lack)
    for sub in block.subs.values():
        child = program.blocks[sub.block]
        args = map(subst.arg, sub.args)
        bound = zip((each.var for each in child.generics), args, strict=True)
        step = f"{prefix}{sub.name}."
        inner = arrays
        if sub.count is not None:
            step += f"{{{'ijklmnop'[arrays % 8]}}}."
            inner += 1
        may_lack = optional or sub.optional
        yield from _rows(program, child, Subst.of(dict(bound)), step, depth + 1, inner, may_lack)
