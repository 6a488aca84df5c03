"""Statistics of counts against known laws: e-values, certificates, goodness of fit, and run sizes.

Nothing here knows how the counts were drawn, and importing it does not import `scipy.stats` or `statsmodels`.
"""

from __future__ import annotations

from simkit.stats.certificate import Certificate, certificate
from simkit.stats.chi_square import chi_square, largest_z, pool, z_scores
from simkit.stats.dependence import Dependence, dependence
from simkit.stats.design import (
    chi_square_power,
    detectable_tv,
    detection_power,
    draws_for_relative_error,
    samples_needed,
)
from simkit.stats.evalue import (
    Evidence,
    concentration,
    evidence,
    log_e_value,
    mix,
    mix_families,
    scales,
    threshold,
)
from simkit.stats.ks import dkw_bound, ks, ks_p_value, ks_statistic
from simkit.stats.multiple import holm
from simkit.stats.result import GoodnessOfFit
from simkit.stats.stream import Stream
from simkit.stats.where import where

__all__ = [
    "Certificate",
    "Dependence",
    "Evidence",
    "GoodnessOfFit",
    "Stream",
    "certificate",
    "chi_square",
    "chi_square_power",
    "concentration",
    "dependence",
    "detectable_tv",
    "detection_power",
    "dkw_bound",
    "draws_for_relative_error",
    "evidence",
    "holm",
    "ks",
    "ks_p_value",
    "ks_statistic",
    "largest_z",
    "log_e_value",
    "mix",
    "mix_families",
    "pool",
    "samples_needed",
    "scales",
    "threshold",
    "where",
    "z_scores",
]
