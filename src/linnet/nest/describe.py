"""What `nest show` prints of a card and `nest check` demands of a model folder. Neither runs it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

from linnet.api import load_program
from linnet.diagnostics.diagnostic import CompileError, Diagnostic
from linnet.ir import Program
from linnet.nest.active import row_state, shares
from linnet.nest.card import CARD_NAME, Card
from linnet.nest.errors import problem, quoted
from linnet.nest.loader import confine
from linnet.nest.progress import size_text
from linnet.passes import BindError, Binding, bind
from linnet.weights import Manifest, ParamSpec, manifest_of, read_bindings


@dataclass(frozen=True, slots=True)
class CheckResult:
    """What `check` found: every problem, and the card and manifest as far as they could be made."""

    card: Card | None
    manifest: Manifest | None
    diagnostics: tuple[Diagnostic, ...]

    @property
    def ok(self) -> bool:
        return not any(d.severity == "error" for d in self.diagnostics)


def check_folder(folder: str | Path) -> CheckResult:
    """Check a model folder: its card, its package, its generics, and that all of it is bound.

    No weights are needed, nothing is fetched and nothing of the folder runs.
    """
    try:
        card = Card.read(folder)
    except CompileError as error:
        return CheckResult(None, None, error.diagnostics)
    problems = list(_files(card))
    manifest = None
    try:
        manifest = manifest_for(card)
        problems += _check_entries(card)
        problems += _check_bindings(card, manifest)
    except CompileError as error:
        problems += error.diagnostics
    return CheckResult(card, manifest, tuple(dict.fromkeys(problems)))


def manifest_for(card: Card) -> Manifest:
    """What the card's program needs with the card's generics. Raises `CompileError`."""
    return manifest_of(binding_for(card))


def binding_for(card: Card) -> Binding:
    """The card's program bound to the card's generics. Raises `CompileError`."""
    confine(card)
    program = load_program(card.source_path)
    try:
        return bind(program, card.source.root, dict(card.generics))
    except BindError as error:
        span = None
        found = [problem("E5028", text, span=span) for text in error.problems]
        raise CompileError(tuple(found)) from None


def _files(card: Card) -> Iterable[Diagnostic]:
    if card.folder.resolve().name != card.name:
        what = f"the card is named {quoted(card.name)}, its folder {quoted(card.folder.name)}"
        yield problem("E5028", what, help="give both one name")
    if not (card.folder / "README.md").is_file():
        yield problem("E5028", "the model folder has no README.md")
    for key in ("summary", "license", "family"):
        if not getattr(card, key):
            yield problem("E5028", f"the card's [model] has no {key}")
    if card.weights is None:
        yield problem("E5028", f"{CARD_NAME} names no [weights]")
    elif card.weights.repo is not None and card.weights.revision is None:
        yield problem("E5028", "[weights] repo has no revision", help="name the commit to fetch")


def _check_entries(card: Card) -> Iterable[Diagnostic]:
    program = load_program(card.source_path)
    root = card.source.root
    entries = program.entries(bound_name(program, root))
    if card.source.entry is not None and card.source.entry not in entries:
        known = ", ".join(sorted(entries)) or "none"
        what = f"[source] entry: there is no entry {quoted(card.source.entry)}"
        yield problem("E5028", what, notes=(f"entries: {known}",))
    own = {g.name for entry in entries.values() for g in entry.generics} - set(card.generics)
    for name in card.check:
        if name not in own:
            yield problem("E5028", f"[check] no entry has a generic {quoted(name)}")


def bound_name(program: Program, root: str | None) -> str | None:
    """The full name of the card's root block, as the program's tables have it."""
    from linnet.passes.bound import find_block

    return None if root is None else find_block(program, root).name


def _check_bindings(card: Card, manifest: Manifest) -> Iterable[Diagnostic]:
    if card.bindings_path is None:
        return
    bound, problems = read_bindings(card.bindings_path).expand(manifest)
    yield from problems
    for param in manifest.params:
        if param.path not in bound and not param.optional and not param.within:
            what = f"parameter {quoted(param.path)} has no binding"
            yield problem("E5028", what, help=f"add a line for it to {card.bindings_path.name}")


def show_lines(card: Card, binding: Binding, full: bool = False) -> list[str]:
    """The card and its sizes as lines of text; `full` lists every parameter."""
    manifest = manifest_of(binding)
    lines = [card.title or card.name, ""]
    if card.summary:
        lines += [card.summary, ""]
    generics = ", ".join(f"{name} = {value}" for name, value in card.generics.items())
    facts = {
        "family": card.family,
        "license": card.license,
        "weights": _weights_text(card),
        "source": card.source.path,
        "generics": generics,
    }
    lines += [f"{key:10}{value}" for key, value in facts.items() if value]
    held, tied = _held(card, manifest)
    count = sum(_count(p.shape) for p in held)
    total = sum(p.nbytes for p in held)
    lines += ["", f"{count:,} parameters in {len(held)} tensors, {size_text(total)}"]
    read = shares(binding)
    for part, (number, size) in _parts(held, manifest, read).items():
        lines.append(f"  {part:24}{number:>16,}{size_text(size):>12}")
    lines += [f"  {path:24}{f'tied to {to}':>28}" for path, to in tied.items()]
    active = _active_text(held, {p: s for p, s in read.items() if p not in tied.values()})
    lines += [active] if active else []
    lines += _state_lines(binding, manifest)
    if full:
        lines += [""] + [f"  {p.path}: {list(p.shape)} {p.dtype}" for p in held]
    return lines


def _active_text(held: list[ParamSpec], read: dict[str, Fraction]) -> str:
    """How many parameters a token reads, where it goes through a part of the experts only."""
    if not any(_stacked(p, read) for p in held):
        return ""
    count = sum(_count(p.shape) for p in held)
    active = int(sum(_count(p.shape) * read.get(p.path, 1) for p in held))
    return f"active: {active:,} parameters a token, {active / count:.1%} of them"


def _stacked(param: ParamSpec, read: dict[str, Fraction]) -> bool:
    """Whether the parameter is a stack of experts, a token reading some of them."""
    return param.path in read and len(param.shape) > 2


def _state_lines(binding: Binding, manifest: Manifest) -> list[str]:
    total = sum(s.nbytes for s in manifest.states)
    lines = [f"state: {len(manifest.states)} tensors, {size_text(total)}"]
    size = row_state(binding) if total else None
    if size is not None and size.each:
        row = size_text(size.each * size.positions + size.fixed)
        lines.append(
            f"  a row: {row}, {size_text(size.each)} for each of {size.positions:,} positions"
            f" and {size_text(size.fixed)} beside them"
        )
    return lines


def _held(card: Card, manifest: Manifest) -> tuple[list[ParamSpec], dict[str, str]]:
    """Parameters with a tensor of their own, and the others' paths with whose tensor they share.

    Optional parameters that nothing is bound to are left out: the checkpoint lacks them.
    """
    bound = {p.path: p.path for p in manifest.params}
    if card.bindings_path is not None:
        bound, _ = read_bindings(card.bindings_path).expand(manifest)
    owners: dict[str, str] = {}
    held, tied = [], {}
    for param in manifest.params:
        tensor = bound.get(param.path)
        if tensor is None and (param.optional or param.within):
            continue
        owner = owners.setdefault(tensor, param.path) if tensor is not None else param.path
        if owner == param.path:
            held.append(param)
        else:
            tied[param.path] = owner
    return held, tied


def _weights_text(card: Card) -> str:
    spec = card.weights
    if spec is None:
        return ""
    where = f"{spec.repo} at {spec.revision or 'the latest revision'}" if spec.repo else ""
    if spec.pypi:
        where = f"PyPI {spec.pypi}"
    files = spec.files[0] if len(spec.files) == 1 else f"{len(spec.files)} files"
    return f"{where or 'beside the card'}: {files}"


def _parts(
    held: list[ParamSpec], manifest: Manifest, read: dict[str, Fraction]
) -> dict[str, tuple[int, int]]:
    """Parameters and bytes by the first name of each path, arrays with their length, stacks of
    experts apart."""
    parts: dict[str, tuple[int, int]] = {}
    for param in held:
        head = param.path.split(".", 1)[0]
        name = f"{head}[{manifest.arrays[head]}]" if head in manifest.arrays else head
        name += " experts" if _stacked(param, read) else ""
        number, size = parts.get(name, (0, 0))
        parts[name] = (number + _count(param.shape), size + param.nbytes)
    return parts


def _count(shape: tuple[int, ...]) -> int:
    count = 1
    for extent in shape:
        count *= extent
    return count
