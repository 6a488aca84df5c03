"""simulate: shards, threads and progress around a backend's token loop."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from importlib import import_module
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray

from simkit.errors import InputError, UnknownNameError
from simkit.laws.checks import whole_number
from simkit.laws.pair import Pair
from simkit.sampling.tally import Counts, Run, Tally

if TYPE_CHECKING:
    from simkit.rules.choose import Text
    from simkit.sampling.program import Program

BACKENDS = ("numba", "numpy", "reference")
Progress = Callable[[int, int], None]


class Backend(Protocol):
    """A token loop: adds trials first to first + count - 1 of a program to counts."""

    def __call__(  # noqa: D102
        self,
        program: Program,
        first: int,
        count: int,
        counts: Counts,
        tokens: NDArray[np.int32] | None = None,
    ) -> None: ...


def simulate(
    pair: Pair,
    rule: str | Text = "token",
    *,
    draft_length: int = 4,
    length: int = 16,
    trials: int = 1_000_000,
    seed: int = 0,
    first_trial: int = 0,
    backend: str = "auto",
    threads: int | None = None,
    progress: Progress | None = None,
) -> Tally:
    """Return the tally of `trials` decodes of `length` tokens by speculative sampling.

    The same seed gives the same counts for any backend, number of threads or split into calls; memory does
    not grow with `trials`.

    Parameters
    ----------
    pair : Pair
        Target and draft laws.
    rule : str or callable
        Name of a rule, of a fault, ``NAME:VALUE`` for one with a parameter, or a text of your own.
    draft_length : int
        Drafts K for one target call, 1 to 64.
    length : int
        Tokens L of a decode, 1 or more.
    trials : int
        Number of decodes, 1 or more.
    seed : int
        Any integer.
    first_trial : int
        Number of the first trial; a tally of trials 0 to 9 plus one of 10 to 19 is that of 0 to 19.
    backend : str
        "numba" (all cores), "numpy" (one core), "reference" (plain Python, slow) or "auto".
    threads : int or None
        Threads for "numba"; None for all cores.
    progress : callable (done, total) or None
        Called from time to time with the number of trials done.

    Raises
    ------
    InputError, UnknownNameError
        For numbers out of range, or a rule or backend that is not known.

    Examples
    --------
    >>> pair = Pair.from_weights([1, 2], [2, 1])
    >>> tally = simulate(pair, draft_length=1, length=1, trials=1000, seed=1)
    >>> int(tally.counts.sum()), tally.counts.shape
    (1000, (1, 2))
    """
    from simkit.sampling.program import compile_program

    trials, first_trial = _check_range(trials, first_trial)
    name, reason = choose_backend(backend)
    workers = _threads(threads)
    if name != "numba":
        workers = 1
    program = compile_program(pair, rule, draft_length=draft_length, length=length, seed=seed)
    _check_room(trials, program)
    data = draw(program, find_backend(name, program), first_trial, trials, workers, progress)
    return Tally(
        pair=pair,
        rule=program.rule,
        draft_length=program.draft_length,
        length=program.length,
        runs=(Run(program.seed, first_trial, first_trial + trials),),
        data=data,
        joint_length=program.joint_length,
        backend=f"{name}, {workers} thread{'s' if workers > 1 else ''} ({reason})",
    )


def draw_tokens(
    pair: Pair,
    rule: str | Text = "token",
    *,
    draft_length: int = 4,
    length: int = 16,
    trials: int = 1000,
    seed: int = 0,
    first_trial: int = 0,
    backend: str = "auto",
) -> NDArray[np.int32]:
    """Return the tokens themselves, int32 of shape (trials, length), with -1 after a decode's end.

    Parameters
    ----------
    pair, rule, draft_length, length, trials, seed, first_trial, backend
        As for `simulate`, which counts exactly these tokens.

    Raises
    ------
    InputError, UnknownNameError
        As `simulate`.

    Examples
    --------
    >>> draw_tokens(Pair.from_weights([1, 0], [1, 1]), length=3, trials=2)
    array([[0, 0, 0],
           [0, 0, 0]], dtype=int32)
    """
    from simkit.sampling.program import compile_program

    trials, first_trial = _check_range(trials, first_trial)
    program = compile_program(pair, rule, draft_length=draft_length, length=length, seed=seed)
    tokens = np.full((trials, program.length), -1, dtype=np.int32)
    counts = Counts.zeros(pair, program.draft_length, program.joint_length)
    find_backend(choose_backend(backend)[0], program)(program, first_trial, trials, counts, tokens)
    return tokens


def choose_backend(name: str) -> tuple[str, str]:
    """Return a backend's name and why it was chosen.

    Parameters
    ----------
    name : str
        A name in `BACKENDS`, or "auto".

    Raises
    ------
    UnknownNameError
        For any other name.

    Examples
    --------
    >>> choose_backend("numpy")
    ('numpy', 'asked for')
    """
    if name == "auto":
        return "numba", "auto: the fastest on a CPU"
    if name not in BACKENDS:
        raise UnknownNameError("backend", name, [*BACKENDS, "auto"])
    return name, "asked for"


def find_backend(name: str, program: Program) -> Backend:
    """Return the token loop of a backend for a program, importing it only now.

    Raises
    ------
    InputError
        For a rule that the backend does not draw.
    """
    from simkit.rules.block import block
    from simkit.rules.chain import Chain
    from simkit.rules.matching import shared_gumbel
    from simkit.rules.multidraft import Tree

    text = program.text
    is_chain = isinstance(text, Chain)
    if name == "numpy" and not is_chain:
        raise InputError(
            f"the numpy backend draws chain rules, and {program.rule!r} is none: take numba or reference"
        )
    if is_chain:
        kernel = "cpu"
    elif isinstance(text, Tree) or text is shared_gumbel:
        kernel = "cpu_tree"
    else:
        kernel = "cpu_block" if text is block else "cpu_decisions"
    home = {"reference": "reference", "numpy": "vectorised", "numba": kernel}[name]
    run: Backend = import_module(f"simkit.sampling.{home}").run
    return run


def _check_range(trials: int, first_trial: int) -> tuple[int, int]:
    trials, first_trial = whole_number(trials, "trials", 1), whole_number(first_trial, "first_trial", 0)
    if first_trial + trials > 2**62:
        raise InputError(f"first_trial={first_trial} with trials={trials}; trials are numbered 0 to 2**62")
    return trials, first_trial


def _check_room(trials: int, program: Program) -> None:
    """Refuse runs whose sums of squares could outgrow 64 bits: a trial judges at most 2 L + K drafts."""
    if trials * (2 * program.length + program.draft_length) ** 2 >= 2**63:
        raise InputError(
            f"trials={trials} of length={program.length} could overflow the sums of squares over trials; "
            "draw fewer trials, or shorter ones"
        )


def default_threads() -> int:
    """Return the number of threads used when none is asked for: the cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _threads(threads: int | None) -> int:
    if threads is None:
        return default_threads()
    return whole_number(threads, "threads", 1)


