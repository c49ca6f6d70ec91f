"""The process an engine lives in: JSON lines on standard input, an answer a line on output.

    python -m bench.peers.worker RUNNER '{"files": ..., "precision": ..., "threads": 2, ...}'

`RUNNER` is one of `bench.peers.runners`, or a module by its full name.

Requests: `{"op": "measure", "prompt": [...], "new_tokens": N}`, `{"op": "score", "tokens": [...]}`
(the negative log likelihood of each token after the first). An answer is `{"ok": ...}` or
`{"error": "..."}`. The first line tells that the engine is loaded, and what it is.
"""

from __future__ import annotations

import json
import os
import sys
from dataclasses import asdict
from importlib import import_module
from pathlib import Path
from time import perf_counter
from typing import Any, TextIO

from bench.peers.runners import Settings


def main() -> None:
    name, settings = sys.argv[1], json.loads(sys.argv[2])
    answers = own_output()
    try:
        started = perf_counter()
        module = import_module(name if "." in name else f"bench.peers.runners.{name}")
        runner = module.open_runner(Settings(**(settings | {"files": Path(settings["files"])})))
        said: dict[str, Any] = {"loaded": perf_counter() - started, "about": runner.describe()}
    except Exception as error:
        say(answers, {"error": words(error)})
        return
    say(answers, {"ok": said})
    for line in sys.stdin:
        say(answers, answer(runner, json.loads(line)))


def own_output() -> TextIO:
    """The real standard output; whatever an engine prints goes to standard error instead."""
    kept = os.dup(1)
    os.dup2(2, 1)
    return os.fdopen(kept, "w", encoding="utf-8")


def say(answers: TextIO, value: dict[str, Any]) -> None:
    answers.write(json.dumps(value) + "\n")
    answers.flush()


def words(error: Exception) -> str:
    """An error's last line, which is where engines in C++ say what it is."""
    lines = [line for line in str(error).splitlines() if line.strip()]
    return f"{type(error).__name__}: {lines[-1] if lines else ''}"


def answer(runner: Any, request: dict[str, Any]) -> dict[str, Any]:
    try:
        if request["op"] == "measure":
            return {"ok": asdict(runner.measure(request["prompt"], request["new_tokens"]))}
        if request["op"] == "score":
            return {"ok": runner.score(request["tokens"])}
        return {"error": f"there is no request `{request['op']}`"}
    except Exception as error:
        return {"error": words(error)}


if __name__ == "__main__":
    main()
