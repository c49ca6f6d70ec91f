"""A whole translation unit: header, structs, functions, and the entry that Python calls."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from linnet.backends.emit.uses import Touched, touched
from linnet.dims import Symbol
from linnet.ir import Function, Op, Ref, Region
from linnet.native.emit.blocks import Structs, Wanted
from linnet.native.emit.dtypes import held, loaded, stored, to_store
from linnet.native.emit.function import write_function
from linnet.native.emit.leaves import leaves
from linnet.native.emit.names import Names, comment
from linnet.native.emit.values import Place
from linnet.native.emit.writer import Writer
from linnet.passes import Instance
from linnet.passes.storage import Joined
from linnet.types import TensorType

KernelWriter = Callable[[Writer, Op], None]

_PROFILE = (
    'extern "C" int64_t linnet_profile(const void* held, Profile::Node* to, int64_t capacity) {',
    "  return static_cast<const Held*>(held)->context.profile.read(to, capacity);",
    "}",
    "",
)


@dataclass(frozen=True, slots=True)
class Options:
    """What the text depends on besides the program."""

    numerics: str = "fast"
    title: str = ""
    profile: bool = False


@dataclass(slots=True)
class Callee:
    """A function as its callers see it."""

    key: str
    name: str
    number: int
    origin_text: str
    function: Function
    touched: Touched
    hint: str
    instance: Instance | None = None
    header: str = ""
    keeps: bool = False

    @property
    def takes_block(self) -> bool:
        """Whether it uses its block, or what it calls does."""
        return self.touched.block

    @property
    def writes(self) -> bool:
        """Whether it changes state, or what it calls does."""
        return self.touched.changes

    @property
    def by_value(self) -> bool:
        """Whether the result is one scalar, which is returned as it is."""
        results = self.function.body.results
        if len(results) != 1:
            return False
        type_ = results[0].type
        return isinstance(type_, TensorType) and not type_.shape


@dataclass(frozen=True, slots=True)
class Generated:
    """A translation unit. `sizes` names the entry's generics in the order of the call."""

    text: str
    function: Function
    sizes: tuple[str, ...]
    writes: bool
    wanted: tuple[Wanted, ...] = ()  # weights wanted packed or joined, in the order of binding
    raw: frozenset[str] = frozenset()  # parameters wanted as they are
    kernels: bool = False  # whether the text calls the kernel library
    places: tuple[str, ...] = ()  # what a profile's places are called
    joined: tuple[Joined, ...] = ()  # parameters that are read as one and lie together
    either: frozenset[str] = frozenset()  # parameters taken packed where they are, else as they are
    unread: frozenset[str] = frozenset()  # parameters that no code reads by themselves


