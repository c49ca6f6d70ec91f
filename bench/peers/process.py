"""An engine in a process of its own, spoken to by lines of JSON."""

from __future__ import annotations

import json
import os
import select
import subprocess
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

from bench.peers.contenders import Contender

ROOT = Path(__file__).parents[2]


class EngineError(Exception):
    """An engine that could not be started, failed, or did not answer in time."""


class Engine:
    """A loaded contender. Use it as a context: the process ends with it."""

    def __init__(
        self, contender: Contender, python: Path, files: Path, threads: int, positions: int
    ) -> None:
        settings = {
            "files": str(files.absolute()),
            "precision": contender.precision,
            "threads": threads,
            "positions": positions,
            "options": dict(contender.options),
        }
        self.name = contender.name
        self._process = subprocess.Popen(
            [python, "-m", "bench.peers.worker", contender.runner, json.dumps(settings)],
            cwd=ROOT,
            env=environment(threads),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        self._errors = b""
        self._rest = b""
        try:
            loaded = self._answer(timeout=240)
        except EngineError:
            self.close()
            raise
        self.about: str = loaded["about"]
        self.load_seconds: float = loaded["loaded"]

    def measure(self, prompt: Sequence[int], new_tokens: int) -> dict[str, Any]:
        """`first`, `rest` and `tokens` of one generation."""
        return dict(self.ask(op="measure", prompt=list(prompt), new_tokens=new_tokens))

    def score(self, tokens: Sequence[int]) -> list[float]:
        """The negative log likelihood of each token but the first."""
        return list(self.ask(op="score", tokens=list(tokens)))

    def ask(self, timeout: float = 120, **request: Any) -> Any:
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps(request).encode() + b"\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            raise self._failed("has ended") from None
        return self._answer(timeout)

    def _answer(self, timeout: float) -> Any:
        """The next line's `ok`. Standard error is read meanwhile, so that it never fills up."""
        assert self._process.stdout is not None and self._process.stderr is not None
        out, err = self._process.stdout.fileno(), self._process.stderr.fileno()
        watched = {out, err}
        while b"\n" not in self._rest:
            ready, _, _ = select.select(list(watched), [], [], timeout)
            if not ready:
                raise self._failed(f"did not answer within {timeout:.0f} s")
            for source in ready:
                data = os.read(source, 1 << 16)
                if not data:
                    watched.discard(source)
                if source == err:
                    self._errors = (self._errors + data)[-4000:]
                else:
                    self._rest += data
            if out not in watched and b"\n" not in self._rest:
                raise self._failed("has ended")
        line, _, self._rest = self._rest.partition(b"\n")
        answer = json.loads(line)
        if "error" in answer:
            raise EngineError(f"{self.name}: {answer['error']}")
        return answer["ok"]

    def _failed(self, what: str) -> EngineError:
        lines = self._errors.decode("utf-8", "replace").strip().splitlines()
        return EngineError(f"{self.name} {what}" + (f": {lines[-1]}" if lines else ""))

    def close(self) -> None:
        for stream in (self._process.stdin, self._process.stdout, self._process.stderr):
            if stream is not None:
                stream.close()
        try:
            self._process.wait(5)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def __enter__(self) -> Engine:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def environment(threads: int) -> dict[str, str]:
    """This process's environment with every engine's number of threads the same."""
    given = {key: value for key, value in os.environ.items() if not key.startswith("OPENBLAS_")}
    names = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")
    return given | dict.fromkeys(names, str(threads)) | {"TOKENIZERS_PARALLELISM": "false"}
