"""simkit: is a speculative sampler lossless, how often are its drafts accepted, and what is that worth.

>>> import simkit
>>> pair = simkit.Pair.from_rows(target=[0.5, 0.3, 0.2], draft=[0.2, 0.3, 0.5])
>>> tally = simkit.simulate(pair, trials=100_000, seed=1)
>>> simkit.judge(tally).outcome
'PASS'
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from simkit.figures.pair import plot as plot
    from simkit.laws.named import make_pair as make_pair
    from simkit.laws.pair import Pair as Pair
    from simkit.laws.rows import Row as Row
    from simkit.rules.exact import exact_accepted as exact_accepted
    from simkit.rules.exact import exact_law as exact_law
    from simkit.sampling.simulate import draw_tokens as draw_tokens
    from simkit.sampling.simulate import simulate as simulate
    from simkit.sampling.tally import Tally as Tally
    from simkit.sampling.trace import Trace as Trace
    from simkit.sampling.trace import trace as trace
    from simkit.verify.check import check as check
    from simkit.verify.compare import compare as compare
    from simkit.verify.judge import judge as judge
    from simkit.verify.plan import Plan as Plan
    from simkit.verify.stream import judge_stream as judge_stream
    from simkit.verify.tokens import judge_tokens as judge_tokens
    from simkit.verify.verdict import Verdict as Verdict

__version__ = "0.1.0"

# Imported when first used: `import simkit` must not pay for Numba or SciPy.
_HOMES = {
    "Pair": "simkit.laws.pair",
    "Plan": "simkit.verify.plan",
    "Row": "simkit.laws.rows",
    "Tally": "simkit.sampling.tally",
    "Trace": "simkit.sampling.trace",
    "Verdict": "simkit.verify.verdict",
    "check": "simkit.verify.check",
    "compare": "simkit.verify.compare",
    "draw_tokens": "simkit.sampling.simulate",
    "exact_accepted": "simkit.rules.exact",
    "exact_law": "simkit.rules.exact",
    "judge": "simkit.verify.judge",
    "judge_stream": "simkit.verify.stream",
    "judge_tokens": "simkit.verify.tokens",
    "make_pair": "simkit.laws.named",
    "plot": "simkit.figures.pair",
    "simulate": "simkit.sampling.simulate",
    "trace": "simkit.sampling.trace",
}
_ROOMS = ("errors", "laws", "rules", "sampling", "stats", "verify", "sweeps", "figures", "report")

__all__ = [*sorted(_HOMES), "__version__"]


def __getattr__(name: str) -> object:
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    if name in _ROOMS:
        return import_module(f"simkit.{name}")
    raise AttributeError(f"module 'simkit' has no attribute {name!r}; it has {', '.join(__all__)}")


def __dir__() -> list[str]:
    return [*__all__, *_ROOMS]
