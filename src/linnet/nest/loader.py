"""`nest.load`: a card's source, generics, weights and bindings through a backend."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from inspect import Parameter, signature
from pathlib import Path
from typing import Any

from linnet.nest.card import Card
from linnet.nest.errors import fail, quoted
from linnet.nest.fetch import fetch_weights
from linnet.nest.find import find_card
from linnet.nest.progress import Progress
from linnet.nest.watched import WatchedSource
from linnet.weights import open_weights

BACKENDS: dict[str, tuple[str, str]] = {
    "torch": ("linnet.torch", "load"),
    "jax": ("linnet.jax", "load_source_model"),
    "jax_source": ("linnet.jax", "load_source_model"),
    "jax_model": ("linnet.jax", "load_model"),
    "native": ("linnet.native", "load"),
    "onnx_model": ("linnet.onnx", "load_model"),
}
"""Each backend's module and loader."""
_OWN = frozenset({"generics", "weights", "bindings", "entry", "root"})  # what `load` itself gives


def load(
    card: str | Path | Card,
    backend: str = "torch",
    *,
    generics: Mapping[str, int | str] | None = None,
    weights: Any = None,
    bindings: Any = None,
    entry: str | None = None,
    root: str | None = None,
    cache_dir: str | Path | None = None,
    progress: Progress | None = None,
    **options: Any,
) -> Any:
    """A card's model, ready to call.

    `card` is an installed card's name, a folder (with a separator) or a Hub repository. `generics`
    override the card's one by one; `weights` and `bindings` replace the card's; other keywords go
    to the backend's loader (`numerics=`, `compile=`, `device=`, `cast_dtype=`, ...). With
    `progress` the reading is shown. Raises `NestError`, `WeightError` or `CompileError`.
    """
    loader = find_loader(backend)
    check_options(backend, loader, options)
    found = find_card(card, cache_dir, progress)
    confine(found)
    if weights is None:
        weights = one_or_all(fetch_weights(found, cache_dir, progress))
    options |= {
        "generics": {**found.generics, **(generics or {})},
        "bindings": bindings if bindings is not None else found.bindings_path,
        "entry": entry or found.source.entry,
        "root": root or found.source.root,
    }
    if progress is None:
        return loader(str(found.source_path), weights=weights, **options)
    with open_weights(weights) as source:
        total = sum(source.info(name).nbytes for name in source.names())
        with progress.bar(f"loading {found.name}", total) as advance:
            watched = WatchedSource(source, advance)
            return loader(str(found.source_path), weights=watched, **options)


def find_loader(backend: str) -> Any:
    """A backend's `load`. Raises `NestError` (E5027) for one that isn't there."""
    if backend not in BACKENDS:
        known = ", ".join(BACKENDS)
        fail("E5027", f"there is no backend {quoted(backend)}", notes=(f"backends: {known}",))
    module, name = BACKENDS[backend]
    try:
        return getattr(import_module(module), name)
    except ModuleNotFoundError as error:
        if error.name is not None and error.name.startswith("linnet"):
            raise
        lacking = quoted(str(error.name))
        fail(
            "E5027",
            f"the backend {quoted(backend)} needs {lacking}, which is not installed",
            help=f"pip install 'linnet[{backend.partition('_')[0]}]'",
        )


def check_options(backend: str, loader: Any, options: Mapping[str, Any]) -> None:
    """Raises `NestError` (E5027) for an option that the backend's loader does not have."""
    params = signature(loader).parameters.values()
    if any(p.kind is Parameter.VAR_KEYWORD for p in params):
        return  # it names what it doesn't know itself
    known = [p.name for p in params if p.kind is Parameter.KEYWORD_ONLY and p.name not in _OWN]
    for name in options:
        if name not in known:
            fail(
                "E5027",
                f"the backend {quoted(backend)} has no option {quoted(name)}",
                notes=(f"its options: {', '.join(known)}",),
            )


def one_or_all(files: list[Path]) -> Path | list[Path]:
    """A single weight file, or the list of a model's shards."""
    return files[0] if len(files) == 1 else files


def confine(card: Card) -> None:
    """Refuse a fetched card whose package depends on folders outside what was fetched."""
    if not card.fetched:
        return
    from linnet.packages import read_package

    home = card.folder.resolve()
    seen: set[Path] = set()
    waiting = [home]
    while waiting:
        folder = waiting.pop()
        if folder in seen or not (folder / "linnet.toml").is_file():
            continue
        seen.add(folder)
        package, _ = read_package(folder)  # what is broken in it is the checker's to report
        for dependency in package.dependencies:
            if not dependency.path.is_relative_to(home):
                where = f"its dependency {quoted(dependency.key)} leads out of what was fetched"
                fail("E5023", f"the card {quoted(card.name)} is refused: {where}")
            waiting.append(dependency.path)
