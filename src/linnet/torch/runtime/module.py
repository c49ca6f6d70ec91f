"""The object users hold."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any, NoReturn

import torch

from linnet.backends.errors import InputError
from linnet.backends.inputs import Checked
from linnet.backends.signature import Signature, frozen
from linnet.passes import Binding
from linnet.torch.emit.dtypes import WIDE
from linnet.torch.runtime.code import Loaded, Settings, execute
from linnet.torch.runtime.failures import refusal
from linnet.torch.runtime.inputs import TORCH, Reader
from linnet.torch.runtime.joined import Layout, storage_of
from linnet.torch.runtime.shared import Live, Shared
from linnet.torch.runtime.tree import Container, Epoch, Node, build_node, find_tensor, lazy_zeros
from linnet.types import (
    DType,
    EnumType,
    OptionalType,
    StructType,
    TensorType,
    TupleType,
    Type,
)

LARGE_STATE = 1 << 20  # bytes; larger ones are given back when they are reset


class Model(Container):
    """A loaded model: `model(...)` runs its default entry, `run_entry` any.

    Parameters are held under their source paths, whatever the names in them are. States live
    beside them, start at zero and are no part of `state_dict()`.
    """

    _linnet: Shared
    _states: dict[str, torch.Tensor]
    _live: Live

    def __init__(self, shared: Shared, states: dict[str, torch.Tensor], epoch: Epoch) -> None:
        super().__init__(epoch)
        own = self.__dict__
        own["_linnet"] = shared
        own["_states"] = states
        own["_live"] = Live(bool(states))

    # --- calls ----------------------------------------------------------------------------------

    def forward(self, *inputs: Any, **named: Any) -> Any:
        """Runs the default entry; inputs in order or by name."""
        name = self._linnet.default
        if name is None:
            known = ", ".join(sorted(self._linnet.entries)) or "none"
            raise InputError(f"the model has no default entry: use run_entry with one of {known}")
        return self.run_entry(name, self._linnet.signature(name).together(inputs, named))

    def run_entry(
        self, name: str, inputs: Any = (), generics: Mapping[str, Any] | None = None
    ) -> Any:
        """Runs an entry on a list or a dict of inputs. Raises `InputError` before anything runs
        where they do not fit, `RunError` where a value met on the way has no meaning; `generics`
        gives those of the entry that no input's shape shows."""
        signature = self._linnet.signature(name)
        if self._states:
            self._live.turns.alone("a call of `{}`", name)
        with self._live.turns.lock:
            layout = self._layout()
            checked = Reader(signature, self.device).read(inputs, generics)
            self._linnet.bounds.check(signature, checked)
            loaded = self._loaded(name, signature, checked, layout)
            self._live.turns.whole()
            return self._run(name, signature, loaded, checked)

    def _run(self, name: str, signature: Signature, loaded: Loaded, checked: Checked) -> Any:
        callee = loaded.code.callee
        types = [p.type for p in callee.function.params]
        args = [_structs(t, v, loaded) for t, v in zip(types, checked.values, strict=True)]
        sizes = signature.sizes(checked.generics)
        args += [sizes[callee.function.generics[index].name] for index in callee.size_args]
        if callee.takes_block:
            args.insert(0, self._node())
        self._refresh(loaded)
        writes = loaded.code.writes
        grad = self._linnet.settings.trainable and not writes
        try:
            with torch.set_grad_enabled(grad and torch.is_grad_enabled()):
                result = loaded.function(*args)
                kinds = callee.function.result_types
                return self._outside(kinds[0], result, loaded) if kinds else None
        except BaseException as error:
            if writes:
                self._live.turns.failed(name)
            refused = refusal(name, error)
            if refused is None:
                raise
            raise refused from error

    def _loaded(self, name: str, signature: Signature, checked: Checked, layout: Layout) -> Loaded:
        sizes = signature.forms(checked.generics)
        key = (name, frozen(sizes))
        live = self._live
        if key not in live.loaded:
            code = self._linnet.code(name, self.device.type, sizes or None, layout.storage)
            if layout.claim(code.joined):
                live.node = None
            live.loaded[key] = execute(code, self._settings(), name)
        return live.loaded[key]

    def _layout(self) -> Layout:
        """How the parameters lie. What is loaded is forgotten where they are tied, or made, in
        another way than it was made for."""
        live, known = self._live, self._live.layout
        if known is not None and live.layout_epoch == self._epoch.value and not known.moved():
            return known
        found = storage_of(self._linnet.binding, self._find, self.device)
        live.layout_epoch = self._epoch.value
        live.node = None
        if known is not None and known.fits(found):
            return known
        live.layout = Layout(found)
        live.loaded.clear()
        return live.layout

    def lay_out(self) -> None:
        """Puts parameters that the default entry's code reads as one in one storage, which a first
        call does otherwise. References to their data taken before do not follow."""
        name, settings = self._linnet.default, self._linnet.settings
        if name is None or settings.trainable or settings.numerics == "exact":
            return
        if self._linnet.signature(name).is_open:
            return
        with self._live.turns.lock:
            layout = self._layout()
            code = self._linnet.code(name, self.device.type, None, layout.storage)
            if layout.claim(code.joined):
                self._live.node = None
                self._node()

    def _settings(self) -> Settings:
        shared = self._linnet.settings
        return Settings(shared.numerics, shared.compile, shared.trainable, self.device.type)

    def _node(self) -> Node:
        live, epoch = self._live, self._epoch
        layout = live.layout if live.layout is not None else self._layout()
        if live.node is None or live.epoch_seen != epoch.value:
            root = self._linnet.binding.root
            live.node = build_node(root, "", self._find) if root is not None else Node()
            layout.lay(self._find, live.node)
            live.epoch_seen = epoch.value
            live.weights = (*self.parameters(), *self.buffers())
            live.pinned = None
            for loaded in live.loaded.values():
                _forget_blocks(loaded)
        return live.node

    def _find(self, path: str) -> torch.Tensor | None:
        state = self._states.get(path)
        return state if state is not None else find_tensor(self, path)

    def _refresh(self, loaded: Loaded) -> None:
        """Forgets values prepared from weights that have changed since."""
        kept = loaded.namespace.get("PREPARED")
        if not kept or all(len(key) == 1 for key in kept):
            return
        self._node()
        stamp = sum(p._version for p in self._live.weights)
        where = tuple(p.data_ptr() for p in self._live.weights)
        if loaded.prepared_stamp != (stamp, where):
            if loaded.prepared_stamp is not None:
                _forget_blocks(loaded)
            loaded.prepared_stamp = (stamp, where)

    # --- results --------------------------------------------------------------------------------

    def _outside(self, type_: Type, value: Any, loaded: Loaded) -> Any:
        match type_:
            case TensorType():
                return self._result(type_, value, loaded)
            case TupleType(items):
                return tuple(self._outside(t, v, loaded) for t, v in zip(items, value, strict=True))
            case StructType(fields=fields):
                return type(value)(
                    *(self._outside(t, v, loaded) for (_, t), v in zip(fields, value, strict=True))
                )
            case OptionalType(inner):
                if value is None:
                    return None
                held = value[0] if isinstance(inner, OptionalType) else value
                return self._outside(inner, held, loaded)
            case _:
                return value

    def _result(self, type_: TensorType, value: Any, loaded: Loaded) -> torch.Tensor:
        assert isinstance(type_.dtype, DType)
        if not isinstance(value, torch.Tensor):
            return torch.tensor(value, dtype=TORCH[type_.dtype], device=self.device)
        if type_.dtype in WIDE:
            if type_.dtype is DType.U64:
                return value.view(torch.uint64)
            return value.to(TORCH[type_.dtype])
        return value.clone() if self._is_pinned(value, loaded) else value

    def _is_pinned(self, value: torch.Tensor, loaded: Loaded) -> bool:
        """Whether a result lies where a state, parameter or prepared value does."""
        live = self._live
        if live.pinned is None:
            self._node()
            held = [*self._states.values(), *live.weights]
            live.pinned = frozenset(t.untyped_storage().data_ptr() for t in held if t.numel())
        place = value.untyped_storage().data_ptr()
        if place in live.pinned:
            return True
        kept = loaded.namespace.get("PREPARED", {})
        return any(
            t.untyped_storage().data_ptr() == place for v in kept.values() for t in _tensors(v)
        )

    # --- state ----------------------------------------------------------------------------------

    def reset_state(self) -> None:
        """Sets every state to zero."""
        turns = self._live.turns
        turns.alone("`{}`", "reset_state")
        with turns.lock, torch.no_grad():
            turns.failed("reset_state")
            for path, state in self._states.items():
                if state.device.type == "cpu" and state.nbytes > LARGE_STATE:
                    self._states[path] = lazy_zeros(tuple(state.shape), state.dtype, state.device)
                    self._epoch.value += 1
                else:
                    state.zero_()
            turns.broken = None

    def state_paths(self) -> list[str]:
        """The paths of the model's states, in source order."""
        return list(self._states)

    def state(self, path: str) -> torch.Tensor:
        """A copy of one state's value between two calls."""
        self._live.turns.alone("`{}`", "state")
        with self._live.turns.lock:
            if path not in self._states:
                raise KeyError(f"there is no state `{path}`")
            return self._states[path].clone()

    # --- what it is -----------------------------------------------------------------------------

    @property
    def device(self) -> torch.device:
        for held in (self._states.values(), self.parameters(), self.buffers()):
            for tensor in held:
                return tensor.device
        return torch.device(self._linnet.settings.device)

    @property
    def binding(self) -> Binding:
        """The bound program."""
        return self._linnet.binding

    def entries(self) -> list[str]:
        """The entries' names."""
        return sorted(self._linnet.entries)

    def signature(self, name: str) -> str:
        """An entry's signature in the source's words."""
        return str(self._linnet.signature(name))

    def generated_source(
        self, entry: str | None = None, generics: Mapping[str, Any] | None = None
    ) -> str:
        """The Python module that runs an entry (the default one when none is named). `generics`
        gives the entry's own dtypes and shapes, where it has any."""
        name = entry if entry is not None else self._linnet.default
        if name is None:
            raise InputError("name an entry: the model has no default one")
        signature = self._linnet.signature(name)
        known = signature.given_generics(generics)
        sizes = {g.name: known[g.var] for g in signature.generics if g.var in known}
        code = self._linnet.code(name, self.device.type, sizes or None, self._layout().storage)
        return code.generated.text

    # --- PyTorch's own ways to change a module ----------------------------------------------------

    def _apply(self, fn: Any, recurse: bool = True) -> Any:
        for tensor in (*self.parameters(), *self.buffers(), *self._states.values()):
            probe = torch.empty(0, dtype=tensor.dtype, device=tensor.device)
            if fn(probe).dtype != tensor.dtype:
                raise TypeError(
                    "a model's dtypes are part of its program: load it with another dtype in "
                    "`generics` instead of converting it"
                )
            break
        self._live.turns.alone("`{}`", "to")
        with self._live.turns.lock:
            super()._apply(fn, recurse)
            for path, state in self._states.items():
                self._states[path] = fn(state)
            self._live.loaded.clear()
            self._epoch.value += 1
        return self

    def __copy__(self) -> Model:
        made = self.__class__.__new__(self.__class__)
        made.__dict__.update(self.__dict__)
        return made

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise TypeError(
            "a model with its generated code cannot be pickled: save its state_dict(), and load "
            "the model again with those weights"
        )

    def __deepcopy__(self, memo: dict[int, Any]) -> Model:
        self._live.turns.alone("`{}`", "deepcopy")
        with self._live.turns.lock:
            made = self.__class__.__new__(self.__class__)
            memo[id(self)] = made
            made.__dict__.update(
                {key: copy.deepcopy(value, memo) for key, value in self.__dict__.items()}
            )
        return made


def _structs(type_: Type, value: Any, loaded: Loaded) -> Any:
    """Checked values with each struct in the generated module's class."""
    match type_:
        case TensorType() | EnumType():
            return value
        case TupleType(items):
            return tuple(_structs(t, v, loaded) for t, v in zip(items, value, strict=True))
        case StructType(path=path, fields=fields):
            made = loaded.namespace[loaded.code.generated.structs[path]]
            return made(*(_structs(t, v, loaded) for (_, t), v in zip(fields, value, strict=True)))
        case OptionalType(inner):
            if value is None:
                return None
            if isinstance(inner, OptionalType):
                return (_structs(inner, value[0], loaded),)
            return _structs(inner, value, loaded)
        case _:
            return value


def _forget_blocks(loaded: Loaded) -> None:
    """Drops the values that were prepared from a block's weights."""
    kept = loaded.namespace.get("PREPARED", {})
    for key in [key for key in kept if len(key) > 1]:
        del kept[key]


def _tensors(value: Any) -> list[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        return [value]
    return [t for item in value for t in _tensors(item)] if isinstance(value, tuple) else []