def draw(
    program: Program,
    backend: Backend,
    first: int,
    trials: int,
    workers: int,
    progress: Progress | None = None,
) -> Counts:
    """Return the counts of `trials` trials, drawn in chunks that take a fraction of a second.

    Each worker adds to counts of its own, and these are added up at the end.
    """
    pair, k = program.pair, program.draft_length
    chunks = iter(_chunks(first, trials, program.length))
    lock, done = threading.Lock(), [0]
    stop = threading.Event()

    def work() -> Counts:
        own = program.private() if workers > 1 else program
        counts = Counts.zeros(pair, k, program.joint_length)
        while not stop.is_set():
            with lock:
                chunk = next(chunks, None)
            if chunk is None:
                break
            backend(own, *chunk, counts)
            with lock:
                done[0] += chunk[1]
        return counts

    if workers == 1 and progress is None:
        return work()
    with ThreadPoolExecutor(workers) as pool:
        pending = {pool.submit(work) for _ in range(workers)}
        parts: list[Counts] = []
        try:
            while pending:
                finished, pending = wait(pending, timeout=0.2, return_when=FIRST_COMPLETED)
                parts.extend(future.result() for future in finished)
                if progress is not None and (done[0] < trials or not pending):  # the end is told once
                    progress(done[0], trials)
        finally:
            stop.set()  # an interrupted run must not wait for the chunks that nobody will read
    total = parts[0]
    for part in parts[1:]:
        total.add(part)
    return total


def _chunks(first: int, trials: int, length: int, tokens: int = 2**17) -> Iterator[tuple[int, int]]:
    """Yield (first, count) of chunks of about so many tokens."""
    size = max(1, tokens // length)
    for begin in range(first, first + trials, size):
        yield begin, min(size, first + trials - begin)


def progress_line(what: str, unit: str = "trials", after: float = 2.0) -> Progress:
    """Return a progress callback that writes one line on stderr once a run has taken `after` seconds.

    Parameters
    ----------
    what : str
        What is running.
    unit : str
        What is counted.
    after : float
        Seconds before the line appears.

    Examples
    --------
    >>> progress_line("drawing")(1, 10)
    """
    begun, shown = time.monotonic(), [0.0]

    def show(done: int, total: int) -> None:
        now = time.monotonic()
        last = done >= total
        if now - begun < after or (now - shown[0] < 0.5 and not last) or not done:
            return
        rate = done / (now - begun)
        left = "done" if last else f"{(total - done) / rate:.0f} s left"
        end = "\n" if last or not sys.stderr.isatty() else "\r"
        sys.stderr.write(f"{what}: {done / total:.0%}, {rate:.3g} {unit}/s, {left}   {end}")
        sys.stderr.flush()
        shown[0] = now if sys.stderr.isatty() else now + 9.5

    return show
