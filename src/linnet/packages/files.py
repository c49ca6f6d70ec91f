"""Reading one text file that a stranger may have prepared."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from linnet.diagnostics.diagnostic import Diagnostic
from linnet.diagnostics.span import SourceFile, Span

MAX_SOURCE_BYTES = 4 * 1024 * 1024


class FileError(Exception):
    """A file that can't be read as text. `reason` completes "`x` ..."."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


def real_path(path: Path) -> Path:
    """`path` made absolute with its links resolved; never raises, whatever the path is."""
    try:
        return Path(os.path.realpath(path))
    except (OSError, ValueError):  # a NUL in it, or a working folder that is gone
        return path


def read_bytes(path: Path, limit: int = MAX_SOURCE_BYTES) -> bytes:
    """The content of a regular file of at most `limit` bytes; raises `FileError` otherwise.

    Opened without blocking, so that a named pipe can't make the caller wait, and judged by the
    open file rather than by its name, which may change in between.
    """
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    flags |= getattr(os, "O_NOCTTY", 0) | getattr(os, "O_CLOEXEC", 0)
    try:
        mode = path.stat().st_mode
        if not stat.S_ISREG(mode):
            raise FileError(f"is {_kind(mode)}, not a file")
        descriptor = os.open(path, flags)
    except ValueError:
        raise FileError("has a name no file can have") from None
    except OSError as error:
        raise FileError(_reason(error)) from None
    with os.fdopen(descriptor, "rb") as handle:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise FileError(f"is {_kind(status.st_mode)}, not a file")
        if status.st_size > limit:
            raise FileError(f"has {status.st_size:,} bytes, more than the {limit:,} allowed")
        try:
            data = handle.read(limit + 1)
        except OSError as error:
            raise FileError(_reason(error)) from None
    if len(data) > limit:
        raise FileError(f"has more than the {limit:,} bytes allowed")
    return data


def decode_source(shown: str, data: bytes) -> tuple[SourceFile, Diagnostic | None]:
    """The text of a source file, and the problem if its bytes are not UTF-8 text.

    A byte-order mark is dropped. Bytes that are no UTF-8 stay visible in the text as lone
    surrogates, so that the report can show the line they are in.
    """
    text = data.decode("utf-8-sig", "surrogateescape")
    file = SourceFile(shown, text)
    at = next((i for i, char in enumerate(text) if "\udc80" <= char <= "\udcff"), -1)
    if at >= 0:
        byte = ord(text[at]) - 0xDC00
        return file, Diagnostic(
            "E1001",
            f"this file is not UTF-8 text: it holds the byte 0x{byte:02x}",
            Span(file, at, at + 1),
            help="save the file as UTF-8",
        )
    at = text.find("\0")
    if at >= 0:
        return file, Diagnostic(
            "E1001",
            "this file holds a NUL character, so it is not a text file",
            Span(file, at, at + 1),
        )
    return file, None


def _reason(error: OSError) -> str:
    match error:
        case FileNotFoundError() | NotADirectoryError():
            return "does not exist"
        case PermissionError():
            return "may not be read"
        case _:
            return f"cannot be read: {(error.strerror or 'unknown error').lower()}"


def _kind(mode: int) -> str:
    if stat.S_ISDIR(mode):
        return "a folder"
    if stat.S_ISFIFO(mode):
        return "a named pipe"
    if stat.S_ISSOCK(mode):
        return "a socket"
    return "a device"
