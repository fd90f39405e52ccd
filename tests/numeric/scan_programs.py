# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Random loops, built as ops, with inputs to run them on."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

import graphc.tensor as pt
from graphc.scan.op import Scan
from graphc.scan.spec import Invariant, Output, ScanSpec, Sequence, State

SHAPES = [(), (2,), (2, 3)]
_TERMS = [pt.sin, lambda x: 0.5 * x, lambda x: x * x * 0.3, pt.tanh]
TAPS = [(-1,), (-1,), (-2, -1), (-2,), (-3, -1), (-3, -2, -1)]


@dataclass
class Program:
    """A loop and values for its inputs.

    Attributes:
        op: the scan.
        n_steps: number of iterations asked for.
        values: values of the outer inputs after the number of steps.
        readers: what is done with the outer outputs: one function for each.
    """

    op: Scan
    n_steps: int
    values: list[np.ndarray]
    readers: list = field(default_factory=list)

    def __call__(self, *inputs):
        """What a user's program would compute from the outputs, for outer inputs."""
        outputs = self.op(pt.constant(self.n_steps, dtype="int64"), *inputs, return_list=True)
        return [reader(y) for reader, y in zip(self.readers, outputs, strict=False)]


def _combine(rng, rows):
    """A smooth function of some of the rows."""
    result = None
    for x in rows:
        term = _TERMS[rng.integers(len(_TERMS))](x)
        multiply = rng.integers(3) == 0
        result = term if result is None else result * term if multiply else result + term
    return pt.tanh(result) if rng.integers(2) else 0.7 * result


def _reader(rng, window, n_steps):
    """How a program uses a trace: all rows, steps only, or the last rows."""
    kind = int(rng.integers(7))
    if n_steps == 0:
        return [lambda y: y, lambda y: y[window:], lambda y: y * 2.0][kind % 3]
    return [
        lambda y: y,
        lambda y: y[window:],
        lambda y: y[-1],
        lambda y: y[window:][-1],
        lambda y: y[window:][-1] * 2.0 + y[0],
        lambda y: pt.sum(y[window:] ** 2) + pt.sum(y[-1]),
        lambda y: y[window:][::-1] * pt.sum(y[: max(window, 1)]),
    ][kind]


def random_program(seed, max_steps=5, rewriting=False, stopping=None, checkpoint=None, dtype="float64"):
    """A random loop.

    Args:
        seed: of the random choices.
        max_steps: greatest number of iterations.
        rewriting: let states write older rows too (mit-mot).
        stopping: end some loops by a condition; chosen at random by default.
        checkpoint: ``checkpoint_every`` of the op.
        dtype: of everything.
    """
    rng = np.random.default_rng(seed)
    shape = SHAPES[rng.integers(len(SHAPES))]
    n_steps = int(rng.integers(0, max_steps + 1))
    row = pt.TensorType(dtype, shape)
    sequences, states, values, reads = [], [], [], []
    for i in range(rng.integers(0, 3)):
        taps = tuple(sorted(rng.choice(3, size=rng.integers(1, 4), replace=False).tolist()))
        sequences.append(Sequence(f"x{i}", taps))
        values.append(rng.normal(size=(n_steps + taps[-1] + int(rng.integers(0, 3)), *shape)))
        reads += [row.make_variable(f"x{i}_{tap}") for tap in taps]
    for i in range(rng.integers(1, 4)):
        taps = TAPS[rng.integers(len(TAPS))]
        writes = [w for w in range(taps[0] + 1, 0) if rewriting and rng.integers(2)]
        states.append(State(f"h{i}", taps, (*writes, 0)))
        values.append(rng.normal(size=(-taps[0], *shape)))
        reads += [row.make_variable(f"h{i}_{-tap}") for tap in taps]
    invariants = [Invariant(f"w{i}") for i in range(rng.integers(0, 3))]
    values += [rng.normal(size=shape) for _ in invariants]
    reads += [row.make_variable(role.name) for role in invariants]
    count = sum(len(state.writes) for state in states)
    read = np.array(reads, object)
    results = [_combine(rng, rng.permutation(read)[: rng.integers(1, 4)]) for _ in range(count)]
    outputs = [Output(f"y{i}") for i in range(rng.integers(0, 3))]
    for _ in outputs:
        parts = rng.permutation(np.array([*reads, *results], object))[: rng.integers(1, 3)]
        results.append(_combine(rng, parts))
    stops = bool(rng.integers(4) == 0) if stopping is None else stopping
    if stops:
        results.append(pt.gt(pt.sum(results[0]), 0.8))
    spec = ScanSpec(tuple(sequences), tuple(states), tuple(outputs), (), tuple(invariants), stops)
    reverse = bool(rng.integers(2))
    op = Scan(spec, reads, results, name="random", reverse=reverse, checkpoint_every=checkpoint)
    windows = [state.window for state in states] + [0] * len(outputs)
    readers = [_reader(rng, window, n_steps) for window in windows]
    return Program(op, n_steps, [np.asarray(v, dtype) for v in values], readers)
