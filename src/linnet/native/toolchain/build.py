"""Compiling one generated translation unit."""

from __future__ import annotations

from functools import cache
from importlib.resources import as_file, files
from pathlib import Path

from linnet.native.toolchain.compiler import (
    Toolchain,
    cpu_features,
    find_toolchain,
    run_compiler,
)
from linnet.native.toolchain.kernels import kernels_object, link_flags
from linnet.native.toolchain.store import content_key, object_file


@cache
def header_text() -> str:
    """Everything that generated code includes."""
    root = files("linnet.native")
    return "".join(root.joinpath(part).read_text("utf-8") for part in (
        "support/linnet/support.h", "kernels/include/linnet/kernels.h",
    ))  # fmt: skip


def build(
    text: str, numerics: str, extra: tuple[str, ...] = (), with_kernels: bool = False
) -> Path:
    """The shared object of a translation unit, compiled where the cache has none."""
    toolchain = find_toolchain()
    flags = (*toolchain.flags(numerics), *extra)
    library = kernels_object() if with_kernels else None
    key = content_key(
        ("object 1", header_text(), text, toolchain.version, *toolchain.command, *flags,
         cpu_features(), "" if library is None else library.name)
    )  # fmt: skip
    link = [] if library is None else link_flags(library)
    return object_file(
        key, lambda folder, file: _compile(toolchain, flags, text, link, folder, file)
    )


def _compile(
    toolchain: Toolchain, flags: tuple[str, ...], text: str, link: list[str], folder: Path,
    file: Path,
) -> None:  # fmt: skip
    source = folder / "model.cpp"
    source.write_text(text, encoding="utf-8")
    with as_file(files("linnet.native")) as root:
        includes = [f"-I{root / 'support'}", f"-I{root / 'kernels' / 'include'}"]
        arguments = [*flags, *includes, "-shared", "-o", str(file), str(source), *link]
        run_compiler(toolchain, arguments, folder)
