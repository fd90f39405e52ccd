# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""``pt`` and ``graphc`` as NumPy sees them: what lines that are no cases of the table compute."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import scipy.special
from case_text import all_cases
from op_cases_elementwise import floor_divide
from op_table import Case
from program import Step, flat, run_step


class until:
    """Ends a loop."""

    def __init__(self, condition: Any) -> None:
        self.condition = bool(condition)


def ifelse(condition: Any, then: Any, other: Any) -> Any:
    """The one or the other."""
    return then if condition else other


def scan(
    fn: Callable[..., Any],
    sequences: Any = None,
    outputs_info: Any = None,
    non_sequences: Any = None,
    n_steps: int | None = None,
    go_backwards: bool = False,
    **_: Any,
) -> Any:
    """A loop, row by row; outputs of no step are not known here.

    Raises:
        NotImplementedError: no step was made, whose rows have no shape then.
    """
    rows, states = _listed(sequences), _listed(outputs_info)
    rows = [x if isinstance(x, dict) else {"input": x, "taps": [0]} for x in rows]
    lengths = [len(r["input"]) - (max(r["taps"]) - min([0, *r["taps"]])) for r in rows]
    count = int(n_steps if n_steps is not None else min(lengths))
    histories = [None if s is None else _history(s) for s in states]
    if go_backwards:
        rows = [{**r, "input": r["input"][::-1]} for r in rows]
    stacked: list[list[Any]] = []
    for t in range(count):
        arguments = [r["input"][t + tap - min([0, *r["taps"]])] for r in rows for tap in r["taps"]]
        arguments += [
            h[len(h) + tap]
            for h, s in zip(histories, states, strict=True)
            if h is not None
            for tap in (s["taps"] if isinstance(s, dict) else [-1])
        ]
        results = _listed(fn(*arguments, *_listed(non_sequences)))
        stop = [r for r in results if isinstance(r, until)]
        results = [r for r in results if not isinstance(r, until)]
        results = (
            _listed(results[0]) if len(results) == 1 and isinstance(results[0], list | tuple) else results
        )
        stacked.append(results)
        for i, h in enumerate(histories):
            if h is not None:
                h.append(np.asarray(results[i]))
        if any(s.condition for s in stop):
            break
    if not stacked:
        raise NotImplementedError("a loop without steps: its rows have no shape here")
    outputs = [np.stack([np.asarray(row[i]) for row in stacked]) for i in range(len(stacked[0]))]
    return outputs[0] if len(outputs) == 1 else outputs


def _history(state: Any) -> list[Any]:
    return list(state["initial"]) if isinstance(state, dict) else [np.asarray(state)]


def _listed(value: Any) -> list[Any]:
    return [] if value is None else list(value) if isinstance(value, list | tuple) else [value]


def fori_loop(low: Any, high: Any, fn: Callable[..., Any], start: Any) -> Any:
    """Repeat ``fn(i, state)``."""
    for i in range(int(low), int(high)):
        start = fn(i, start)
    return start


def while_loop(condition: Callable[..., Any], fn: Callable[..., Any], start: Any) -> Any:
    """Repeat ``fn(state)`` while the condition holds."""
    while condition(start):
        start = fn(start)
    return start


def put(x: np.ndarray, index: Any, y: Any, kind: str) -> np.ndarray:
    """``x`` with a part set, or increased."""
    x = np.array(x)
    if kind == "set":
        x[index] = y
    else:
        np.add.at(x, index, np.asarray(y).astype(x.dtype))
    return x


class NumPySpace:
    """``pt`` for arrays."""

    random: Any = None

    def __getattr__(self, name: str) -> Any:
        own = globals().get(name) if name in _OWN else None
        if own is not None:
            return own
        if hasattr(np, name):
            return getattr(np, name)
        return getattr(scipy.special, name)

    @staticmethod
    def constant(value: Any) -> np.ndarray:
        return np.asarray(value)

    @staticmethod
    def cast(x: Any, dtype: str) -> np.ndarray:
        return np.asarray(x).astype(dtype)

    @staticmethod
    def argsort(x: Any, axis: Any = -1) -> np.ndarray:
        return np.argsort(x, axis=axis, kind="stable")

    @staticmethod
    def floor_divide(x: Any, y: Any) -> np.ndarray:
        return floor_divide(x, y)

    @staticmethod
    def softmax(x: Any, axis: Any = None) -> np.ndarray:
        return np.asarray(scipy.special.softmax(x, axis=axis))

    # NumPy negates k, or subtracts 1 from it.
    @staticmethod
    def tril(x: Any, k: Any = 0) -> np.ndarray:
        return np.asarray(np.tril(x, max(int(k), -(2**62))))

    @staticmethod
    def triu(x: Any, k: Any = 0) -> np.ndarray:
        return np.asarray(np.triu(x, max(int(k), -(2**62))))

    @staticmethod
    def logsumexp(x: Any, axis: Any = None) -> np.ndarray:
        return np.asarray(scipy.special.logsumexp(x, axis=axis))

    @staticmethod
    def sigmoid(x: Any) -> np.ndarray:
        found = np.asarray(scipy.special.expit(x))  # which makes float64 of one number of half precision
        return found.astype(np.asarray(x).dtype) if np.asarray(x).dtype.kind == "f" else found


_OWN = {"until", "ifelse", "scan", "fori_loop", "while_loop"}


def space() -> dict[str, Any]:
    """What a program's lines see when NumPy runs them."""
    pt = NumPySpace()
    return {"pt": pt, "graphc": pt, "np": np, "_put": put}


@cache
def case_of(name: str) -> Case:
    """The case of that name."""
    return next(case for case in all_cases() if case.name == name)


def run_numpy(step: Step, operands: dict[str, Any]) -> list[np.ndarray] | None:
    """What NumPy makes of a line; None where there is nothing to compare with."""
    if step.numpy == "":
        return None
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if step.operands:
            return case_of(step.kind).expected([np.array(operands[name]) for name in step.operands])
        found = dict(operands)
        result = run_step(step, found, space(), step.numpy)
        return [np.asarray(x) for x in flat(result)]
