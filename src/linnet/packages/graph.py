"""From paths to parsed modules: everything the roots import, imported before importers."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from linnet.diagnostics.diagnostic import Diagnostic, Label
from linnet.diagnostics.span import SourceFile
from linnet.packages.cache import NotTextError, parse_cached
from linnet.packages.display import shown_path
from linnet.packages.files import FileError, real_path
from linnet.packages.manifest import package_folder, read_package
from linnet.packages.names import IDENTIFIER
from linnet.packages.package import Package, library_package
from linnet.packages.resolve import Resolved, Resolver
from linnet.packages.resources import stdlib_root
from linnet.packages.walk import source_files
from linnet.syntax import tree

MAX_MODULES = 5000


@dataclass(frozen=True, slots=True, eq=False)
class LoadedModule:
    """One parsed file.

    `id` is unique a file: the package's name and the path in it (`qwen3.attention`,
    `std.nn.linear`). `imports` gives for the index of each `use` in `tree.uses` the id of the
    module it names; a `use` that is missing there was reported and brings nothing in. `broken`
    says that the parser reported errors, so that items may be missing from the tree.
    """

    id: str
    file: SourceFile
    path: Path
    tree: tree.Module
    package: Package | None
    imports: dict[int, str]
    broken: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class ModuleGraph:
    """All modules in dependency order (imported before importers), those asked for in `roots`.

    `diagnostics` are the parser's and those of files, packages and imports.
    """

    modules: dict[str, LoadedModule]
    roots: tuple[str, ...]
    diagnostics: tuple[Diagnostic, ...]


def load_sources(
    paths: Iterable[Path | str] | Path,
    std_root: Path | None = None,
    *,
    boundary: Path | None = None,
) -> ModuleGraph:
    """Parse the files and folders in `paths` and all they import; see `ModuleGraph`.

    A folder stands for every `.linnet` file under its `src`, or under itself. `std_root`
    replaces the library; `boundary` is a folder no dependency may lie outside of.
    """
    if isinstance(paths, (str, Path)):
        paths = [paths]
    library = library_package(stdlib_root() if std_root is None else std_root)
    loader = _Loader(Resolver(library, boundary))
    files, problems = source_files(Path(path) for path in paths)
    loader.diagnostics.extend(problems)
    roots = [loader.load_root(path) for path in files]
    seen = dict.fromkeys(root for root in roots if root is not None)
    return ModuleGraph(loader.modules, tuple(seen), tuple(loader.diagnostics))


@dataclass(slots=True)
class _Draft:
    """A module whose imports are being followed; `next_use` is the first not yet looked at."""

    module: LoadedModule
    next_use: int = 0


@dataclass(slots=True)
class _Loader:
    resolver: Resolver
    modules: dict[str, LoadedModule] = field(default_factory=dict)
    diagnostics: list[Diagnostic] = field(default_factory=list)
    ids: dict[Path, str] = field(default_factory=dict)
    taken: dict[str, Path] = field(default_factory=dict)
    unreadable: set[Path] = field(default_factory=set)
    packages: dict[Path, Package] = field(default_factory=dict)

    def load_root(self, path: Path) -> str | None:
        """Load one file and all it imports; its id, or None when it could not be read."""
        real = real_path(path)
        if real in self.ids and self.ids[real] in self.modules:
            return self.ids[real]
        if real in self.unreadable:
            return None
        package = self._package_of(real)
        try:
            draft = self._open(real, package)
        except FileError as problem:
            self.unreadable.add(real)
            message = f"`{shown_path(real)}` {problem.reason}"
            self.diagnostics.append(Diagnostic("E1202", message, None))
            return None
        if draft is None:
            return None
        self._follow(draft)
        return draft.module.id

    def _follow(self, first: _Draft) -> None:
        """Depth first without recursion: a chain of imports may be long."""
        stack = [first]
        while stack:
            draft = stack[-1]
            uses = draft.module.tree.uses
            if draft.next_use == len(uses):
                self.modules[draft.module.id] = draft.module
                stack.pop()
                continue
            opened = self._import(stack, draft, draft.next_use)
            draft.next_use += 1
            if opened is not None:
                stack.append(opened)

    def _import(self, stack: list[_Draft], draft: _Draft, index: int) -> _Draft | None:
        """Settle one `use`; a draft when its module has to be loaded first."""
        use = draft.module.tree.uses[index]
        parts = [part.text for part in use.path.parts]
        found = self.resolver.resolve(parts, draft.module.package, use.path.span)
        if isinstance(found, Diagnostic):
            self.diagnostics.append(found)
            return None
        known = self.ids.get(found.path)
        if known is not None:
            if known in self.modules:
                draft.module.imports[index] = known
            else:
                self.diagnostics.append(_cycle(stack, known, use))
            return None
        opened = self._open_import(found, use)
        if opened is not None:
            draft.module.imports[index] = opened.module.id
        return opened

    def _open_import(self, found: Resolved, use: tree.Use) -> _Draft | None:
        if found.path in self.unreadable:
            return None
        try:
            if len(self.ids) >= MAX_MODULES:
                raise FileError(f"is one module more than the {MAX_MODULES:,} allowed together")
            return self._open(found.path, found.package)
        except FileError as problem:
            self.unreadable.add(found.path)
            message = f"the module `{use.path}` {problem.reason}"
            self.diagnostics.append(Diagnostic("E1202", message, use.path.span))
            return None

    def _open(self, real: Path, package: Package | None) -> _Draft | None:
        """Read and parse one file; None when it is no text, which is reported here."""
        try:
            file, module, problems = parse_cached(real, shown_path(real))
        except NotTextError as error:
            self.unreadable.add(real)
            self.diagnostics.append(error.problem)
            return None
        self.diagnostics.extend(problems)
        name = self._name(real, package)
        self.ids[real] = name
        broken = any(each.severity == "error" for each in problems)
        return _Draft(LoadedModule(name, file, real, module, package, {}, broken))

    def _package_of(self, real: Path) -> Package | None:
        if real.is_relative_to(self.resolver.library.root):
            return self.resolver.library
        folder = package_folder(real)
        if folder is None:
            return None
        if folder not in self.packages:
            self.packages[folder], problems = read_package(folder)
            self.diagnostics.extend(problems)
        return self.packages[folder]

    def _name(self, real: Path, package: Package | None) -> str:
        """A module's id. Two packages of one name are told apart by a number."""
        name = wanted = _logical_name(real, package)
        number = 2
        while self.taken.setdefault(name, real) != real:
            name = f"{wanted}#{number}"
            number += 1
        return name


