from __future__ import annotations

import dataclasses
import subprocess
import sys

import pytest

import simkit.stats as stats
from simkit.stats import GoodnessOfFit


def test_small_chi_square_p_is_kept_but_not_printed():
    result = GoodnessOfFit("chi-square", 90.0, 3.2e-11, degrees_of_freedom=9)
    assert result.p_value == 3.2e-11
    assert str(result) == "chi-square: statistic 90, p < 1e-4 (9 degrees of freedom)"


def test_exact_p_is_printed_at_any_depth():
    result = GoodnessOfFit("kolmogorov-smirnov (id order)", 0.3, 1.644998736e-85, method="exact")
    assert str(result) == "kolmogorov-smirnov (id order): statistic 0.3, p 1.645e-85 (exact method)"


def test_chi_square_p_at_the_floor_has_digits():
    assert "p 0.0001" in str(GoodnessOfFit("chi-square", 1.0, 1e-4))


def test_result_is_frozen():
    with pytest.raises(dataclasses.FrozenInstanceError):
        GoodnessOfFit("x", 0.0, 1.0).p_value = 0.5  # type: ignore[misc]


def test_public_names_exist():
    assert sorted(stats.__all__) == stats.__all__
    assert all(hasattr(stats, name) for name in stats.__all__)


def test_import_is_light():
    code = (
        "import sys, simkit.stats\n"
        "heavy = [m for m in ('scipy.stats', 'scipy.special', 'statsmodels', 'pandas') if m in sys.modules]\n"
        "sys.exit(' '.join(heavy) or 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
