"""Compiling one generated translation unit."""

from __future__ import annotations

from concurrent.futures import Future
from functools import cache
from importlib.resources import as_file, files
from pathlib import Path

from linnet.native.support import header_texts
from linnet.native.toolchain.compiler import (
    Toolchain,
    cpu_features,
    find_toolchain,
    run_compiler,
)
from linnet.native.toolchain.jobs import Workers
from linnet.native.toolchain.kernels import kernels_name, kernels_object, link_flags
from linnet.native.toolchain.store import content_key, object_file, stored_file


@cache
def header_text() -> str:
    """Everything that generated code includes."""
    kernels = files("linnet.native").joinpath("kernels/include/linnet/kernels.h")
    return "".join((*header_texts(), kernels.read_text("utf-8")))


def build(
    text: str, numerics: str, extra: tuple[str, ...] = (), with_kernels: bool = False
) -> Path:
    """The shared object of a translation unit, compiled where the cache has none. Raises
    `NativeError` where that cannot be."""
    toolchain = find_toolchain()
    flags = (*toolchain.flags(numerics), *extra)
    key = _key(toolchain, text, flags, with_kernels)
    with Workers(1) as workers:  # the library is compiled beside the model
        library = workers.submit(kernels_object) if with_kernels else None
        made = object_file(
            key, lambda folder, file: _compile(toolchain, flags, text, library, folder, file)
        )
        if library is not None:
            library.result()
    return made


def is_built(text: str, numerics: str, with_kernels: bool = False) -> bool:
    """Whether the cache has the object."""
    toolchain = find_toolchain()
    key = _key(toolchain, text, toolchain.flags(numerics), with_kernels)
    if with_kernels and stored_file(kernels_name()) is None:
        return False
    return stored_file(key) is not None


def _key(toolchain: Toolchain, text: str, flags: tuple[str, ...], with_kernels: bool) -> str:
    return content_key(
        ("object 2", header_text(), text, toolchain.version, *toolchain.command, *flags,
         cpu_features(), kernels_name() if with_kernels else "")
    )  # fmt: skip


def _compile(
    toolchain: Toolchain, flags: tuple[str, ...], text: str, library: Future[Path] | None,
    folder: Path, file: Path,
) -> None:  # fmt: skip
    source, compiled = folder / "model.cpp", folder / "model.o"
    source.write_text(text, encoding="utf-8")
    with as_file(files("linnet.native")) as root:
        includes = [f"-I{root / 'support'}", f"-I{root / 'kernels' / 'include'}"]
        run_compiler(toolchain, [*flags, *includes, "-c", str(source)], folder, compiled)
    link = [] if library is None else link_flags(library.result())
    run_compiler(toolchain, [*flags, "-shared", str(compiled), *link], folder, file)
