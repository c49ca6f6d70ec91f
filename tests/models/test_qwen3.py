"""Our Qwen3 source at a toy size against transformers: values, caches and gradients."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from toy import int32, logits, ours, reference

NUMERICS = ("exact", "equivalent", "fast")
TOLERANCE = 2e-4


@pytest.fixture(scope="module", params=[False, True], ids=["untied", "tied"])
def model(request: pytest.FixtureRequest) -> Any:
    return reference(tied=request.param)


def card(model: Any) -> str:
    return "qwen3-0.6b" if model.config.tie_word_embeddings else "qwen3-8b"


def ids(count: int, seed: int) -> list[int]:
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(0, 160, (count,), generator=generator).tolist()


@pytest.mark.parametrize("numerics", NUMERICS)
def test_forward_and_cache(model: Any, numerics: str) -> None:
    loaded = ours(model, card(model), numerics=numerics)
    for count in (1, 2, 17, 80):
        tokens = ids(count, count)
        torch.testing.assert_close(
            loaded(int32([tokens]))[0], logits(model, tokens), atol=TOLERANCE, rtol=0
        )
    tokens = ids(9, 1)
    got = loaded.run_entry("prefill", [int32([tokens]), 0])
    for position in range(9, 14):
        torch.testing.assert_close(got[0], logits(model, tokens)[-1], atol=TOLERANCE, rtol=0)
        tokens.append(ids(1, position)[0])
        got = loaded.run_entry("decode", [int32([tokens[-1:]]), position])


PACK = ([7, 5], 2)  # two prompts of 7 and 5 tokens, then padding


def packed() -> tuple[list[list[int]], dict[str, list[Any]]]:
    prompts = [ids(7, 70), ids(5, 50)]
    columns: dict[str, list[Any]] = {
        "tokens": prompts[0] + prompts[1] + [0, 0],
        "positions": [*range(7), *range(5), 0, 1],
        "segments": [0] * 7 + [1] * 5 + [2, 2],
        "targets": [*prompts[0][1:], 0, *prompts[1][1:], 0, 0, 0],
        "weights": [1.0] * 6 + [0.0] + [0.5] * 4 + [0.0] * 3,
    }
    return prompts, columns


@pytest.mark.parametrize("numerics", NUMERICS)
def test_gradients_of_the_packed_loss(model: Any, numerics: str) -> None:
    """Against autograd through transformers on each prompt alone, every parameter, 1e-3."""
    prompts, columns = packed()
    model.zero_grad()
    total = torch.zeros(())
    for prompt, weight in zip(prompts, (1.0, 0.5), strict=True):
        scores = torch.log_softmax(model(torch.tensor([prompt])).logits[0].float(), -1)
        for at, target in enumerate(prompt[1:]):
            total = total - weight * scores[at, target]
    total.backward()
    wanted = {name: parameter.grad for name, parameter in model.named_parameters()}

    loaded = ours(model, card(model), numerics=numerics, trainable=True)
    inputs = [int32(columns[name]) for name in ("tokens", "positions", "segments")]
    inputs += [torch.tensor(columns["targets"]), torch.tensor(columns["weights"])]
    loss = loaded.run_entry("loss_packed", inputs)
    torch.testing.assert_close(loss, total.detach(), rtol=1e-4, atol=0)
    loss.backward()
    found = dict(loaded.named_parameters())
    assert found.keys() >= {"embedding.weight", "layers.2.mlp.down.weight", "norm.weight"}
    for path, parameter in found.items():
        gradient = wanted[checkpoint_name(path, model)]
        scale = gradient.abs().max()
        assert (parameter.grad - gradient).abs().max() <= 1e-3 * scale, path


def checkpoint_name(path: str, model: Any) -> str:
    """The checkpoint's name of one of our parameters, by the published convention."""
    if path == "embedding.weight" or (
        path == "lm_head.weight" and model.config.tie_word_embeddings
    ):
        return "model.embed_tokens.weight"
    if path == "lm_head.weight":
        return path
    for ours_, theirs in (
        ("attention_norm", "input_layernorm"),
        ("mlp_norm", "post_attention_layernorm"),
        ("mlp.gate", "mlp.gate_proj"),
        ("mlp.up", "mlp.up_proj"),
        ("mlp.down", "mlp.down_proj"),
        (".attention.", ".self_attn."),
    ):
        path = path.replace(ours_, theirs)
    return f"model.{path}"


def test_a_changed_parameter_changes_the_next_call(model: Any) -> None:
    loaded = ours(model, card(model), trainable=True)
    tokens = int32([ids(6, 3)])
    before = loaded(tokens).detach().clone()
    optimizer = torch.optim.SGD(loaded.parameters(), lr=0.5)
    loaded(tokens).square().mean().backward()
    optimizer.step()
    after = loaded(tokens).detach()
    assert (after - before).abs().max() > 1e-3
    state = {name: tensor.detach().clone() for name, tensor in loaded.state_dict().items()}
    with torch.no_grad():
        for parameter in loaded.parameters():
            parameter.mul_(0.5)
    assert (loaded(tokens).detach() - after).abs().max() > 1e-3
    loaded.load_state_dict(state)
    torch.testing.assert_close(loaded(tokens).detach(), after)