class ModuleWriter:
    """Everything the functions of one entry share."""

    def __init__(
        self,
        functions: Mapping[str, Function],
        entry: str,
        origins: Mapping[str, str],
        root: Instance | None,
        kernels: Mapping[str, KernelWriter],
        options: Options,
    ) -> None:
        self.functions, self.entry, self.origins = functions, entry, origins
        self.root, self.kernels, self.options = root, kernels, options
        self.names = Names()
        self.callees: dict[str, Callee] = {}
        for number, (key, function) in enumerate(functions.items()):
            self._declare(number, key, function)
        self.structs = Structs(self.names)
        self._writing: dict[int, bool] = {}
        self.top_names: set[str] = set()
        self.uses_kernels = False
        self.places: dict[str, int] = {}

    def place(self, name: str) -> int:
        """The number of a place in a profile."""
        return self.places.setdefault(name, len(self.places))

    @property
    def fast(self) -> bool:
        return self.options.numerics == "fast"

    def _declare(self, number: int, key: str, function: Function) -> None:
        result = function.body.results
        origin = self.origins.get(key, function.name)
        place = "" if function.span is None else f"  {function.span.file.path}:{function.span.line}"
        short = origin.rpartition("::")[2].rpartition(".")[2]
        self.callees[key] = Callee(
            key, self.names.fresh(key), number, origin + place, function,
            touched(function, self.callees), (result[0].name if result else "") or short,
        )  # fmt: skip

    def callee(self, key: str) -> Callee:
        return self.callees[key]

    def member(self, name: str | int) -> str:
        return self.structs.member(name)

    def packed(self, place: Place) -> str:
        """The expression of a parameter's packed form."""
        self.uses_kernels = True
        return f"*{place.block}.{self.structs.packed(place.instance, place.member)}"

    def struct_of(self, callee: Callee) -> str:
        assert callee.instance is not None
        return self.structs.name(callee.instance)

    def writes(self, region: Region) -> bool:
        """Whether running the region changes a state."""
        found = self._writing.get(id(region))
        if found is None:
            found = any(self._op_writes(op) for op in region.ops)
            self._writing[id(region)] = found
        return found

    def _op_writes(self, op: Op) -> bool:
        if op.kind == "state_write" or op.attrs.get("in_place"):
            return True
        if op.kind == "call" and self.callees[op.attrs["callee"]].writes:
            return True
        return any(map(self.writes, op.regions))

    def reach(self, callee: Callee, w: Writer, receiver: Ref | None) -> None:
        """Notes the block that a call's function runs on."""
        if not callee.takes_block or callee.instance is not None:
            return
        found = w.instance_at(Ref(None, ()) if receiver is None else receiver)
        assert isinstance(found, Instance)
        callee.instance = found

    # --- the text -------------------------------------------------------------------------------

    def generate(self) -> Generated:
        """Writes callers first, which shows the block each callee runs on."""
        entry = self.callees[self.entry]
        entry.instance = self.root
        if self.root is not None:
            for instance in self.root.kinds():
                self.structs.name(instance)
        self.top_names = {c.name for c in self.callees.values()} | set(self.structs.by_key.values())
        texts: dict[str, list[str]] = {}
        for key in reversed(self.callees):
            callee = self.callees[key]
            if callee.takes_block and callee.instance is None:
                continue  # nobody calls it
            texts[key] = write_function(self, callee)
        body = self._distinct(texts)
        text = "\n".join([*self._header(), *self.structs.text(), *body, "", *self._glue(entry)])
        sizes = tuple(g.name for g in entry.function.generics)
        made = Generated(
            text + "\n", entry.function, sizes, entry.writes, kernels=self.uses_kernels,
            places=tuple(self.places),
        )  # fmt: skip
        if self.root is None:
            return made
        return replace(
            made, wanted=tuple(self.structs.wanted(self.root)),
            raw=frozenset(self.structs.raw_paths(self.root)),
            either=frozenset(self.structs.either_paths(self.root)),
        )  # fmt: skip

    def _distinct(self, texts: Mapping[str, list[str]]) -> list[str]:
        """The functions, callees first, those that say the same written once."""
        names: dict[str, str] = {}
        seen: dict[str, str] = {}
        body: list[str] = []
        for key, callee in self.callees.items():
            if key not in texts:
                continue
            text = "\n".join(texts[key])
            if names:
                pattern = re.compile(rf"\b({'|'.join(names)})\(")
                text = pattern.sub(lambda found: f"{names[found[1]]}(", text)
            nameless = text.replace(f" {callee.name}(", " (", 1)
            if nameless in seen and key != self.entry:
                names[callee.name] = seen[nameless]
                continue
            seen[nameless] = callee.name
            body += ["", text]
        return body

    def _header(self) -> list[str]:
        return [
            "// C++ made by linnet from",
            f"// {comment(self.options.title)}",
            f"// numerics: {self.options.numerics}",
            "",
            '#include "linnet/support.h"',
            "",
            # All of it lies in a namespace, so that its names hide those of the system's headers
            # (`timezone`, `time_t`), instead of standing beside them.
            "namespace linnet_model {",
            "namespace {",
            "",
            "using namespace linnet::gen;",
        ]

    def _glue(self, entry: Callee) -> list[str]:
        root = "" if self.root is None else self.structs.name(self.root)
        fill = ["  Pointers pointers{params, states, weights};", "  model->root.fill(pointers);"]
        return [
            "struct Held {",
            "  Context context;",
            *([f"  {root} root;"] if root else []),
            "};",
            "",
            "}  // namespace",
            "",
            'extern "C" void* linnet_open() { return new (std::nothrow) Held; }',
            'extern "C" void linnet_close(void* model) { delete static_cast<Held*>(model); }',
            "",
            'extern "C" void linnet_bind(void* held, const void* const* params,',
            "                            void* const* states, const void* const* weights) {",
            "  Held* model = static_cast<Held*>(held);",
            *(fill if root else ["  (void)model, (void)params, (void)states, (void)weights;"]),
            "}",
            "",
            *self._run(entry),
        ]

    def _run(self, entry: Callee) -> list[str]:
        lines = [
            *(_PROFILE if self.options.profile else ()),
            'extern "C" int32_t linnet_run(void* held, const void* const* inputs,',
            "                              const int64_t* sizes, void* const* outputs,",
            "                              char* message, int64_t capacity) {",
            "  Held* model = static_cast<Held*>(held);",
            "  (void)inputs, (void)sizes, (void)outputs;",
            "  return guarded(model->context, message, capacity, [&] {",
        ]
        arguments = ["model->context"]
        if entry.takes_block:
            arguments.append("model->root")
        number = 0
        for param in entry.function.params:
            for leaf in leaves(param.type, param.name):
                kind = stored(leaf.dtype)
                place = f"static_cast<const {kind}*>(inputs[{number}])"
                arguments.append(place if leaf.is_tensor else loaded(leaf.dtype, f"*{place}"))
                number += 1
        arguments += [f"sizes[{k}]" for k, g in enumerate(entry.function.generics)
                      if isinstance(g.var, Symbol)]  # fmt: skip
        results = self._results(entry, arguments)
        if self.options.profile:
            clock = "    model->context.profile"
            results = [f"{clock}.begin();", *results, f"{clock}.end();"]
        return [*lines, *results, "  });", "}", "", "}  // namespace linnet_model"]

    def _results(self, entry: Callee, arguments: list[str]) -> list[str]:
        results = entry.function.body.results
        if not results:
            return [f"    {entry.name}({', '.join(arguments)});"]
        before, after = [], []
        for k, leaf in enumerate(leaves(results[0].type, "out")):
            place = f"static_cast<{stored(leaf.dtype)}*>(outputs[{k}])"
            if leaf.is_tensor:
                arguments.append(place)
                continue
            name = f"out_{k}"
            before.append(f"    {held(leaf.dtype)} {name}{{}};")
            after.append(f"    *{place} = {to_store(leaf.dtype, name)};")
            if not entry.by_value:
                arguments.append(name)
        call = f"{entry.name}({', '.join(arguments)});"
        return [*before, f"    {'out_0 = ' if entry.by_value else ''}{call}", *after]
