"""`nest.toml` to `Card`: a stranger's file, so limits first and every problem reported."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

from linnet.diagnostics.diagnostic import Diagnostic
from linnet.diagnostics.span import SourceFile, Span
from linnet.nest.card import CARD_NAME, Card, SourceSpec, WeightSpec
from linnet.nest.errors import fail, fail_all, problem, quoted
from linnet.packages.files import FileError, decode_source, read_bytes

SIZE_LIMIT = 256 << 10
TEXT_LIMIT = 4096
LIST_LIMIT = 4096
DEPTH_LIMIT = 16
GENERIC_LIMIT = (1 << 63) - 1

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,95}", re.ASCII)
REPO = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,95}/[A-Za-z0-9][A-Za-z0-9._-]{0,95}", re.ASCII)
REVISION = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/-]{0,127}", re.ASCII)
PYPI = re.compile(r"([A-Za-z0-9](?:[A-Za-z0-9._-]{0,62}[A-Za-z0-9])?)==([0-9][0-9A-Za-z.!+]{0,63})")
SHA256 = re.compile(r"[0-9a-f]{64}")
_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,99}", re.ASCII)

_TABLES: dict[str, tuple[str, ...]] = {
    "model": ("name", "title", "summary", "license", "family", "tags"),
    "links": (),
    "source": ("path", "root", "entry"),
    "generics": (),
    "check": (),
    "weights": ("repo", "revision", "files", "gguf", "pypi", "sha256", "bindings"),
}


def read_card(folder: Path, fetched: bool) -> Card:
    """The card in `folder`; raises `NestError` with every problem found in it."""
    path = folder / CARD_NAME
    shown = str(path)
    try:
        data = read_bytes(path, SIZE_LIMIT)
    except FileError as error:
        fail("E5020", f"{quoted(shown)} {error.reason}")
    file, broken = decode_source(shown, data)
    if broken is not None:
        fail("E5020", broken.message)
    reader = _Reader(folder, file, fetched)
    card = reader.read()
    fail_all(reader.problems)
    return card


class _Reader:
    def __init__(self, folder: Path, file: SourceFile, fetched: bool) -> None:
        self.folder, self.file, self.fetched = folder, file, fetched
        self.problems: list[Diagnostic] = []

    def read(self) -> Card:
        tables = self._tables()
        model, source = tables["model"], tables["source"]
        name = self._text(model, "model", "name", required=True)
        if name and not NAME.fullmatch(name):
            self._bad("`name` is made of letters, digits, `.`, `_` and `-`", "name")
        return Card(
            folder=self.folder,
            name=name,
            title=self._text(model, "model", "title") or name,
            summary=self._text(model, "model", "summary"),
            license=self._text(model, "model", "license"),
            family=self._text(model, "model", "family"),
            tags=self._texts(model, "model", "tags"),
            links=self._links(tables["links"]),
            source=self._source(source),
            generics=self._generics(tables["generics"]),
            check=self._check(tables["check"]),
            weights=self._weights(tables["weights"]) if "weights" in self.given else None,
            fetched=self.fetched,
        )

    def _tables(self) -> dict[str, dict[str, Any]]:
        value = self._parse()
        tables: dict[str, dict[str, Any]] = {name: {} for name in _TABLES}
        self.given = frozenset(value)
        for name, table in value.items():
            if name not in _TABLES or not isinstance(table, dict):
                known = ", ".join(f"[{t}]" for t in _TABLES)
                self._bad(f"{quoted(name)} is no table of a card", name, f"tables are {known}")
                continue
            tables[name] = table
            for key in table:
                if _TABLES[name] and key not in _TABLES[name]:
                    known = ", ".join(_TABLES[name])
                    self._bad(f"[{name}] has no key {quoted(key)}", key, f"its keys are {known}")
        for name in ("model", "source"):
            if name not in value:
                self._bad(f"the card has no [{name}] table", None)
        return tables

    def _parse(self) -> dict[str, Any]:
        text = self.file.text
        if text.count("[") + text.count("{") > LIST_LIMIT or _depth(text) > DEPTH_LIMIT:
            fail("E5020", f"{quoted(self.file.path)} is nested too deeply")
        try:
            return tomllib.loads(text)
        except (tomllib.TOMLDecodeError, RecursionError, ValueError) as error:
            what = str(error)[:200] if isinstance(error, tomllib.TOMLDecodeError) else "bad value"
            fail("E5020", f"{quoted(self.file.path)} is not valid TOML: {what}")

    def _text(self, table: dict[str, Any], where: str, key: str, required: bool = False) -> str:
        value: object = table.get(key, "")
        if not isinstance(value, str) or len(value) > TEXT_LIMIT:
            self._bad(f"[{where}] {key} is no text of at most {TEXT_LIMIT} characters", key)
            return ""
        if required and not value and where in self.given:
            self._bad(f"[{where}] has no {key}", where)
        return value

    def _texts(self, table: dict[str, Any], where: str, key: str) -> tuple[str, ...]:
        value = table.get(key, [])
        texts = [value] if isinstance(value, str) else value
        if not isinstance(texts, list) or len(texts) > LIST_LIMIT:
            self._bad(f"[{where}] {key} is no list of at most {LIST_LIMIT} texts", key)
            return ()
        if not all(isinstance(text, str) and len(text) <= TEXT_LIMIT for text in texts):
            self._bad(f"[{where}] {key} holds something that is no short text", key)
            return ()
        return tuple(texts)

    def _links(self, table: dict[str, Any]) -> dict[str, str]:
        links = {key: self._text(table, "links", key) for key in list(table)[:LIST_LIMIT]}
        for key, link in links.items():
            if link and not link.startswith(("https://", "http://")):
                self._bad(f"the link {quoted(key)} is no web address", key)
        return links

    def _source(self, table: dict[str, Any]) -> SourceSpec:
        path = self._text(table, "source", "path", required=True)
        if path and not path.endswith(".linnet"):
            self._bad("[source] path names no .linnet file", "path")
        self._inside(path, "path")
        root = self._text(table, "source", "root") or None
        entry = self._text(table, "source", "entry") or None
        for key, name in (("root", root), ("entry", entry)):
            if name is not None and not _IDENTIFIER.fullmatch(name):
                self._bad(f"[source] {key} is no name", key)
        return SourceSpec(path, root, entry)

    def _inside(self, path: str, key: str) -> None:
        """A fetched card stays in its folder; a local one may lead to a sibling folder."""
        if not path:
            return
        if "\0" in path or "\\" in path or Path(path).is_absolute():
            self._bad(f"{quoted(path)} is no relative path with `/`", key)
            return
        home = self.folder.resolve()
        bound = home if self.fetched else home.parent
        if not (home / path).resolve().is_relative_to(bound):
            leads = "the fetched card" if self.fetched else "the folder beside the card"
            self._bad(f"{quoted(path)} leads out of {leads}", key)

    def _generics(self, table: dict[str, Any]) -> dict[str, int | str]:
        values: dict[str, int | str] = {}
        for name, value in table.items():
            if not _IDENTIFIER.fullmatch(name) or len(values) >= LIST_LIMIT:
                self._bad(f"[generics] {quoted(name)} is no generic's name", name)
            elif _is_generic(value):
                values[name] = value
            else:
                self._bad(f"[generics] {name} is neither a size nor a dtype's name", name)
        return values

    def _check(self, table: dict[str, Any]) -> dict[str, int]:
        values: dict[str, int] = {}
        for name, value in table.items():
            if _IDENTIFIER.fullmatch(name) and type(value) is int and 0 <= value <= GENERIC_LIMIT:
                values[name] = value
            else:
                self._bad(f"[check] {quoted(name)} is no size for an entry's generic", name)
        return values

    def _weights(self, table: dict[str, Any]) -> WeightSpec:
        files = self._texts(table, "weights", "files")
        gguf = self._text(table, "weights", "gguf")
        if gguf and files:
            self._bad("[weights] has both files and gguf", "gguf", "one of them says it all")
        if gguf and not gguf.endswith(".gguf"):
            self._bad("[weights] gguf names no .gguf file", "gguf")
        files = (gguf,) if gguf else files
        if not files:
            self._bad("[weights] names no files", "weights")
        for file in files:
            if not _plain_path(file):
                self._bad(f"[weights] {quoted(file)} is no plain file path", "files")
        bindings = self._text(table, "weights", "bindings") or None
        self._inside(bindings or "", "bindings")
        spec = WeightSpec(
            files,
            self._pattern(table, "repo", REPO, "a repository `owner/name`"),
            self._pattern(table, "revision", REVISION, "a revision"),
            self._pattern(table, "pypi", PYPI, "a wheel `dist==version`"),
            tuple(text.lower() for text in self._texts(table, "weights", "sha256")),
            bindings,
        )
        self._agree(spec)
        return spec

    def _agree(self, spec: WeightSpec) -> None:
        if spec.repo and spec.pypi:
            self._bad("[weights] has both repo and pypi", "pypi")
        if spec.pypi and not spec.sha256:
            self._bad("[weights] with pypi needs sha256, one for each file", "pypi")
        if spec.sha256 and len(spec.sha256) != len(spec.files):
            self._bad("[weights] sha256 needs one entry for each file", "sha256")
        if not all(SHA256.fullmatch(text) for text in spec.sha256):
            self._bad("[weights] sha256 is 64 hexadecimal digits", "sha256")

    def _pattern(
        self, table: dict[str, Any], key: str, pattern: re.Pattern[str], what: str
    ) -> str | None:
        value = self._text(table, "weights", key)
        if value and not (pattern.fullmatch(value) and ".." not in value):
            self._bad(f"[weights] {key} is not {what}", key)
            return None
        return value or None

    def _bad(self, what: str, key: str | None, help: str | None = None) -> None:
        self.problems.append(problem("E5020", what, span=self._place(key), help=help))

    def _place(self, key: str | None) -> Span:
        if key is not None:
            pattern = rf"^[ \t]*\[?[ \t]*[\"']?({re.escape(key)})(?![\w-])"
            found = re.search(pattern, self.file.text, re.MULTILINE)
            if found is not None:
                return Span(self.file, found.start(1), found.end(1))
        return Span(self.file, 0, len(self.file.line_text(1)))


def _is_generic(value: object) -> bool:
    if isinstance(value, str):
        return _IDENTIFIER.fullmatch(value) is not None
    return type(value) is int and 0 <= value <= GENERIC_LIMIT


def _plain_path(path: str) -> bool:
    """A relative path with `/` that never leaves its folder, on any platform."""
    parts = path.split("/")
    return (
        0 < len(path) <= 512
        and path.isprintable()
        and not any(part in ("", ".", "..") for part in parts)
        and not any(char in path for char in '\\:*?"<>|')
    )


def _depth(text: str) -> int:
    depth = deepest = 0
    for char in text:
        if char in "[{":
            depth += 1
            deepest = max(deepest, depth)
        elif char in "]}":
            depth = max(0, depth - 1)
    return deepest
