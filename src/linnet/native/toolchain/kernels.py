"""The kernel library as a shared object of its own, one for all models."""

from __future__ import annotations

import os
import sys
from functools import cache
from pathlib import Path
from threading import Lock

from linnet.diagnostics.escape import escape_text
from linnet.native import kernels
from linnet.native.errors import NativeError
from linnet.native.toolchain.compiler import (
    Toolchain,
    cpu_flags,
    find_toolchain,
    run_compiler,
)
from linnet.native.toolchain.jobs import Workers
from linnet.native.toolchain.store import SUFFIX, content_key, object_file

_WIDE = frozenset(("avx512f", "avx512bw", "avx512dq", "avx512vl"))
_NEEDS = {
    "avx2": frozenset(("avx2", "fma", "f16c")),
    "avx512": _WIDE,
    "vnni": _WIDE | {"avx512_vnni"},
    "bf16": _WIDE | {"avx512_vnni", "avx512_bf16"},
    "amx": _WIDE | {"avx512_vnni", "avx512_bf16", "amx_tile", "amx_bf16"},
}  # fmt: skip
# What has everything that another has, and so takes its place.
_HOLDS = {"avx512": {"avx2"}, "bf16": {"avx2", "avx512", "vnni"}}
# What `LINNET_ISA` may name, as the library does.
ISAS = ("portable", "avx2", "avx512", "avx512_vnni", "avx512_bf16", "amx")


def wanted_isa() -> str | None:
    """The instruction set that `LINNET_ISA` names. Raises `NativeError` for one that there is
    not."""
    named = os.environ.get("LINNET_ISA") or None
    if named is not None and named not in ISAS:
        shown = escape_text(named, 60)
        raise NativeError(f"LINNET_ISA is one of {', '.join(ISAS)}, not `{shown}`")
    return named


def left_out() -> frozenset[str]:
    """The instruction sets whose kernels this processor never runs: what it lacks, and what it
    has better. None where `LINNET_ISA` may name any, or nothing is known of the processor."""
    flags = cpu_flags()
    if not flags or wanted_isa() is not None:
        return frozenset()
    usable = {name for name, needs in _NEEDS.items() if needs <= flags}
    beaten = set().union(*(held for name, held in _HOLDS.items() if name in usable))
    return frozenset(set(_NEEDS) - usable | beaten)


def seldom_used() -> frozenset[str]:
    """What is compiled for the sake of others, and hardly runs itself."""
    return frozenset(("portable",) if _NEEDS["avx2"] <= cpu_flags() else ())


@cache
def kernels_key() -> str:
    """What the library is made from."""
    toolchain = find_toolchain()
    files = (*kernels.SOURCES, kernels.C_NAMES, kernels.HEADER, *kernels.INTERNAL)
    flags = (*kernels.FLAGS, *kernels.LINK_FLAGS, *sorted(left_out()))
    return content_key(
        ("kernels 2", *(file.read_bytes() for file in files), toolchain.version,
         *toolchain.command, *flags)
    )  # fmt: skip


def kernels_name() -> str:
    return f"kernels-{kernels_key()}"


_one_at_a_time = Lock()


def kernels_object() -> Path:
    """The library's file, compiled where the cache has none."""
    with _one_at_a_time:  # a second thread waits instead of compiling the same
        return _kernels_object()


@cache
def _kernels_object() -> Path:
    toolchain = find_toolchain()
    return object_file(kernels_name(), lambda folder, file: _compile(toolchain, folder, file))


def _compile(toolchain: Toolchain, folder: Path, file: Path) -> None:
    """Sources side by side, then the link."""
    without = left_out()
    sources = [
        source
        for source in (*kernels.SOURCES, kernels.C_NAMES)
        if source.stem.removeprefix("isa_") not in without
    ]
    flags = [*kernels.FLAGS, "-w", f"-I{kernels.INCLUDE}"]
    flags += [f"-DLINNET_WITHOUT_{name.upper()}" for name in sorted(without)]
    if toolchain.is_zig:
        flags.append("-fno-sanitize=undefined")

    def one(source: Path) -> str:
        made = folder / f"{source.stem}.o"
        own = ["-O1"] if source.stem == "isa_portable" and "portable" in seldom_used() else []
        run_compiler(toolchain, [*flags, *own, "-c", str(source)], folder, made)
        return str(made)

    with Workers(min(8, os.cpu_count() or 1)) as workers:
        objects = workers.map(one, sources)
    run_compiler(toolchain, [*kernels.LINK_FLAGS, *own_name(), *objects], folder, file)


def own_name() -> list[str]:
    """The name by which objects that are linked against the library ask for it."""
    name = f"{kernels_name()}{SUFFIX}"
    if sys.platform == "darwin":
        return [f"-Wl,-install_name,@rpath/{name}"]
    return [] if sys.platform == "win32" else [f"-Wl,-soname,{name}"]


def link_flags(library: Path) -> list[str]:
    """What an object that calls the kernels is linked with."""
    if sys.platform == "win32":
        return [str(library)]
    origin = "@loader_path" if sys.platform == "darwin" else "$ORIGIN"
    return [str(library), f"-Wl,-rpath,{origin}"]
