"""From a source and weights to a model."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import torch

from linnet.backends.natives import NUMERICS
from linnet.backends.present import check_present, present_paths
from linnet.backends.source import Source, bound, default_entry
from linnet.ir import Program
from linnet.passes import Binding, bind
from linnet.torch.runtime.code import COMPILE_MODES, Settings, generate
from linnet.torch.runtime.inputs import TORCH
from linnet.torch.runtime.module import Model
from linnet.torch.runtime.shared import Shared
from linnet.torch.runtime.tree import Epoch, lazy_zeros, place
from linnet.types import DType, GenericArg, TensorType
from linnet.weights import LoadPlan, manifest_of, open_weights, plan_load
from linnet.weights import read_bindings as read_bindings_file


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
    check_present(weights, present)
    binding = bound(source, root, entry, generics or {}, std_root)
    place_on = _device(device)
    settings = Settings(numerics, compile, trainable, place_on.type)
    default = default_entry(binding, entry)
    manifest = manifest_of(binding)
    epoch = Epoch()
    if weights is None:
        there = present_paths(manifest, present)
        tensors = {p.path: _zeros(p.type, place_on) for p in binding.params if p.path in there}
        return _assemble(binding, settings, default, tensors, place_on, epoch)
    with open_weights(weights) as opened:
        lines = None if bindings is None else read_bindings_file(bindings)
        plan = plan_load(manifest, opened, lines, cast_dtype)
        tensors = read_all(plan, place_on)
    model = _assemble(binding, settings, default, tensors, place_on, epoch)
    del tensors
    model.lay_out()
    return model


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
    present: Collection[str] = (),
) -> str:
    """The Python module that runs one entry of a program. Optional parameters are absent unless
    their paths are in `present`."""
    binding = bind(program, block, generics or {})
    there = present_paths(manifest_of(binding), present)
    settings = Settings(numerics, False, trainable, device)
    return generate(binding, entry, settings, there, sizes, block or program.root).generated.text
