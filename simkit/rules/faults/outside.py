"""Faults that no law of tokens shows: crashes, lower acceptance, streams of words, reported numbers."""

from __future__ import annotations

from simkit.rules.chain import Chain
from simkit.rules.choose import Block
from simkit.rules.faults.call import Tokens, misread
from simkit.rules.faults.fault import Fault, weights
from simkit.rules.single import one_hot
from simkit.rules.step import Law


def _first_context(model: Block, kept: Tokens) -> Law:
    return model.q((), 0)


FAULTS = (
    Fault(
        "empty-residual",
        "crash",
        "a draft is refused although p = q, and the residual is 0 / 0",
        "accept: u <= p / q fails at u = 1, or by a last bit, where it cannot in exact numbers",
        "MTPLX #82, #83; duoan/TorchCode #16",
        shown_by=weights([1, 1], [1, 1]),
        seen_by="inject a coin that refuses everything: NaN, or an error, instead of a token",
    ),
    Fault(
        "token-out-of-range",
        "crash",
        "a row of NaN or zeros draws a token number that is no token: the vocabulary's size, or garbage",
        "output: a number outside of 0 to V - 1",
        "vllm-project/vllm #45060, #50183, #53029, #33729, #42722, #14815; GHSA-8wr5-jm2h-8r4f; "
        "flashinfer-ai/flashinfer #384",
        seen_by="give rows of NaN, and a vocabulary that is no multiple of a block, say 8193: all numbers "
        "must be below it",
    ),
    Fault(
        "draft-law-not-passed",
        "acceptance",
        "drafts are drawn from q, and verified by the rule for drafts without a law",
        "accept: p instead of min(1, p / q); correct: p without the refused token",
        "vllm-project/vllm #40149; sgl-project/sglang #10308, #9877",
        Chain(one_hot),
        weights([6, 2, 1, 1], [14, 4, 1, 1]),
        seen_by="the share of kept drafts is sum(p q), not sum(min(p, q))",
    ),
    Fault(
        "draft-context-stale",
        "acceptance",
        "the draft model's cache lags behind: from the second slot on it does not know the drafts before",
        "propose, accept and correct: q of the call's first slot instead of q",
        "vllm-project/vllm #9730; lablup/mlxcel #994; ml-explore/mlx-swift-lm #308",
        misread(drawn=_first_context, recorded=_first_context),
        weights([[2, 1], [1, 2]], [[2, 1], [1, 2]]),
        draft_length=2,
        seen_by="fewer drafts are kept than the rows by context allow, from the second slot on",
    ),
    Fault(
        "ranks-diverge",
        "determinism",
        "the ranks of a tensor-parallel group draw from streams of their own, and go on from other tokens",
        "random words: one stream for each rank instead of one for all",
        "sgl-project/mini-sglang #84, #85",
        seen_by="the ranks' tokens must be equal",
    ),
    Fault(
        "empty-request-moves-stream",
        "determinism",
        "a request without drafts uses up random words of the others",
        "random words: addressed by the place in the batch instead of by request",
        "vllm-project/vllm-ascend #13608",
        seen_by="a request's tokens must be the same with and without another beside it",
    ),
    Fault(
        "seed-ignored",
        "determinism",
        "the request's seed does not reach the verifier",
        "random words: from the global generator instead of the request's own",
        "vllm-project/vllm #6034, #6038, #13196",
        seen_by="one seed must give the same tokens twice, and two seeds different ones",
    ),
    Fault(
        "accepted-counted-anywhere",
        "report",
        "the number of kept drafts is counted over all coins, also behind the first refusal",
        "report: heads in all instead of heads in front of the first tails",
        "vllm-project/vllm #2658",
        seen_by="the reported acceptance is above the exact one at the same tokens",
    ),
    Fault(
        "accepted-counted-behind-end",
        "report",
        "drafts behind the end of the text count as kept, although they are not emitted",
        "report: drafts kept by the verifier instead of those that come out",
        "vllm-project/vllm #56101; ggml-org/llama.cpp #28049",
        seen_by="the reported tokens for a call exceed those that it emits, in calls that end the text",
    ),
)
"""Faults that no law of tokens shows."""
