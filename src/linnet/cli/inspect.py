"""`linnet inspect`: what the toolchain makes of one file, stage by stage."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from linnet.cli.options import Bound, parse_bindings
from linnet.cli.output import show_diagnostics, show_json
from linnet.diagnostics import CompileError, Diagnostic, SourceFile
from linnet.packages.display import shown_path
from linnet.packages.files import FileError, decode_source, read_bytes

if TYPE_CHECKING:
    from linnet.ir import Function


@dataclass(frozen=True, slots=True)
class Chosen:
    """What of a program is bound, and to what."""

    root: str | None
    entry: str | None
    bindings: dict[str, Bound]


@click.command()
@click.option("--tokens", "stage", flag_value="tokens", help="The tokens and comments.")
@click.option("--ast", "stage", flag_value="ast", help="The syntax tree.")
@click.option("--ir", "stage", flag_value="ir", help="The typed, generic IR.")
@click.option("--parameters", "stage", flag_value="parameters", help="What a checkpoint must hold.")
@click.option("-O", "optimize", is_flag=True, help="With --ir: one bound block after the passes.")
@click.option("--root", metavar="BLOCK", help="With -O: the block, where several have entries.")
@click.option("--entry", metavar="E", help="With -O: one entry instead of all.")
@click.option("--bind", "bindings", metavar="G=V", multiple=True, help="With -O: a generic.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON (not with --ir).")
@click.argument("file", metavar="FILE", type=click.Path(exists=True, path_type=Path))
def command(
    file: Path,
    stage: str | None,
    optimize: bool,
    root: str | None,
    entry: str | None,
    bindings: tuple[str, ...],
    as_json: bool,
) -> int:
    """Show FILE as tokens, syntax tree, IR or parameter manifest. Nothing of it is run."""
    if optimize and stage != "ir":
        raise click.UsageError("-O goes with --ir")
    if (root or entry or bindings) and not optimize:
        raise click.UsageError("--root, --entry and --bind go with --ir -O")
    match stage:
        case "tokens":
            return _tokens(file, as_json)
        case "ast":
            return _ast(file, as_json)
        case "ir":
            if as_json:
                raise click.UsageError("--json does not go with --ir")
            return _ir(file, optimize, Chosen(root, entry, parse_bindings(bindings)))
        case "parameters":
            return _parameters(file, as_json)
        case _:
            raise click.UsageError("say what to show: --tokens, --ast, --ir or --parameters")


def _tokens(file: Path, as_json: bool) -> int:
    from linnet.cli.dump import token_json, token_lines
    from linnet.syntax import tokens

    found, diagnostics = tokens(read_source(file))
    if as_json:
        show_json(token_json(found))
    else:
        click.echo("\n".join(token_lines(found)))
    return _finish(diagnostics)


def _ast(file: Path, as_json: bool) -> int:
    from linnet.cli.dump import tree_json
    from linnet.syntax import dump_tree, parse_module

    module, diagnostics = parse_module(read_source(file))
    if as_json:
        show_json(tree_json(module))
    else:
        click.echo(dump_tree(module), nl=False)
    return _finish(diagnostics)


def read_source(path: Path) -> SourceFile:
    """The text of one file; raises `CompileError` when it is none."""
    shown = shown_path(path.absolute())
    try:
        file, problem = decode_source(shown, read_bytes(path))
    except FileError as error:
        message = f"`{shown}` {error.reason}"
        raise CompileError((Diagnostic("E1202", message, None),)) from None
    if problem is not None:
        raise CompileError((problem,))
    return file


def _finish(diagnostics: Iterable[Diagnostic]) -> int:
    found = tuple(diagnostics)
    if found:
        show_diagnostics(found, err=True)
    return int(any(each.severity == "error" for each in found))


def _parameters(file: Path, as_json: bool) -> int:
    from linnet.api import load_program
    from linnet.cli.parameters import heading, manifest, root_blocks

    program = load_program(file)
    found = {
        block.name: (heading(block), manifest(program, block)) for block in root_blocks(program)
    }
    if as_json:
        show_json(
            [
                {
                    "block": name,
                    "signature": head,
                    "members": [
                        {"kind": r.kind, "path": r.path, "type": r.type, "optional": r.optional}
                        for r in rows
                    ],
                }
                for name, (head, rows) in found.items()
            ]
        )
        return 0
    for number, (head, rows) in enumerate(found.values()):
        click.echo(("\n" if number else "") + f"block {head}")
        width = max((len(row.path) for row in rows), default=0)
        for row in rows:
            note = "  (optional)" if row.optional else ""
            click.echo(f"  {row.kind:<6} {row.path:<{width}}  {row.type}{note}")
    return 0


def _ir(file: Path, optimize: bool, chosen: Chosen) -> int:
    from linnet.api import load_program
    from linnet.ir.printer import print_program

    if optimize:
        click.echo(print_program(_lowered(file, chosen)), nl=False)
        return 0
    program = load_program(file)
    own = {
        name: function
        for name, function in program.functions.items()
        if name.startswith(f"{program.root}::")
    }
    click.echo(print_program(own), nl=False)
    return 0


def _lowered(file: Path, chosen: Chosen) -> Mapping[str, Function]:
    """The functions of one bound block, or of the module's own entries, after the passes."""
    from linnet.cli.target import read_target
    from linnet.passes import bind, lower

    target = read_target(file, chosen.root, chosen.entry, chosen.bindings)
    binding = bind(target.program, target.block, target.generics)
    return lower(binding, target.entries, sizes=target.sizes).functions
