"""Parameters, state and calls."""

from __future__ import annotations

from typing import TYPE_CHECKING

from linnet.ir import Op, Ref
from linnet.native.emit.control import parts_of
from linnet.native.emit.dtypes import dtype_of, held, loaded, stored, to_store
from linnet.native.emit.layout import dims_of
from linnet.native.emit.leaves import Leaf, leaves, rebuilt
from linnet.native.emit.values import Buffer, Entry, Lazy, Maybe, Place, Scalar
from linnet.native.emit.writer import Writer
from linnet.passes import Instance
from linnet.passes.join import JOINED
from linnet.types import OptionalType, TensorType, Type

if TYPE_CHECKING:
    from linnet.native.emit.module import Callee


def emit_param(w: Writer, op: Op) -> None:
    ref: Ref = op.attrs["ref"]
    text = w.ref(ref)
    type_ = op.result.type
    outer = Ref(ref.root, ref.steps[:-1])
    instance = w.instance_at(outer)
    assert isinstance(instance, Instance)
    place = Place(instance, w.ref(outer), str(ref.steps[-1]), ref)
    if isinstance(type_, OptionalType):
        w.module.structs.use(place)
        inner = _member(type_.inner, text, None, None)
        w.define(op.result, Maybe(f"({text} != nullptr)", inner))
        return
    if isinstance(type_, TensorType) and not type_.shape:
        w.module.structs.use(place)
    w.define(op.result, _member(type_, text, None, place))


def emit_joined(w: Writer, op: Op) -> None:
    """Parameters that lie one after another, as one."""
    places = []
    for value in op.operands:
        found = w.env.get(value)
        assert isinstance(found, Buffer) and found.param is not None
        places.append(found.param)
        w.left[value] = w.left.get(value, 0) - 1
    refs = [place.ref for place in places]
    at: Ref = op.attrs["ref"]
    instance = w.instance_at(at)
    assert isinstance(instance, Instance)
    parts = tuple(".".join(map(str, ref.steps[len(at.steps) :])) for ref in refs)
    member = w.module.structs.group(instance, parts, op.attrs[JOINED])
    place = Place(instance, w.ref(at), member, at.child(member), parts)
    type_ = op.result.type
    assert isinstance(type_, TensorType)
    text = f"{place.block}.{member}"
    w.define(op.result, Buffer(text, dtype_of(type_), type_.dims, None, place))


def _member(type_: Type, text: str, root: str | None, place: Place | None) -> Entry:
    assert isinstance(type_, TensorType)
    dtype = dtype_of(type_)
    if not type_.shape:
        return Scalar(loaded(dtype, f"{text}[0]"), dtype)
    return Buffer(text, dtype, type_.dims, root, place)


def emit_state_read(w: Writer, op: Op) -> None:
    ref: Ref = op.attrs["ref"]
    text = w.ref(ref)
    entry = _member(op.result.type, text, str(ref.steps[-1]), None)
    if isinstance(entry, Scalar):  # what the state holds now
        w.define(op.result, w.variable(entry, op.result.name or str(ref.steps[-1])))
        return
    if op.attrs.get("copy") and isinstance(entry, Buffer):
        made = w.take(entry.dtype, entry.dims, op.result.name)
        w.line(f"copy<{stored(entry.dtype)}>({made.text}, {text}, {w.count(entry.dims)});")
        entry = made
    w.define(op.result, entry)


def emit_state_write(w: Writer, op: Op) -> None:
    value = op.operands[0]
    if op.attrs.get("done"):
        w.entry(value)
        return
    text = w.ref(op.attrs["ref"])
    entry = w.tensor(value)
    if isinstance(entry, Lazy):
        entry = w.in_memory(entry, value.name)
        w.env[value] = entry
    w.flush()
    if isinstance(entry, Scalar):
        w.line(f"{text}[0] = {to_store(entry.dtype, entry.text)};")
        return
    w.origin()
    w.line(f"copy<{stored(entry.dtype)}>({text}, {entry.text}, {w.count(dims_of(value))});")


