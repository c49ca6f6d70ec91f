"""What the natives must save, in processor time on one thread. Not part of the quick run: the
numbers mean something on a quiet machine only."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch

from linnet.torch.kernels import experts, recurrent

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    with torch.no_grad():
        yield
    torch.set_num_threads(before)


def seconds(call: Callable[[], Any], rounds: int) -> float:
    call()
    times = []
    for _ in range(rounds):
        start = time.process_time()
        call()
        times.append(time.process_time() - start)
    return statistics.median(times)


def test_the_chunked_rule_beats_stepping_tenfold() -> None:
    """512 tokens at the published heads: 16 of keys, 32 of values, width 128."""
    torch.manual_seed(0)
    q, k = (torch.nn.functional.normalize(torch.randn(1, 512, 16, 128), dim=-1) for _ in "qk")
    v, start = torch.randn(1, 512, 32, 128), torch.randn(1, 32, 128, 128) * 0.1
    decay, beta = -torch.rand(1, 512, 32) * 0.3, torch.rand(1, 512, 32)

    def stepped() -> torch.Tensor:
        memory, outputs = start, []
        for s in range(512):
            made = recurrent.delta_step(
                q[:, s], k[:, s], v[:, s], decay[:, s], beta[:, s], memory, 0.1
            )
            outputs.append(made[:, :1])
            memory = made[:, 1:].transpose(1, 2)
        return torch.cat((*outputs, memory.transpose(1, 2)), 1)

    def chunked() -> torch.Tensor:
        return recurrent.delta_rule(q, k, v, decay, beta, start, 0.1)

    assert (stepped() - chunked()).abs().max() < 1e-4
    assert seconds(chunked, 5) * 10 <= seconds(stepped, 1)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_routing_costs_little_more_than_topk(dtype: torch.dtype) -> None:
    scores = torch.randn(512, 256).to(dtype)

    def plain() -> torch.Tensor:
        return scores.gather(1, scores.topk(8).indices)

    def ours() -> torch.Tensor:
        return scores.gather(1, experts.top_k(scores, 8))

    assert torch.equal(plain(), ours())
    assert seconds(ours, 101) <= 1.5 * seconds(plain, 101)


def test_one_row_touches_its_own_experts_alone() -> None:
    """The time of one row's products doesn't grow with how many experts there are."""
    x, chosen = torch.randn(1, 256), torch.tensor([[1, 5, 2]])
    few, many = (torch.randn(count, 256, 256) for count in (8, 800))
    pair = [seconds(lambda w=w: experts.linear_experts_shared(x, w, chosen), 101)  # type: ignore[misc]
            for w in (few, many)]  # fmt: skip
    assert pair[1] <= 2 * pair[0] + 1e-4
