# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""One library in a process of its own, asked line by line: a JSON request in, a JSON answer out.

Requests: `{"case": name, "seconds": s}`, or without `seconds` to measure memory, or with `"moved": bytes`
to time a copy that reads and writes so many bytes, or with `"took": s` to count what a call that takes so
long does. Answers: `{"best": seconds}`, `{"memory": bytes}`, `{"roofline": counts}`, `{"absent": why}` or
`{"error": text}`. A result that differs from NumPy's is an error, however fast it came.
"""

from __future__ import annotations

import json
import sys
from typing import Any

import derivatives
import libraries
import memory
import numpy as np
from all_cases import CASES
from timing import best_time


def _tolerance(names: dict[str, Any]) -> dict[str, float]:
    """How far results may be apart: of float32 arguments, by rounding in sums of some hundred products."""
    single = any(getattr(value, "dtype", None) == np.float32 for value in names.values())
    return {"rtol": 1e-4, "atol": 1e-4} if single else {"rtol": 1e-9, "atol": 1e-12}


def _copy(moved: int) -> libraries.Timed:
    """NumPy's copy of half as many bytes: each is read and written."""
    source = np.ones(moved // 16)
    return "copyto(target, source)", {"copyto": np.copyto, "source": source, "target": source.copy()}


class Worker:
    """Answers requests for one library; what is compiled once is kept."""

    def __init__(self, name: str) -> None:
        self.library = libraries.load(name)
        self.reference = libraries.Numpy()
        self.timed: dict[str, libraries.Timed] = {}
        self.knows_limits = False

    def answer(self, request: dict[str, Any]) -> dict[str, Any]:
        """Time one case, or measure its memory."""
        case = next(c for c in CASES if c.name == request["case"])
        try:
            if "took" in request:
                return self._roofline(case, request["took"])
            if "seconds" not in request:
                statement, names = self.library.forgetful(case)
                return {"memory": memory.extra(eval(f"lambda: {statement}", names))}
            if "moved" in request:
                return {"best": best_time(*_copy(request["moved"]), request["seconds"])}
            if case.name not in self.timed:
                self.timed[case.name] = self._checked(case)
            statement, names = self.timed[case.name]
            return {"best": best_time(statement, names, request["seconds"])}
        except libraries.NotOffered as reason:
            return {"absent": str(reason)}
        except Exception as error:
            return {"error": f"{type(error).__name__}: {error}"}

    def _roofline(self, case: Any, took: float) -> dict[str, Any]:
        """What a compiled function does, against what this machine can do."""
        names = self.timed[case.name][1]
        report = getattr(names.get("f"), "report", None)
        if report is None:
            return {}
        if not self.knows_limits:
            from graphc.inspect.roofline import machine_limits

            # What was measured before may have been so while other programs ran.
            machine_limits(renew=True)
            self.knows_limits = True
        found = report.roofline(*(names[f"a{i}"] for i in range(len(case.inputs()))), seconds=took)
        counts = {"flops": found.flops, "functions": sum(found.functions.values()), "bytes": found.bytes}
        return {"roofline": {**counts, "least": found.least_seconds, "machine": str(found.limits)}}

    def _checked(self, case: Any) -> libraries.Timed:
        statement, names = self.library.build(case)
        if case.wrt:
            derivatives.check(case, self.reference.m, list(case.inputs()), eval(statement, names))
            return statement, names
        if case.draws:
            x = np.asarray(eval(statement, names))
            np.testing.assert_allclose([x.mean(), x.std()], [0.0, 1.0], atol=5 / np.sqrt(x.size))
            return statement, names
        expected, expected_names = self.reference.build(case)
        np.testing.assert_allclose(
            eval(statement, names), eval(expected, expected_names), **_tolerance(expected_names)
        )
        return statement, names


def main() -> None:
    """Answer until the input ends."""
    answers, sys.stdout = sys.stdout, sys.stderr  # what a library prints must not get into the answers
    try:
        worker = Worker(sys.argv[1])
        hello: dict[str, Any] = {"version": worker.library.version}
    except ImportError as error:
        hello = {"absent": str(error)}
    print(json.dumps(hello), file=answers, flush=True)
    for line in sys.stdin:
        print(json.dumps(worker.answer(json.loads(line))), file=answers, flush=True)


if __name__ == "__main__":
    main()