def _logical_name(real: Path, package: Package | None) -> str:
    """`qwen3.attention` for `src/attention.linnet` of `qwen3`; a lone file's own name."""
    if package is None:
        parts = ["".join(char if char.isalnum() else "_" for char in real.stem)]
        if parts[0] == "std" or not IDENTIFIER.match(parts[0]):
            parts = [f"_{parts[0]}"]
    elif real.is_relative_to(package.source):
        parts = [package.name, *real.relative_to(package.source).with_suffix("").parts]
    else:
        parts = [package.name, *real.relative_to(package.root).with_suffix("").parts]
    if package is not None and len(parts) == 2 and parts[1] == "lib":
        parts = parts[:1]
    return ".".join(parts)


def _cycle(stack: list[_Draft], closing: str, use: tree.Use) -> Diagnostic:
    """E1206 at the `use` that closes the cycle, with the other imports as related places."""
    ids = [draft.module.id for draft in stack]
    drafts = stack[ids.index(closing) :]
    names = [draft.module.id for draft in drafts]
    if len(names) == 1:
        return Diagnostic("E1206", f"the module `{closing}` imports itself", use.path.span)
    related = tuple(
        Label(
            draft.module.tree.uses[draft.next_use - 1].path.span,
            f"`{draft.module.id}` imports `{after}` here",
        )
        for draft, after in zip(drafts[:-1], names[1:], strict=True)
    )
    chain = " -> ".join(f"`{name}`" for name in _shortened([*names, closing]))
    return Diagnostic(
        "E1206",
        f"these modules import each other in a cycle: {chain}",
        use.path.span,
        related=related[:8],
        help="move what both need into a module of its own",
    )


def _shortened(names: list[str]) -> list[str]:
    return names if len(names) <= 10 else [*names[:4], "...", *names[-4:]]
