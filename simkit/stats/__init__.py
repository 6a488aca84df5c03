"""Statistics of counts against known laws: e-values, chi-square, Kolmogorov-Smirnov, and run sizes.

Nothing here knows how the counts were drawn, and importing it does not import `scipy.stats` or `statsmodels`.
"""

from __future__ import annotations

from simkit.stats.chi_square import chi_square, pool, z_scores
from simkit.stats.design import chi_square_power, detection_power, samples_needed
from simkit.stats.evalue import Evidence, concentration, evidence, log_e_value, mix, threshold
from simkit.stats.ks import dkw_bound, ks, ks_p_value, ks_statistic
from simkit.stats.multiple import holm
from simkit.stats.result import GoodnessOfFit

__all__ = [
    "Evidence",
    "GoodnessOfFit",
    "chi_square",
    "chi_square_power",
    "concentration",
    "detection_power",
    "dkw_bound",
    "evidence",
    "holm",
    "ks",
    "ks_p_value",
    "ks_statistic",
    "log_e_value",
    "mix",
    "pool",
    "samples_needed",
    "threshold",
    "z_scores",
]
