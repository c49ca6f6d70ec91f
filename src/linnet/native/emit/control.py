"""Branches and loops."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from linnet.diagnostics import InternalError
from linnet.ir import Op, Region, Value
from linnet.native.emit.aggregates import absent
from linnet.native.emit.dtypes import dtype_of, held, stored
from linnet.native.emit.layout import dims_of
from linnet.native.emit.leaves import Leaf, leaves, rebuilt, taken_apart
from linnet.native.emit.values import Buffer, Entry, Lazy, Maybe, Scalar, Term
from linnet.native.emit.writer import Writer
from linnet.passes import Instance
from linnet.types import DType, TensorType

RegionWriter = Callable[[Writer, Region], None]


def parts_of(w: Writer, value: Value) -> list[str]:
    """The leaves of one use of a value, tensors in memory."""
    if isinstance(w.env.get(value), Lazy):
        return [w.buffer(value).text]
    return taken_apart(w, w.entry(value), value.name)


# --- branches -------------------------------------------------------------------------------------


class Branches:
    """Writes the arms of one branching op, all of which set the same variables."""

    def __init__(self, w: Writer, op: Op, write: RegionWriter) -> None:
        self.w, self.op, self.write = w, op, write
        w.origin()
        self.variables: list[list[str]] = []
        for value in op.results:
            names = []
            for leaf in leaves(value.type, value.name or "chosen"):
                names.append(w.names.fresh(leaf.name))
                start = "nullptr" if leaf.is_tensor else "{}"
                sign = " = nullptr" if start == "nullptr" else "{}"
                w.line(f"{leaf.kind} {names[-1]}{sign};")
            self.variables.append(names)

    def arm(self, header: str, region: Region) -> None:
        w = self.w
        with w.braces(header):
            self.write(w, region)
            for names, value in zip(self.variables, region.results, strict=True):
                for name, text in zip(names, parts_of(w, value), strict=True):
                    w.line(f"{name} = {text};")

    def finish(self) -> None:
        for value, names in zip(self.op.results, self.variables, strict=True):
            self.w.env[value] = rebuilt(value.type, iter(names))


def emit_if(w: Writer, op: Op, write: RegionWriter) -> None:
    w.enter(op, loop=False)
    condition = w.scalar(op.operands[0])
    arms = Branches(w, op, write)
    arms.arm(f"if ({condition.text})", op.regions[0])
    if op.regions[1].ops or op.results:
        arms.arm("else", op.regions[1])
    arms.finish()


def emit_match_optional(w: Writer, op: Op, write: RegionWriter) -> None:
    w.enter(op, loop=False)
    subject = w.entry(op.operands[0])
    if not isinstance(subject, Maybe):
        raise InternalError("native.emit", "an optional is none", op.span)
    (inner,) = op.regions[0].params
    arms = Branches(w, op, write)
    w.env[inner] = subject.inner
    arms.arm(f"if ({subject.has})", op.regions[0])
    if op.regions[1].ops or op.results:
        arms.arm("else", op.regions[1])
    arms.finish()


def emit_match_enum(w: Writer, op: Op, write: RegionWriter) -> None:
    w.enter(op, loop=False)
    subject = w.scalar(op.operands[0])
    if not subject.text.replace("_", "").isalnum():
        subject = w.variable(subject, "case_number")
    arms = Branches(w, op, write)
    count = len(op.regions)
    for k, (cases, region) in enumerate(zip(op.attrs["cases"], op.regions, strict=True)):
        test = " || ".join(f"{subject.text} == {case}" for case in cases) or "false"
        word = "if" if k == 0 else "else if"
        header = f"{word} ({test})" if k + 1 < count else "else" if k else "if (true)"
        arms.arm(header, region)
    arms.finish()


def emit_match_sub(w: Writer, op: Op, write: RegionWriter) -> None:
    w.enter(op, loop=False)
    child = w.instance_at(op.attrs["ref"])
    if isinstance(child, tuple):
        raise InternalError("native.emit", "an array of blocks is optional", op.span)
    arms = Branches(w, op, write)
    arms.arm(f"if ({_is_bound(w, child, w.ref(op.attrs['ref']))})", op.regions[0])
    if op.regions[1].ops or op.results:
        arms.arm("else", op.regions[1])
    arms.finish()


def _is_bound(w: Writer, instance: Instance, text: str) -> str:
    """Whether any parameter of the block is there."""
    tests = []
    for info in instance.params:
        steps = info.path.split(".")
        place = text
        for step in steps:
            place += f"[{step}]" if step.isdigit() else f".{w.module.member(step)}"
        tests.append(f"{place} != nullptr")
    return " || ".join(tests[:1000]) or "true"


# --- loops ----------------------------------------------------------------------------------------


class Carried:
    """The variables a loop carries. Tensors have memory of their own, into which each turn's result
    is copied when all of them are worked out."""

    def __init__(self, w: Writer, operands: Sequence[Value], results: Sequence[Value],
                 params: Sequence[Value], body: Region | None = None) -> None:  # fmt: skip
        self.w, self.results, self.params = w, results, params
        self.leaves: list[list[Leaf]] = []
        self.names: list[list[str]] = []
        # Memory that a turn's result is written to, where it can be; then the two change places.
        self.spare: dict[str, str] = {}
        for k, (operand, result, param) in enumerate(zip(operands, results, params, strict=True)):
            hint = param.name or result.name or operand.name or "carried"
            found = leaves(result.type, hint)
            texts = parts_of(w, operand)
            self.leaves.append(found)
            made = None if body is None else _made_inside(w, body, k)
            self.names.append(self._begin(found, texts, made is not None))
            if made is not None:
                w.targets[made] = self.spare[self.names[-1][0]]

    def _begin(self, found: Sequence[Leaf], texts: Sequence[str], spare: bool = False) -> list[str]:
        w, names = self.w, []
        for leaf, text in zip(found, texts, strict=True):
            name = w.names.fresh(leaf.name)
            names.append(name)
            if not leaf.is_tensor:
                w.line(f"{leaf.kind} {name} = {text};")
                continue
            kind, count = stored(leaf.dtype), w.count(leaf.dims)
            guard = None if leaf.guard is None else texts[leaf.guard]
            sign = "*" if spare else "* const"
            w.line(f"{kind}{sign} {name} = context.arena.take<{kind}>({count});")
            w.line(f"{_when(guard)}copy<{kind}>({name}, {text}, {count});")
            if spare:
                self.spare[name] = w.names.fresh("next")
                w.line(f"{kind}* {self.spare[name]} = context.arena.take<{kind}>({count});")
        return names

    def enter(self) -> None:
        """Binds the region's parameters to the variables."""
        for param, names in zip(self.params, self.names, strict=True):
            self.w.env[param] = rebuilt(param.type, iter(names))

    def leave(self, values: Sequence[Value]) -> None:
        """Sets the variables for the next turn."""
        w = self.w
        pairs = zip(values, self.names, strict=True)
        texts = [self._settled(value, names) for value, names in pairs]
        for found, names, made in zip(self.leaves, self.names, texts, strict=True):
            for leaf, name, text in zip(found, names, made, strict=True):
                if name == text:
                    continue
                if self.spare.get(name) == text:
                    w.line(f"std::swap({name}, {text});")
                    continue
                if not leaf.is_tensor:
                    w.line(f"{name} = {text};")
                    continue
                guard = None if leaf.guard is None else names[leaf.guard]
                kind, count = stored(leaf.dtype), w.count(leaf.dims)
                w.line(f"{_when(guard)}copy<{kind}>({name}, {text}, {count});")

    def _settled(self, value: Value, own: Sequence[str]) -> list[str]:
        """The value's leaves, none of which changes when a carried variable does."""
        w = self.w
        texts = parts_of(w, value)
        every = {name for names in self.names for name in names}
        found = leaves(value.type, "next")
        for k, (leaf, text) in enumerate(zip(found, texts, strict=True)):
            if text in (own[k], self.spare.get(own[k])):
                continue
            if not leaf.is_tensor:
                if not _is_literal(text):
                    texts[k] = w.variable(Scalar(text, leaf.dtype), "next").text
            elif any(name in text for name in every):
                name = w.names.fresh("next")
                kind, count = stored(leaf.dtype), w.count(leaf.dims)
                w.line(f"{kind}* const {name} = context.arena.take<{kind}>({count});")
                guard = None if leaf.guard is None else texts[leaf.guard]
                w.line(f"{_when(guard)}copy<{kind}>({name}, {text}, {count});")
                texts[k] = name
        return texts

    def finish(self) -> None:
        for result, names in zip(self.results, self.names, strict=True):
            self.w.env[result] = rebuilt(result.type, iter(names))


