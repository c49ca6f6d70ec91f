"""A whole model folder: checked, shown, and run through PyTorch, from source to text."""

from __future__ import annotations

import io
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import safetensors.numpy
from nest_toy import TOKENS, write_gguf

from linnet import nest
from linnet.nest.describe import check_folder
from linnet.nest.run import run_model
from linnet.nest.text import text_from_gguf

CARD = """
[model]
name = "toy"
summary = "Says after each token the one a table has for it."
license = "MIT"
family = "toy"
[source]
path = "src/lib.linnet"
root = "Model"
entry = "prefill"
[generics]
Vocab = 262
Batch = 1
MaxSeq = 64
T = "bf16"
[check]
S = 4
[weights]
files = ["model.safetensors"]
bindings = "bindings.json"
"""

SOURCE = """
module toy

block Row<Vocab: Dim, T: Float> {
    param weight: Tensor[Vocab; T]
    param bias: Tensor[Vocab; T]? = none
}

pub block Model<Vocab: Dim, Batch: Dim, MaxSeq: Dim, T: Float> where Batch > 0, MaxSeq > 0 {
    param table: Tensor[Vocab, Vocab; T]
    param head: Tensor[Vocab, Vocab; T]
    sub rows: [Row<Vocab, T>; 2]
    state seen: Tensor[Batch, MaxSeq; i32]

    pub entry prefill<S: Dim>(tokens: Tensor[Batch, S; i32], pos: i32) -> Tensor[Batch, Vocab; T]
    where S > 0 {
        let out[b, v] = table[cast<i64>(tokens[b, S - 1]), v]
        return out
    }

    pub entry decode(token: Tensor[Batch, 1; i32], pos: i32) -> Tensor[Batch, Vocab; T] {
        let out[b, v] = head[cast<i64>(token[b, 0]), v]
        return out
    }
}
"""

BINDINGS = '{"table": "t", "head": "t", "rows.{i}.weight": "r"}'
ANSWER = "né 🙂!"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    home = tmp_path / "toy"
    (home / "src").mkdir(parents=True)
    (home / "nest.toml").write_text(CARD)
    (home / "README.md").write_text("# Toy")
    (home / "linnet.toml").write_text('[package]\nname = "toy"\nversion = "0.1.0"\n')
    (home / "src" / "lib.linnet").write_text(SOURCE)
    (home / "bindings.json").write_text(BINDINGS)
    table = np.zeros((262, 262), np.float32)
    ids = [2 + byte for byte in f"hello{ANSWER}".encode()]
    path = [*ids[4:], 0]  # from the prompt's last byte through the answer to the end token
    for token, following in pairwise(path):
        assert not table[token].any()  # each byte occurs once, so a table is enough
        table[token, following] = 1
    weights = {"t": table, "r": np.zeros(262, np.float32)}
    safetensors.numpy.save_file(weights, home / "model.safetensors")
    text = text_from_gguf(write_gguf(tmp_path / "m.gguf"))
    text.tokenizer.save(str(home / "tokenizer.json"))
    (home / "generation_config.json").write_text('{"eos_token_id": 0}')
    return home


def test_check_and_show(folder: Path) -> None:
    result = check_folder(folder)
    assert result.ok, result.diagnostics
    nest.check(folder)
    text = nest.show(folder)
    assert f"{262 * 262 + 2 * 262:,}" not in text  # the rows are tied to each other
    assert f"{262 * 262 + 262:,} parameters in 2 tensors" in text
    assert "tied to table" in text and "state: 1 tensors, 256 bytes" in text


@pytest.mark.parametrize(
    ("file", "old", "new", "part"),
    [
        ("bindings.json", '"head": "t", ', "", "parameter `head` has no binding"),
        ("bindings.json", '"head"', '"heed": "t", "head"', "no parameter `heed`"),
        ("nest.toml", 'root = "Model"', 'root = "Modell"', "Modell"),
        ("nest.toml", 'entry = "prefill"', 'entry = "fill"', "no entry `fill`"),
        ("nest.toml", "Batch = 1", "Batch = 0", "Batch > 0"),
        ("nest.toml", "Vocab = 262", "", "Vocab"),
        ("nest.toml", "S = 4", "Q = 4", "has a generic `Q`"),
        ("nest.toml", 'license = "MIT"', "", "no license"),
        ("src/lib.linnet", "return out", "return oot", "oot"),
    ],
)
def test_check_finds(folder: Path, file: str, old: str, new: str, part: str) -> None:
    path = folder / file
    path.write_text(path.read_text().replace(old, new, 1))
    result = check_folder(folder)
    assert not result.ok
    assert any(part in d.message for d in result.diagnostics)


def test_run(folder: Path) -> None:
    out, err = io.StringIO(), io.StringIO()
    code = run_model(str(folder), "hello", out=out, err=err, dtype="f32", backend="torch")
    assert (code, out.getvalue()) == (0, ANSWER + "\n"), err.getvalue()
    assert len(TOKENS) == 262 and "tokens per second" in err.getvalue()


AUDIT = """
import sys
from itertools import pairwise
import linnet.nest, linnet.nest.describe, linnet.nest.find
home = sys.argv[1]
def hook(event, args):
    if event in ("subprocess.Popen", "os.system", "os.exec", "os.fork", "socket.connect"):
        raise SystemExit(f"{event} {args}")
    if event == "open" and isinstance(args[0], str) and args[0].endswith((".py", ".sh")):
        if args[0].startswith(home):
            raise SystemExit(f"opened {args[0]}")
    if event in ("compile", "exec") and home in str(args):
        raise SystemExit(f"{event} {args}")
sys.addaudithook(hook)
print(linnet.nest.show(home))
assert linnet.nest.describe.check_folder(home).ok
assert not {"torch", "jax", "tokenizers", "jinja2", "gguf"} & set(sys.modules)
print("clean")
"""


def test_show_and_check_run_nothing(folder: Path) -> None:
    for name in ("conftest.py", "__init__.py", "src/lib.py", "setup.py", "run.sh", "numpy.py"):
        (folder / name).write_text("raise SystemExit('ran')\n")
    done = subprocess.run(
        [sys.executable, "-c", AUDIT, str(folder)],
        cwd=folder.parent,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0 and done.stdout.endswith("clean\n"), done.stderr