def emit_call(w: Writer, op: Op) -> None:
    callee = w.module.callee(op.attrs["callee"])
    receiver: Ref | None = op.attrs.get("receiver")
    w.module.reach(callee, w, receiver)
    arguments = ["context"]
    if callee.takes_block:
        arguments.append(w.ref(Ref(None, ()) if receiver is None else receiver))
    for value in op.operands:
        arguments.extend(parts_of(w, value))
    arguments.extend(w.size(dim).text for dim in op.attrs["generics"])
    if callee.writes:
        w.flush()
    if op.attrs.get("prepared"):
        _prepared(w, op, callee.name, callee.number, arguments)
        return
    with w.measured(_called(callee.origin_text, receiver)):
        _call(w, op, callee, arguments)


def _called(origin: str, receiver: Ref | None) -> str:
    """A call as a profile names it: the block it is on and the function."""
    name = origin.split(" ", 1)[0].rpartition("::")[2]
    steps = () if receiver is None else receiver.steps
    return ".".join([*map(str, steps), name.rpartition(".")[2]])


def _call(w: Writer, op: Op, callee: Callee, arguments: list[str]) -> None:
    if not op.results:
        w.line(f"{callee.name}({', '.join(arguments)});")
        return
    found = leaves(op.result.type, op.result.name or callee.hint)
    if callee.by_value:
        scalar = Scalar(f"{callee.name}({', '.join(arguments)})", found[0].dtype)
        w.define(op.result, w.variable(scalar, found[0].name))
        return
    names = [_out(w, op, leaf) for leaf in found]
    w.line(f"{callee.name}({', '.join([*arguments, *names])});")
    w.env[op.result] = rebuilt(op.result.type, iter(names))


def _out(w: Writer, op: Op, leaf: Leaf) -> str:
    """A variable, or memory, for one leaf of a call's result."""
    if leaf.is_tensor:
        return w.take(leaf.dtype, leaf.dims, leaf.name, w.targets.get(op.result)).text
    name = w.names.fresh(leaf.name)
    w.line(f"{held(leaf.dtype)} {name}{{}};")
    return name


def _prepared(w: Writer, op: Op, name: str, number: int, arguments: list[str]) -> None:
    """A call whose result is kept: worked out the first time."""
    found = leaves(op.result.type, op.result.name or name)
    who = f"&{arguments[1]}" if len(arguments) > 1 else "nullptr"
    kept = w.names.fresh(f"{name}_kept")
    w.line(f"Prepared& {kept} = context.prepared[{{{number}, {who}}}];")
    w.line(f"if (!{kept}.ready) {{")
    places = []
    for leaf in found:
        kind = stored(leaf.dtype) if leaf.is_tensor else held(leaf.dtype)
        count = w.count(leaf.dims) if leaf.is_tensor else "1"
        star = "" if leaf.is_tensor else "*"
        places.append(f"{star}{kept}.take<{kind}>({count})")
    inner = [w.names.fresh("part") for _ in places]
    for each, place, leaf in zip(inner, places, found, strict=True):
        mark = "*" if leaf.is_tensor else "&"
        kind = stored(leaf.dtype) if leaf.is_tensor else held(leaf.dtype)
        w.line(f"  {kind}{mark} {each} = {place};")
    callee = w.module.callee(op.attrs["callee"])
    if callee.by_value:
        w.line(f"  {inner[0]} = {name}({', '.join(arguments)});")
    else:
        w.line(f"  {name}({', '.join([*arguments, *inner])});")
    w.line(f"  {kept}.ready = true;")
    w.line("}")
    names = []
    for k, leaf in enumerate(found):
        names.append(w.names.fresh(leaf.name))
        kind = stored(leaf.dtype) if leaf.is_tensor else held(leaf.dtype)
        star = "" if leaf.is_tensor else "*"
        sign = "const " + kind + ("* const" if leaf.is_tensor else "")
        w.line(f"{sign} {names[-1]} = {star}{kept}.part<{kind}>({k});")
    w.env[op.result] = rebuilt(op.result.type, iter(names))


def emit_native(w: Writer, op: Op) -> None:
    w.origin()
    if op.attrs.get("in_place"):
        w.flush()
    with w.measured(op.attrs["kernel"]):
        w.module.kernels[op.attrs["kernel"]](w, op)