def _made_inside(w: Writer, body: Region, number: int) -> Value | None:
    """The carried tensor's next value, where one operation of the body makes it for that alone."""
    value = body.results[number]
    if not isinstance(value.type, TensorType) or not value.type.shape or w.left.get(value) != 1:
        return None
    maker = next((op for op in body.ops if value in op.results), None)
    return value if maker is not None and maker.kind in ("call", "native") else None


def _when(guard: str | None) -> str:
    return "" if guard is None else f"if ({guard}) "


def _is_literal(text: str) -> bool:
    return text in ("true", "false") or text[:1].isdigit()


def emit_while(w: Writer, op: Op, write: RegionWriter) -> None:
    test, body = op.regions
    w.enter(op, loop=True)
    w.origin()
    carried = Carried(w, op.operands, op.results, body.params)
    with w.braces("while (true)"):
        w.line("const Scope scope(context.arena);")
        for param, names in zip(test.params, carried.names, strict=True):
            w.env[param] = rebuilt(param.type, iter(names))
        write(w, test)
        w.line(f"if (!({w.scalar(test.results[0]).text})) break;")
        carried.enter()
        write(w, body)
        carried.leave(body.results)
    carried.finish()


def emit_for(w: Writer, op: Op, write: RegionWriter) -> None:
    w.enter(op, loop=True)
    first, stop = w.scalar(op.operands[0]), w.scalar(op.operands[1])
    yields = op.attrs.get("yields", 0)
    count = len(op.results) - yields
    body = op.regions[0]
    w.origin()
    low = _bound(w, first, "first")
    high = _bound(w, stop, "stop")
    stacks = [_stack(w, value, low, high) for value in op.results[count:]]
    carried = Carried(w, op.operands[2:], op.results[:count], body.params[1:])
    index = body.params[0]
    dtype = dtype_of(index.type)
    name = w.names.fresh(index.name or "i")
    turn = name if dtype is DType.I64 else w.names.fresh("turn")
    with w.braces(f"for (int64_t {turn} = {low}; {turn} < {high}; ++{turn})"):
        w.line("const Scope scope(context.arena);")
        if turn != name:
            w.line(f"const {held(dtype)} {name} = static_cast<{held(dtype)}>({turn});")
        w.env[index] = Scalar(name, dtype)
        carried.enter()
        write(w, body)
        for stack, value in zip(stacks, body.results[count:], strict=True):
            _put(w, stack, value, turn if low == "0" else f"({turn} - {low})")
        carried.leave(body.results[:count])
    carried.finish()
    for stack, value in zip(stacks, op.results[count:], strict=True):
        w.define(value, stack)


