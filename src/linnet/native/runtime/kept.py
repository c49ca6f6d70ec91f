"""A compiled entry as the cache keeps it: what its caller must know, and its object's name."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

from linnet.native.emit.module import Generated
from linnet.native.runtime import warm
from linnet.native.runtime.front import bare
from linnet.native.toolchain.compiler import cpu_features, find_toolchain
from linnet.native.toolchain.kernels import kernels_name
from linnet.native.toolchain.store import content_key, stored_file
from linnet.passes.bounds import Requirement


@dataclass(frozen=True, slots=True)
class _Record:
    generated: Generated
    requirements: tuple[Requirement, ...]
    object: str


def entry_key(parts: Iterable[str], numerics: str) -> str:
    """A name for the compiled form of what `parts` say."""
    toolchain = find_toolchain()
    flags = toolchain.flags(numerics)
    return content_key(("entry 1", *parts, "by", toolchain.version, *toolchain.command, *flags,
                        cpu_features(), kernels_name()))  # fmt: skip


@dataclass(frozen=True, slots=True)
class Kept:
    """An entry's code, what it requires of its inputs, and its object's file."""

    generated: Generated
    requirements: tuple[Requirement, ...]
    path: Path

    @staticmethod
    def read(name: str) -> Kept | None:
        record = warm.read(name, _Record)
        if record is None:
            return None
        path = stored_file(record.object)
        return None if path is None else Kept(record.generated, record.requirements, path)

    @staticmethod
    def write(
        name: str, generated: Generated, requirements: tuple[Requirement, ...], path: Path
    ) -> None:
        kept = replace(generated, function=bare(generated.function))
        warm.write(name, _Record(kept, requirements, path.stem))
