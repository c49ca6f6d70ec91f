"""The short convolution and the gated delta rule of Gated DeltaNet (Yang et al., 2024), in f32."""

from __future__ import annotations

import torch
import torch.nn.functional as F  # noqa: N812


def causal_conv(x: torch.Tensor, history: torch.Tensor, taps: torch.Tensor) -> torch.Tensor:
    """y[b, s, c] = sum_w taps[c, w] * cat(history, x)[b, s + w, c]"""
    window = torch.cat((history, x), 1).float()
    taps = taps.float()
    if x.shape[1] == 0 or x.shape[2] == 0:
        return x.float()
    if x.shape[1] == 1:  # nothing to slide over
        return (window * taps.mT).sum(1, keepdim=True)
    return F.conv1d(window.mT, taps[:, None], groups=taps.shape[0]).mT


def delta_step(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, decay: torch.Tensor, beta: torch.Tensor,
    start: torch.Tensor, scale: float,
) -> torch.Tensor:  # fmt: skip
    """one token: the output [B, 1, Hv, V], then the state with its key axis second

    Query and key read the old state in one product: after keep * state + k (x) change the output is
    keep * (q . state) + (q . k) change.
    """
    group = v.shape[1] // k.shape[1]
    query, key = (x.float().repeat_interleave(group, 1) for x in (q, k))
    keep = decay.exp()[..., None]
    read = keep[..., None] * (torch.stack((query, key), 2) @ start)
    change = beta[..., None] * (v.float() - read[:, :, 1])
    out = scale * (read[:, :, 0] + (query * key).sum(-1, keepdim=True) * change)
    after = (keep[..., None] * start).addcmul_(key[..., None], change[:, :, None])
    return torch.cat((out[:, None], after.transpose(1, 2)), 1)


DELTA_CHUNK = 64


def delta_rule(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, decay: torch.Tensor, beta: torch.Tensor,
    start: torch.Tensor, scale: float,
) -> torch.Tensor:  # fmt: skip
    """S tokens, a chunk at a time: the outputs [B, S, Hv, V], then the state, key axis second"""
    heads = (k.shape[2], v.shape[2] // k.shape[2])
    query, key = (x.float().transpose(1, 2)[:, :, None] for x in (q, k))  # [B, Hk, 1, S, K]
    value = split_axis(v.float().transpose(1, 2), 1, heads)
    decay, beta = (split_axis(x.transpose(1, 2), 1, heads) for x in (decay, beta))
    state, outputs = split_axis(start, 1, heads), []
    for first in range(0, q.shape[1], DELTA_CHUNK):
        part = slice(first, first + DELTA_CHUNK)
        out, state = delta_chunk(
            query[..., part, :], key[..., part, :], value[..., part, :], decay[..., part],
            beta[..., part, None], state,
        )  # fmt: skip
        outputs.append(scale * out.flatten(1, 2).transpose(1, 2))
    return torch.cat((*outputs, state.flatten(1, 2).transpose(1, 2)), 1)


def split_axis(x: torch.Tensor, axis: int, sizes: tuple[int, int]) -> torch.Tensor:
    """one axis as two"""
    return x.reshape(*x.shape[:axis], *sizes, *x.shape[axis + 1 :])


def delta_chunk(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, decay: torch.Tensor, beta: torch.Tensor,
    state: torch.Tensor,
) -> tuple[torch.Tensor, torch.Tensor]:  # fmt: skip
    """The state after token i of a chunk is exp(G_i) state + sum_{j <= i} exp(G_i - G_j) k_j u_j,
    G being the running sum of decay; what token i writes, u_i, follows from the earlier ones:
    (1 + lower(beta_i exp(G_i - G_j) k_i . k_j)) u = beta (v - exp(G) k . state)"""
    total = decay.double().clamp(min=-1e5).cumsum(-1)  # differences of large sums: f64
    ratio = (total[..., :, None] - total[..., None, :]).float().tril().exp().tril()
    reach = total.float().exp()[..., None]
    lower = (beta * ratio * (k @ k.mT)).tril(-1)
    wanted = beta * (v - reach * (k @ state))
    written = torch.linalg.solve_triangular(lower, wanted, upper=False, unitriangular=True)
    out = reach * (q @ state) + (ratio * (q @ k.mT)) @ written
    left = (total[..., -1:] - total).float().exp()[..., None]
    return out, reach[..., -1:, :] * state + k.mT @ (left * written)


def packed_runs(rows: torch.Tensor, segments: torch.Tensor, count: int) -> list[tuple[slice, int]]:
    """the tokens of each run of equal segments, and which of `count` rows it continues, or -1"""
    ends = torch.ones_like(segments, dtype=torch.bool)
    ends[:-1] = segments[1:] != segments[:-1]
    stops = ends.nonzero()[:, 0] + 1
    runs, start = [], 0
    for stop, row in zip(stops.tolist(), rows[stops - 1].tolist(), strict=True):
        runs.append((slice(start, stop), row if 0 <= row < count else -1))
        start = stop
    return runs


def causal_conv_packed(
    x: torch.Tensor, history: torch.Tensor, taps: torch.Tensor,
    rows: torch.Tensor, segments: torch.Tensor,
) -> torch.Tensor:  # fmt: skip
    """causal_conv run by run, each after its row's history, or after zeros"""
    nothing = history.new_zeros(1, taps.shape[1] - 1, taps.shape[0])
    parts = []
    for tokens, row in packed_runs(rows, segments, history.shape[0]):
        before = nothing if row < 0 else history[row : row + 1]
        parts.append(causal_conv(x[None, tokens], before, taps)[0])
    return torch.cat(parts)


def delta_rule_packed(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, decay: torch.Tensor, beta: torch.Tensor,
    start: torch.Tensor, rows: torch.Tensor, segments: torch.Tensor, scale: float,
) -> torch.Tensor:  # fmt: skip
    """delta_rule run by run: the outputs [P, Hv, V], then the rows' states, [R * K, Hv, V]"""
    outputs, states = [], list(start.transpose(1, 2).unbind(0))
    nothing = start.new_zeros(1, *start.shape[1:])
    for tokens, row in packed_runs(rows, segments, start.shape[0]):
        before = nothing if row < 0 else start[row : row + 1]
        made = delta_rule(
            q[None, tokens], k[None, tokens], v[None, tokens], decay[None, tokens],
            beta[None, tokens], before, scale,
        )[0]  # fmt: skip
        count = tokens.stop - tokens.start
        outputs.append(made[:count])
        if row >= 0:
            states[row] = made[count:]
    return torch.cat((*outputs, *states))
