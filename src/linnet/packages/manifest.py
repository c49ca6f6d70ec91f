"""Reading `linnet.toml`. Untrusted: limits first, and every complaint is an E5001 with a place."""

from __future__ import annotations

import os
import re
import tomllib
from pathlib import Path

from linnet.diagnostics.diagnostic import CompileError, Diagnostic
from linnet.diagnostics.span import SourceFile, Span
from linnet.packages.display import shown_path
from linnet.packages.files import FileError, decode_source, read_bytes, real_path
from linnet.packages.names import IDENTIFIER, nearest
from linnet.packages.package import Dependency, Package

MANIFEST_NAME = "linnet.toml"
LANGUAGE_VERSIONS = ("0.1",)
MAX_MANIFEST_BYTES = 256 * 1024
MAX_DEPENDENCIES = 256
MAX_NAME = 100
MAX_DEPTH = 32

_TABLES = ("package", "dependencies", "tool")
_METADATA = ("description", "authors", "license", "repository", "homepage", "keywords", "readme")
_PACKAGE_KEYS = ("name", "version", "language", *_METADATA)
_RESERVED_NAMES = ("std", "crate")
_VERSION = re.compile(r"[0-9A-Za-z][0-9A-Za-z.+_-]{0,63}\Z")
_TOML_PLACE = re.compile(r" \(at (?:line (\d+), column (\d+)|end of document)\)\Z")


def find_package(file: Path) -> Package | None:
    """The package that holds `file`: the nearest folder upward with a `linnet.toml`.

    Raises `CompileError` (E5001) when that `linnet.toml` is broken.
    """
    folder = package_folder(file)
    if folder is None:
        return None
    package, diagnostics = read_package(folder)
    if diagnostics:
        raise CompileError(diagnostics)
    return package


def package_folder(file: Path) -> Path | None:
    """The nearest folder upward from `file` that holds a `linnet.toml`, links resolved."""
    real = real_path(file)
    for folder in (real, *real.parents) if os.path.isdir(real) else real.parents:  # noqa: PTH112
        if os.path.lexists(folder / MANIFEST_NAME):
            return folder
    return None


def read_package(folder: Path) -> tuple[Package, tuple[Diagnostic, ...]]:
    """The package in `folder`. A broken manifest still gives a package to go on with."""
    root = real_path(folder)
    path = root / MANIFEST_NAME
    shown = shown_path(path)
    try:
        if not real_path(path).is_relative_to(root):
            raise FileError("is a link out of its package")
        data = read_bytes(path, MAX_MANIFEST_BYTES)
    except FileError as problem:
        missing = Diagnostic("E5001", f"`{shown}` {problem.reason}", None)
        return _fallback(root), (missing,)
    file, problem_found = decode_source(shown, data)
    if problem_found is not None:
        found = Diagnostic("E5001", problem_found.message, problem_found.span)
        return _fallback(root), (found,)
    reader = _Reader(root, file)
    package = reader.read()
    return package, tuple(reader.diagnostics)


def _fallback(root: Path) -> Package:
    name = re.sub(r"\W", "_", root.name, flags=re.ASCII) or "package"
    if not IDENTIFIER.match(name) or name in _RESERVED_NAMES:
        name = f"_{name}"
    return Package(root, name[:MAX_NAME])


