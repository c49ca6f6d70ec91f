"""Mutations of real sources through the whole check.

For the full count: `python tests/fuzz/fuzz_check.py --count 3000 --seed 1`. A mutation must
raise nothing, take no more than five times the unmutated module's time, give a bounded report, and
every function that comes out unbroken must pass the verifier.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
import traceback
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
if __name__ == "__main__":
    sys.path.insert(0, str(ROOT / "src"))
sys.path.insert(0, str(Path(__file__).resolve().parent))

import fuzz_syntax  # noqa: E402

from linnet.diagnostics import SourceFile  # noqa: E402
from linnet.diagnostics.render import render_text  # noqa: E402
from linnet.elaborate import check  # noqa: E402
from linnet.ir.verify import verify  # noqa: E402
from linnet.packages import LoadedModule, ModuleGraph, load_sources, stdlib_root  # noqa: E402
from linnet.syntax import parse_module  # noqa: E402

MAX_DIAGNOSTICS = 700
# Below this many seconds a measured time is noise.
NOISE = 0.25


def graphs() -> list[ModuleGraph]:
    """The library, our models, and the published packages when they are at hand."""
    places = [stdlib_root(), ROOT / "models" / "decoder"]
    seeds = ROOT.parent / "shared" / "seeds"
    if seeds.is_dir():
        places += sorted(path for path in seeds.iterdir() if path.is_dir())
    return [load_sources([path]) for path in places]


def closure(graph: ModuleGraph, module: LoadedModule) -> ModuleGraph:
    """The module with what it imports, and nothing else."""
    wanted: set[str] = set()
    stack = [module.id]
    while stack:
        name = stack.pop()
        if name not in wanted:
            wanted.add(name)
            stack.extend(graph.modules[name].imports.values())
    modules = {name: found for name, found in graph.modules.items() if name in wanted}
    return ModuleGraph(modules, (module.id,), ())


def with_text(graph: ModuleGraph, module: LoadedModule, text: str) -> ModuleGraph:
    """The same graph with another text for its root module; imports go by what they name."""
    file = SourceFile(module.file.path, text)
    tree, diagnostics = parse_module(file)
    known = {str(use.path): module.imports.get(at) for at, use in enumerate(module.tree.uses)}
    imports = {
        at: target
        for at, use in enumerate(tree.uses)
        if (target := known.get(str(use.path))) is not None
    }
    mutated = replace(module, file=file, tree=tree, imports=imports)
    return ModuleGraph({**graph.modules, module.id: mutated}, graph.roots, diagnostics)


def seconds_of(graph: ModuleGraph) -> float:
    start = time.process_time()
    check(graph)
    return time.process_time() - start


def problem_of(mutated: ModuleGraph, original: ModuleGraph) -> str | None:
    """What is wrong with checking `mutated`; None when all is well."""
    start = time.process_time()
    try:
        program = check(mutated)
        seconds = time.process_time() - start
        for function in program.functions.values():
            verify(function, program)
        render_text(program.diagnostics)
    except Exception:
        return traceback.format_exc(limit=-6)
    if seconds > NOISE:
        problem = too_slow(mutated, original)
        if problem is not None:
            return problem
    if len(program.diagnostics) > MAX_DIAGNOSTICS:
        return f"{len(program.diagnostics)} diagnostics"
    root = mutated.modules[mutated.roots[0]]
    resolved = len(root.imports) == len(root.tree.uses)  # else the loader would have reported it
    broken = any(function.broken for function in program.functions.values())
    if broken and resolved and not program.has_errors:
        return "a broken function without an error"
    return None


def too_slow(mutated: ModuleGraph, original: ModuleGraph) -> str | None:
    """Times both again, side by side; each time with a fresh tree, which no check remembers."""
    module = original.modules[original.roots[0]]
    text = mutated.modules[module.id].file.text
    slow = min(seconds_of(with_text(original, module, text)) for _ in range(3))
    plain = min(seconds_of(with_text(original, module, module.file.text)) for _ in range(3))
    if slow > max(NOISE, 5 * plain):
        return f"took {slow:.2f} s, the unmutated module {plain:.2f}"
    return None


def mutations(count: int, seed: int) -> Iterator[tuple[str, ModuleGraph, ModuleGraph]]:
    """Mutated texts, their graphs, and the graphs they come from."""
    rng = random.Random(seed)
    cases = [
        (closure(graph, module), module) for graph in graphs() for module in graph.modules.values()
    ]
    texts = [module.file.text for _, module in cases]
    for _ in range(count):
        graph, module = rng.choice(cases)
        text = module.file.text
        for _ in range(rng.choice((1, 1, 1, 2))):
            text = rng.choice(fuzz_syntax.MUTATIONS)(rng, text, texts)
        yield text, with_text(graph, module, text), graph


def run(count: int, seed: int) -> list[tuple[str, str]]:
    """Failures as `(problem, mutated text)`."""
    failures = []
    for text, mutated, original in mutations(count, seed):
        problem = problem_of(mutated, original)
        if problem is not None:
            failures.append((problem, text))
    return failures


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=3000)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    failures = run(arguments.count, arguments.seed)
    for number, (problem, text) in enumerate(failures[:20]):
        path = Path(f"fuzz-check-{arguments.seed}-{number}.linnet")
        path.write_text(text, encoding="utf-8")
        print(f"{path}: {problem}")
    print(f"{arguments.count - len(failures)} passed, {len(failures)} failed")
    sys.exit(bool(failures))


if __name__ == "__main__":
    main()
