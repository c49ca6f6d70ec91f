"""From a source and weights to a model."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import torch
from linnet.ir import Program
from linnet.passes import Binding, Instance, bind
from linnet.torch.natives.table import NUMERICS
from linnet.torch.runtime.code import COMPILE_MODES, Settings, generate
from linnet.torch.runtime.inputs import TORCH
from linnet.torch.runtime.module import Model, Shared
from linnet.torch.runtime.tree import Epoch, lazy_zeros, place
from linnet.types import DType, GenericArg, TensorType
from linnet.weights import LoadPlan, Manifest, ParamSpec, StateSpec, open_weights, plan_load
from linnet.weights import read_bindings as read_bindings_file

Source = str | Path | Program | Binding


def load(
    source: Source,
    *,
    generics: Mapping[str, int | str] | None = None,
    weights: Any = None,
    bindings: Any = None,
    entry: str | None = None,
    root: str | None = None,
    device: str | torch.device = "cpu",
    numerics: str = "fast",
    compile: bool | str = True,
    trainable: bool = False,
    cast_dtype: bool = False,
    std_root: str | Path | None = None,
    present: Collection[str] = (),
) -> Model:
    """Loads a checked program with its weights as a `torch.nn.Module`.

    `source` is a `.linnet` file or a package's folder (or a program loaded before). Without
    `weights` every parameter starts at zero, to be filled by `load_state_dict` or in place;
    optional ones are then absent unless their paths are in `present`. Raises `CompileError`,
    `BindError` or `WeightError` with every problem found.
    """
    _check_options(numerics, compile)
    binding = bound(source, root, entry, generics or {}, std_root)
    place_on = _device(device)
    settings = Settings(numerics, compile, trainable, place_on.type)
    default = default_entry(binding, entry)
    manifest = manifest_of(binding)
    epoch = Epoch()
    if weights is None:
        absent = {p.path for p in binding.params if p.optional} - set(present)
        tensors = {p.path: _zeros(p.type, place_on) for p in binding.params if p.path not in absent}
        return _assemble(binding, settings, default, tensors, place_on, epoch)
    with open_weights(weights) as opened:
        lines = None if bindings is None else read_bindings_file(bindings)
        plan = plan_load(manifest, opened, lines, cast_dtype)
        tensors = read_all(plan, place_on)
    return _assemble(binding, settings, default, tensors, place_on, epoch)


def _device(device: str | torch.device) -> torch.device:
    """The device, which has to be one that PyTorch has here."""
    try:
        found = torch.device(device)
        torch.empty(0, device=found)
    except (AssertionError, RuntimeError) as error:
        said = str(error).partition("\n")[0]
        raise ValueError(f"the device {str(device)!r} cannot be used here: {said:.200}") from None
    return found


def _check_options(numerics: str, compile: bool | str) -> None:
    if numerics not in NUMERICS:
        raise ValueError(f"numerics is one of {', '.join(NUMERICS)}, not {numerics!r}")
    if compile not in COMPILE_MODES:
        raise ValueError(
            f"compile is False, True, 'inductor' or 'reduce-overhead', not {compile!r}"
        )


def bound(
    source: Source,
    root: str | None,
    entry: str | None,
    generics: Mapping[str, int | str],
    std_root: str | Path | None = None,
) -> Binding:
    """The program of `source`, bound."""
    if isinstance(source, Binding):
        return source
    if isinstance(source, Program):
        program = source
    else:
        from linnet.api import load_program

        program = load_program(source, std_root)
    return bind(program, choose_root(program, root, entry), generics)


def choose_root(program: Program, root: str | None, entry: str | None) -> str | None:
    """The block to bind: the one named, or the only one of the module that has the entry."""
    if root is not None:
        return root
    own = [b for b in program.blocks.values() if b.name.startswith(f"{program.root}::")]
    entries = {b.name: program.entries(b.name) for b in own}
    fitting = [b for b in own if (entry in entries[b.name] if entry else entries[b.name])]
    if len(fitting) > 1:
        names = ", ".join(b.short_name for b in fitting)
        raise ValueError(f"several blocks have entries: choose one of {names} with `root`")
    if fitting:
        return fitting[0].name
    if not program.entries(None):
        raise ValueError(f"`{program.root}` has no entry{f' `{entry}`' if entry else ''}")
    return None


def default_entry(binding: Binding, entry: str | None) -> str | None:
    entries = binding.program.entries(binding.block)
    if entry is not None:
        if entry not in entries:
            known = ", ".join(sorted(entries)) or "none"
            raise ValueError(f"there is no entry `{entry}`; the model's entries: {known}")
        return entry
    if "forward" in entries:
        return "forward"
    return next(iter(entries)) if len(entries) == 1 else None


def manifest_of(binding: Binding) -> Manifest:
    """What the weights loader has to know of a bound program."""
    within: dict[str, str] = {}
    arrays: dict[str, int] = {}
    if binding.root is not None:
        _walk(binding.root, "", "", within, arrays)
    params = tuple(
        ParamSpec(
            p.path, _shape(p.type), str(p.type.dtype), p.optional and not within[p.path],
            within[p.path], p.kind == "param",
        )
        for p in binding.params
    )  # fmt: skip
    states = tuple(StateSpec(s.path, _shape(s.type), str(s.type.dtype)) for s in binding.states)
    return Manifest(params, states, arrays)


def _walk(
    instance: Instance, prefix: str, optional: str, within: dict[str, str], arrays: dict[str, int]
) -> None:
    for name in instance.members:
        within[prefix + name] = optional
    for name, child in instance.children.items():
        path = prefix + name
        if isinstance(child, tuple):
            arrays[path] = len(child)
            for k, element in enumerate(child):
                _walk(element, f"{path}.{k}.", optional, within, arrays)
        else:
            inner = path if name in instance.optional_children else optional
            _walk(child, f"{path}.", inner, within, arrays)


def _shape(type_: TensorType) -> tuple[int, ...]:
    return tuple(d.constant or 0 for d in type_.dims)


def _zeros(type_: TensorType, device: torch.device) -> torch.Tensor:
    assert isinstance(type_.dtype, DType)
    return lazy_zeros(_shape(type_), TORCH[type_.dtype], device)


def read_all(plan: LoadPlan, device: torch.device) -> dict[str, torch.Tensor]:
    """Every tensor read straight into its own memory; tied paths share one."""
    tensors: dict[str, torch.Tensor] = {}
    for item in plan.items:
        tensor = plan.read_torch(item, device)
        for path in item.paths:
            tensors[path] = tensor
    return tensors


def _assemble(
    binding: Binding,
    settings: Settings,
    default: str | None,
    tensors: Mapping[str, torch.Tensor],
    device: torch.device,
    epoch: Epoch,
) -> Model:
    states = {s.path: _zeros(s.type, device) for s in binding.states}
    shared = Shared(binding, frozenset(tensors), settings, default)
    model = Model(shared, states, epoch)
    made: dict[int, torch.nn.Parameter] = {}
    for info in binding.params:
        tensor = tensors.get(info.path)
        if tensor is None:
            continue
        if info.kind == "buffer":
            place(model, epoch, info.path, tensor, "buffer")
            continue
        if id(tensor) not in made:
            grad = settings.trainable and tensor.is_floating_point()
            made[id(tensor)] = torch.nn.Parameter(tensor, requires_grad=grad)
        place(model, epoch, info.path, made[id(tensor)], "param")
    return model


def generate_source(
    program: Program,
    block: str | None,
    entry: str,
    generics: Mapping[str, int | str] | None = None,
    *,
    sizes: Mapping[str, GenericArg] | None = None,
    numerics: str = "fast",
    device: str = "cpu",
    trainable: bool = False,
) -> str:
    """The Python module that runs one entry of a program, all its parameters present."""
    binding = bind(program, block, generics or {})
    settings = Settings(numerics, False, trainable, device)
    return generate(binding, entry, settings, None, sizes, block or program.root).generated.text
