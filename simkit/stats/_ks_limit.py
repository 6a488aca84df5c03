"""The exit probability of the Gaussian limit of the path, by quadrature on a lattice coarser than the counts.

The limit of the path is a Brownian bridge looked at in the knots only: a Brownian motion whose increments
have variance n p_j, given that it ends in 0. The pass is that of `_ks_exact` with cells of `width` counts.
The band ends half a count inside the first count that is out (the continuity correction), and cuts through
cells: the part of a cell that stays keeps its mass and its mean.
"""

from __future__ import annotations

import numpy as np

from simkit.stats._convolve import convolve
from simkit.stats._input import Floats
from simkit.stats._ks_plan import Plan, reach


def limit_exit(plan: Plan, width: float) -> float:
    """Return the Gaussian limit of P(D_n >= d) with continuity correction.

    Parameters
    ----------
    plan
        Knots, band and reach, in counts.
    width
        Width of a lattice cell, in counts.

    References
    ----------
    .. [1] C. Wood and M. Altavela, "Large-sample results for Kolmogorov-Smirnov statistics for discrete
       distributions", Biometrika 65 (1978), 235-239: the limit law.
    """
    n = plan.samples
    middle = n * plan.below
    top = (plan.top - 0.5 - middle) / width
    bottom = (middle - plan.bottom - 0.5) / width
    mass, start = np.ones(1), 0
    total = 0.0
    for j in range(plan.steps.size):
        rest = float(plan.above[j])
        spread = n * rest / width**2
        mass, start = _step(mass, start, n * plan.steps[j] / width**2, plan.log_inverse)
        mass, start = _crop(mass, start, plan.path_reach[j] / width)
        mass, out, places = _split(mass, start, top[j])
        total += _returning(out, places, spread) / np.sqrt(rest)
        mirrored, mirrored_start = mass[::-1], 1 - start - mass.size
        mirrored, out, places = _split(mirrored, mirrored_start, bottom[j])
        total += _returning(out, places, spread) / np.sqrt(rest)
        mass, start = mirrored[::-1], 1 - mirrored_start - mirrored.size
        if mass.size == 0:
            break
    return float(total)


def _step(mass: Floats, start: int, variance: float, log_inverse: float) -> tuple[Floats, int]:
    """Return the law after a centred lattice step of the given variance (in cells squared)."""
    kernel = _kernel(variance, log_inverse)
    return convolve(mass, kernel), start - kernel.size // 2


def _kernel(variance: float, log_inverse: float) -> Floats:
    """Return a centred law on the lattice with this variance: normal, or Skellam where cells are wide."""
    from scipy.special import ive

    wide = variance < 1.0
    span = reach(variance, log_inverse) if wide else np.sqrt(2.0 * log_inverse * variance)
    half = int(np.ceil(span))
    offsets = np.arange(-half, half + 1, dtype=np.float64)
    if wide:
        return np.asarray(ive(np.abs(offsets), variance))
    return np.asarray(np.exp(-(offsets**2) / (2.0 * variance)) / np.sqrt(2.0 * np.pi * variance))


def _crop(mass: Floats, start: int, span: float) -> tuple[Floats, int]:
    """Return the part of the law within `span` cells of 0."""
    edge = int(np.ceil(span))
    first = max(0, -edge - start)
    last = max(first, edge - start + 1)
    return mass[first:last], start + first


def _split(mass: Floats, start: int, edge: float) -> tuple[Floats, Floats, Floats]:
    """Return what stays below the edge, what leaves, and where (in cells) the leaving mass is."""
    cut = int(np.floor(edge + 0.5)) - start
    if cut >= mass.size:
        return mass, mass[:0], mass[:0]
    cut = max(cut, 0)
    share = float(np.clip(edge + 0.5 - start - cut, 0.0, 1.0))
    out = mass[cut:].copy()
    out[0] *= 1.0 - share
    places = start + cut + np.arange(out.size, dtype=np.float64)
    places[0] += share / 2.0
    return _keep(mass[: cut + 1].copy(), share), out, places


def _keep(mass: Floats, share: float) -> Floats:
    """Return the law with only `share` of its last cell, spread over two cells so that its mean is right."""
    kept = mass[-1] * share
    if mass.size == 1:
        mass[-1] = kept
        return mass
    moved = kept * (1.0 - share) / 2.0
    mass[-2] += moved
    mass[-1] = kept - moved
    return mass


def _returning(mass: Floats, places: Floats, spread: float) -> float:
    """Return the mass that leaves at these places, weighted by exp(-y^2/(2 spread)): its way back."""
    if mass.size == 0:
        return 0.0
    return float(mass @ np.exp(-(places**2) / (2.0 * spread)))