def _bound(w: Writer, entry: Scalar, hint: str) -> str:
    if entry.const is not None:
        return str(int(entry.const))
    name = w.names.fresh(hint)
    w.line(f"const int64_t {name} = static_cast<int64_t>({entry.text});")
    return name


def _stack(w: Writer, value: Value, low: str, high: str) -> Buffer:
    dims = dims_of(value)
    out = w.result(value)
    turns, size = f"most(0, {high} - {low})" if low != "0" else f"most(0, {high})", w.size(dims[0])
    if size.text != high or low != "0":
        what = '"a loop ran another number of times than its values have rows"'
        w.line(f"if ({turns} != {size.text}) fail({what}, {w.where});")
    return out


def _put(w: Writer, stack: Buffer, value: Value, turn: str) -> None:
    """Writes one turn's value into its row."""
    entry = w.tensor(value)
    row = w.count(dims_of(value))
    start = turn if row == "1" else f"{turn} * {row}"
    if isinstance(entry, Buffer):
        w.line(f"copy<{stored(entry.dtype)}>({stack.text} + {start}, {entry.text}, {row});")
        return
    w.fill(stack, entry, Term(start, 0, False))


def emit_static_for(w: Writer, op: Op, write: RegionWriter) -> None:
    w.enter(op, loop=True)
    body = op.regions[0]
    w.origin()
    start, stop = w.size(op.attrs["start"]), w.size(op.attrs["stop"])
    carried = Carried(w, op.operands, op.results, body.params[1:])
    index = body.params[0]
    name = w.names.fresh(index.name or "i")
    with w.braces(f"for (int64_t {name} = {start.text}; {name} < {stop.text}; ++{name})"):
        w.line("const Scope scope(context.arena);")
        w.env[index] = Scalar(name, DType.I64)
        carried.enter()
        write(w, body)
        carried.leave(body.results)
    carried.finish()


def emit_for_subs(w: Writer, op: Op, write: RegionWriter) -> None:
    w.enter(op, loop=True)
    array = w.instance_at(op.attrs["array"])
    if not isinstance(array, tuple):
        raise InternalError("native.emit", "a loop runs over no array", op.span)
    start, stop = op.attrs.get("start", 0), op.attrs.get("stop", len(array))
    body = op.regions[0]
    w.origin()
    carried = Carried(w, op.operands, op.results, body.params, body)
    text = w.ref(op.attrs["array"])
    if start >= stop:
        carried.finish()
        return
    index = w.names.fresh("i")
    name = w.names.fresh(op.attrs["var"].name)
    with w.braces(f"for (size_t {index} = {start}; {index} < {stop}; ++{index})"):
        w.line("const Scope scope(context.arena);")
        w.line(f"auto& {name} = {text}[{index}];")
        w.subs[op.attrs["var"]] = (name, array[start])
        carried.enter()
        write(w, body)
        carried.leave(body.results)
    carried.finish()


def returned(w: Writer, value: Value, names: Sequence[str]) -> None:
    """Writes a function's result into its caller's variables and memory."""
    found = leaves(value.type, "out")
    entry = w.env[value]
    if isinstance(entry, Lazy):
        w.in_memory(entry, value.name, names[0])
        return
    _return(w, entry, found, names)


def _return(w: Writer, entry: Entry, found: Sequence[Leaf], names: Sequence[str]) -> None:
    texts = taken_apart(w, entry, "made")
    for leaf, text, name in zip(found, texts, names, strict=True):
        if text == name:
            continue
        guard = None if leaf.guard is None else texts[leaf.guard]
        if guard == "false":
            continue
        prefix = "" if guard in (None, "true") else _when(guard)
        if leaf.is_tensor:
            count = w.count(leaf.dims)
            w.line(f"{prefix}copy<{stored(leaf.dtype)}>({name}, {text}, {count});")
        else:
            w.line(f"{prefix}{name} = {text};")


__all__ = ["Branches", "absent", "parts_of", "returned"]
