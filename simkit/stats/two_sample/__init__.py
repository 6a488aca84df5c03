"""Two-sample tests of token sequences: evidence that two samplers, known by outputs only, differ in law.

Tokens are compared within strata: those that follow the same prompt and the same emitted prefix. Four facts
carry what stands here.

* Under the null the sequences of a prompt are exchangeable between the samplers: whole sequences, not their
  tokens. The permutation test deals whole sequences anew. To deal the tokens of each stratum anew, with the
  numbers of tokens that arrived there held fixed, is *not* a valid test: these numbers are outcomes of the
  strata above, and the level of a sum over strata breaks.
* Given all sequences without their labels, and the labels above a stratum, the tokens of the first sampler in
  it are hypergeometric. The probability of all labels is the product of these laws, so that the product over
  strata of alternative / hypergeometric has expectation 1 exactly. The e-value may use the arrivals, one
  stratum after another, that the permutation test may not hold fixed all at once.
* Prefixes of long sequences soon stand alone, and a stratum of one token says nothing. What comes later is
  seen in whole sequences: of a pair, one from each sampler, either may have come from either.
* Position 0 comes from the prefill and is not speculated. Later positions are tested given the first token,
  which keeps a fault at position 0 out of them.

Sequences must be independent draws, within a sampler and between the two: no seed is used twice.
"""

from __future__ import annotations

from simkit.stats.two_sample.bound import VariationBound, variation_bound
from simkit.stats.two_sample.evidence import table_evidence
from simkit.stats.two_sample.pairs import Pairs, pair_evidence, pair_sequences, pair_test
from simkit.stats.two_sample.permutation import PERMUTATIONS, PermutationTest, permutation_test
from simkit.stats.two_sample.sequences import (
    END,
    MOST_TOKEN,
    Sequences,
    Tables,
    count_tables,
    first_tokens,
    later_tokens,
)

__all__ = [
    "END",
    "MOST_TOKEN",
    "PERMUTATIONS",
    "Pairs",
    "PermutationTest",
    "Sequences",
    "Tables",
    "VariationBound",
    "count_tables",
    "first_tokens",
    "later_tokens",
    "pair_evidence",
    "pair_sequences",
    "pair_test",
    "permutation_test",
    "table_evidence",
    "variation_bound",
]