class _Reader:
    """Turns one manifest's text into a `Package`, collecting what is wrong with it."""

    def __init__(self, root: Path, file: SourceFile) -> None:
        self.root = root
        self.file = file
        self.diagnostics: list[Diagnostic] = []

    def read(self) -> Package:
        fallback = _fallback(self.root)
        table = self._parse()
        if table is None:
            return fallback
        for key in table:
            if key not in _TABLES:
                self._report(
                    f"`{key}` is not a part of `linnet.toml`", key, self._known(key, _TABLES)
                )
        head = table.get("package")
        if not isinstance(head, dict):
            self._report(
                "`linnet.toml` has no `[package]` table",
                None if head is None else "package",
                'start it with `[package]` and `name = "..."`',
            )
            return fallback
        return Package(
            self.root,
            self._name(head, fallback.name),
            self._version(head),
            self._language(head),
            self._dependencies(table.get("dependencies", {})),
        )

    def _parse(self) -> dict[str, object] | None:
        """The parsed TOML, or None after a report.

        Brackets are counted first: the TOML parser recurses on nested arrays and tables.
        """
        if _depth(self.file.text) > MAX_DEPTH:
            self._report(f"`linnet.toml` nests deeper than {MAX_DEPTH} brackets", None, None)
            return None
        try:
            return tomllib.loads(self.file.text)
        except tomllib.TOMLDecodeError as error:
            text = str(error)
            place = _TOML_PLACE.search(text)
            message = text[: place.start()] if place else text
            message = message[:1].lower() + message[1:]
            self._add(f"`linnet.toml` is not valid TOML: {message}", self._toml_span(place), None)
        except (RecursionError, ValueError):  # absurd nesting in keys; integers of absurd length
            self._report("`linnet.toml` holds a value that cannot be read", None, None)
        return None

    def _name(self, head: dict[str, object], fallback: str) -> str:
        for key in head:
            if key not in _PACKAGE_KEYS:
                self._report(
                    f"`{key}` is not a key of `[package]`", key, self._known(key, _PACKAGE_KEYS)
                )
        name = head.get("name")
        if name is None:
            self._report("`[package]` has no `name`", "package", 'add `name = "..."`')
        elif not isinstance(name, str) or not IDENTIFIER.match(name) or len(name) > MAX_NAME:
            self._report(
                "the package's `name` must be a string of ASCII letters, digits and `_`"
                f" that starts with no digit, at most {MAX_NAME} long",
                "name",
                None,
            )
        elif name in _RESERVED_NAMES:
            self._report(f"a package may not be named `{name}`", "name", None)
        else:
            return name
        return fallback

    def _version(self, head: dict[str, object]) -> str:
        version = head.get("version", "0.0.0")
        if isinstance(version, str) and _VERSION.match(version):
            return version
        self._report('the package\'s `version` must be a string such as "0.1.0"', "version", None)
        return "0.0.0"

    def _language(self, head: dict[str, object]) -> str:
        language = head.get("language", LANGUAGE_VERSIONS[-1])
        if isinstance(language, str) and language in LANGUAGE_VERSIONS:
            return language
        known = ", ".join(f'"{each}"' for each in LANGUAGE_VERSIONS)
        self._report(
            f"this toolchain reads language {known}, and the package asks for another one",
            "language",
            f'write `language = "{LANGUAGE_VERSIONS[-1]}"`',
        )
        return LANGUAGE_VERSIONS[-1]

    def _dependencies(self, table: object) -> tuple[Dependency, ...]:
        if not isinstance(table, dict):
            self._report("`dependencies` must be a table", "dependencies", None)
            return ()
        if len(table) > MAX_DEPENDENCIES:
            self._report(f"more than {MAX_DEPENDENCIES} dependencies", "dependencies", None)
            return ()
        found = (self._dependency(str(key), value) for key, value in table.items())
        return tuple(each for each in found if each is not None)

    def _dependency(self, key: str, value: object) -> Dependency | None:
        example = 'write `key = { path = "../folder" }`'
        if not IDENTIFIER.match(key) or len(key) > MAX_NAME or key in _RESERVED_NAMES:
            self._report(
                f"`{key}` cannot be a dependency's key: modules are imported by it,"
                " so it must be an identifier other than `std` and `crate`",
                key,
                None,
            )
            return None
        path = value.get("path") if isinstance(value, dict) else None
        if not isinstance(path, str) or not path or "\0" in path or len(path) > 4096:
            self._report(f"the dependency `{key}` has no `path`", key, example)
            return None
        assert isinstance(value, dict)
        for extra in value:
            if extra != "path":
                self._report(f"`{extra}` is not a key of a dependency", extra, example)
        if Path(path).is_absolute():
            self._report(f"the dependency `{key}` has an absolute path", key, example)
            return None
        return Dependency(key, real_path(self.root / path))

    @staticmethod
    def _known(key: str, known: tuple[str, ...]) -> str:
        near = nearest(key, known)
        return f"did you mean `{near}`?" if near else "known are " + ", ".join(known)

    def _report(self, message: str, key: str | None, help_text: str | None) -> None:
        """Report at the line that sets `key`; at the file's first line when none does."""
        self._add(message, self._key_span(key), help_text)

    def _add(self, message: str, span: Span | None, help_text: str | None) -> None:
        self.diagnostics.append(Diagnostic("E5001", message, span, help=help_text))

    def _key_span(self, key: str | None) -> Span:
        if key is not None:
            quoted = re.escape(key)
            pattern = rf"^[ \t]*\[?[ \t]*[\"']?({quoted})(?![\w-])"
            match = re.search(pattern, self.file.text, re.MULTILINE)
            if match is not None:
                return Span(self.file, match.start(1), match.end(1))
        end = self.file.text.find("\n")
        return Span(self.file, 0, end if end >= 0 else len(self.file.text))

    def _toml_span(self, place: re.Match[str] | None) -> Span:
        if place is None or place[1] is None:
            end = len(self.file.text)
            return Span(self.file, end, end)
        starts = self.file.line_starts
        line = min(int(place[1]), len(starts))
        start = min(starts[line - 1] + int(place[2]) - 1, len(self.file.text))
        return Span(self.file, start, min(start + 1, len(self.file.text)))


def _depth(text: str) -> int:
    """The most brackets open at once, strings and comments counted too: an upper bound."""
    depth = deepest = 0
    for char in text:
        if char in "[{":
            depth += 1
            deepest = max(deepest, depth)
        elif char in "]}":
            depth = max(depth - 1, 0)
    return deepest
