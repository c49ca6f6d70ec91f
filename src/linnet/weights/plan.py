"""The plan of a load: every parameter's tensor, checked before a byte of data is read."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from linnet.diagnostics.diagnostic import Diagnostic
from linnet.weights.bindings import Bindings
from linnet.weights.dtypes import castable
from linnet.weights.errors import fail_all, problem, quoted
from linnet.weights.manifest import Manifest, ParamSpec
from linnet.weights.source import TensorInfo, WeightSource

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True, slots=True)
class LoadItem:
    """One tensor to read, and the parameters it serves (several: they are tied)."""

    paths: tuple[str, ...]
    tensor: str
    source_dtype: str
    dtype: str
    shape: tuple[int, ...]

    @property
    def tied(self) -> bool:
        return len(self.paths) > 1


@dataclass(frozen=True, slots=True)
class LoadPlan:
    """Checked reads in the order of the file; `absent` are the optional paths left `none`."""

    source: WeightSource
    items: tuple[LoadItem, ...]
    absent: frozenset[str]

    def read(self, item: LoadItem) -> np.ndarray[Any, Any]:
        """The item's tensor in its target dtype, in memory of its own."""
        return self.source.read(item.tensor, item.dtype)

    def read_into(self, item: LoadItem, out: np.ndarray[Any, Any]) -> None:
        """Fill a contiguous array (or part of one) of the item's shape."""
        self.source.read_into(item.tensor, out)

    def read_torch(self, item: LoadItem, device: Any = "cpu") -> torch.Tensor:
        """The item's tensor as a torch tensor in its target dtype, in memory of its own."""
        return self.source.read_torch(item.tensor, item.dtype, device)

    def read_torch_into(self, item: LoadItem, out: torch.Tensor) -> None:
        """Fill a torch tensor, or a view of a larger one, of the item's shape."""
        self.source.read_torch_into(item.tensor, out)


def plan_load(
    manifest: Manifest | Iterable[ParamSpec],
    source: WeightSource,
    bindings: Bindings | None = None,
    cast_dtype: bool = False,
) -> LoadPlan:
    """Match a bound program's parameters with a checkpoint's tensors.

    Without bindings a parameter's path is its tensor's name. Raises one `WeightError` that lists
    every mismatch; no tensor is read.
    """
    if not isinstance(manifest, Manifest):
        manifest = Manifest(tuple(manifest))
    return _Planner(manifest, source, bindings, cast_dtype).plan()


class _Planner:
    def __init__(
        self, manifest: Manifest, source: WeightSource, bindings: Bindings | None, cast: bool
    ) -> None:
        self.manifest, self.source, self.cast = manifest, source, cast
        self.problems: list[Diagnostic] = []
        self.names = set(source.names())
        if bindings is None:
            self.bound = {p.path: p.path for p in manifest.params}
        else:
            self.bound, self.problems = bindings.expand(manifest)
        self.present = self._present_subs()

    def plan(self) -> LoadPlan:
        groups: dict[tuple[str, str], list[ParamSpec]] = {}
        absent = set()
        for param in self.manifest.params:
            if self._found(param):
                tensor = self.bound[param.path]
                self._check(param, tensor, self.source.info(tensor))
                groups.setdefault((tensor, param.dtype), []).append(param)
            elif param.optional or (param.within and param.within not in self.present):
                absent.add(param.path)
            else:
                self._missing(param)
        fail_all(self.problems)
        order = {name: n for n, name in enumerate(self.source.names())}
        items = [self._item(tensor, params) for (tensor, _), params in groups.items()]
        items.sort(key=lambda item: order[item.tensor])
        return LoadPlan(self.source, tuple(items), frozenset(absent))

    def _found(self, param: ParamSpec) -> bool:
        return self.bound.get(param.path) in self.names

    def _present_subs(self) -> set[str]:
        """Optional subs of which, or of a sub inside which, the checkpoint has any tensor."""
        present = set()
        within = {p.within for p in self.manifest.params if p.within}
        for param in self.manifest.params:
            if param.within and self._found(param):
                present |= {
                    sub
                    for sub in within
                    if param.within == sub or param.within.startswith(sub + ".")
                }
        return present

    def _item(self, tensor: str, params: list[ParamSpec]) -> LoadItem:
        info = self.source.info(tensor)
        paths = tuple(p.path for p in params)
        return LoadItem(paths, tensor, info.dtype, params[0].dtype, info.shape)

    def _missing(self, param: ParamSpec) -> None:
        who = f"parameter {quoted(param.path)}"
        if param.path not in self.bound:
            what = f"{who} has no binding"
            self.problems.append(problem("E5007", what, help="add a line for it to the bindings"))
            return
        tensor = self.bound[param.path]
        what = f"{self.source.label} has no tensor {quoted(tensor)}, to which {who} is bound"
        # Comparing with every name is quadratic: enough for the first few of a long list.
        few = len(self.problems) < 20
        near = difflib.get_close_matches(tensor, sorted(self.names)[:5000], n=1) if few else []
        help = f"did you mean {quoted(near[0])}?" if near else None
        self.problems.append(problem("E5008", what, help=help))

    def _check(self, param: ParamSpec, tensor: str, info: TensorInfo) -> None:
        who = f"parameter {quoted(param.path)}"
        source = f"tensor {quoted(tensor)} of {self.source.label}"
        if param.shape != info.shape:
            what = f"{who} has shape {_shape(param.shape)}, but {source} has {_shape(info.shape)}"
            self.problems.append(problem("E5009", what))
        if not info.readable:
            code = "E5011" if info.converts else "E5010"
            what = f"{source} is stored as {info.stored}, which is not supported"
            self.problems.append(problem(code, what, notes=(f"{who} is {param.dtype}",)))
        elif param.dtype != info.dtype and not self._converts(info, param.dtype):
            what = f"{who} has dtype {param.dtype}, but {source} has {info.dtype}"
            fixable = castable(info.dtype, param.dtype)
            help = "pass cast_dtype=True to convert float tensors as they load" if fixable else None
            self.problems.append(problem("E5010", what, help=help))

    def _converts(self, info: TensorInfo, target: str) -> bool:
        return castable(info.dtype, target) and (self.cast or info.converts)


def _shape(shape: tuple[int, ...]) -> str:
    return "[" + ", ".join(map(str, shape)) + "]"
