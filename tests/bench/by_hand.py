# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Ten lines written by hand: a limit that does not depend on any graph compiler.

They are in C (`by_hand.c`) and in Python for numba (`njit(parallel=True, fastmath=True)`).

Results get memory of their own in each call, as those of the libraries do.
"""

from __future__ import annotations

import ctypes
import math
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from cases import Case

FLAGS = ("-O3", "-march=native", "-fopenmp", "-ffast-math", "-fPIC")
Function = Callable[..., Any]


class _ByHand:
    """Functions by the names of their lines."""

    functions: dict[str, Function]

    def build(self, case: Case) -> tuple[str, dict[str, Any]]:
        """The statement and its names."""
        from libraries import NotOffered

        if case.name not in self.functions:
            raise NotOffered("this line is not written by hand")
        names = {f"a{i}": value for i, value in enumerate(case.inputs())}
        return f"f({', '.join(names)})", {"f": self.functions[case.name], **names}

    forgetful = build


class C(_ByHand):
    """The functions of `by_hand.c`, called through ctypes."""

    def __init__(self) -> None:
        compiler = shutil.which("cc")
        if compiler is None:
            raise ImportError("there is no C compiler")
        said = subprocess.run([compiler, "--version"], capture_output=True, text=True, check=True).stdout
        self.version = said.splitlines()[0]
        with tempfile.TemporaryDirectory() as folder:
            path, compiled = Path(folder, "by_hand.so"), Path(folder, "by_hand.o")
            source = str(Path(__file__).with_name("by_hand.c"))
            # Linked with "-ffast-math" a library makes denormal numbers zero in the thread that loads it, for
            # whatever runs there from then on.
            for arguments in (
                [*FLAGS, "-c", source, "-o", str(compiled)],
                ["-shared", "-fopenmp", str(compiled), "-o", str(path), "-lm"],
            ):
                done = subprocess.run([compiler, *arguments], capture_output=True, text=True)
                if done.returncode:
                    raise ImportError(f"the C compiler says: {done.stderr.strip().splitlines()[-1]}")
            self._library = ctypes.CDLL(str(path))
        self.functions = self._functions()

    def _functions(self) -> dict[str, Function]:
        library = self._library

        def pointer(x: Any) -> ctypes.c_void_p:
            return ctypes.c_void_p(x.ctypes.data)

        def elements(name: str, x: Any, *more: Any, dtype: str = "float64", shape: Any = None) -> Any:
            """Calls a function of arrays, the result and a size."""
            out = np.empty(x.shape if shape is None else shape, dtype)
            getattr(library, name)(*map(pointer, (x, *more, out)), ctypes.c_int64(x.size))
            return out

        def softmax(x: Any) -> Any:
            out = np.empty_like(x)
            library.softmax(pointer(x), pointer(out), *map(ctypes.c_int64, x.shape))
            return out

        def gather(x: Any, i: Any) -> Any:
            out = np.empty(i.shape)
            library.gather(pointer(x), pointer(i), pointer(out), ctypes.c_int64(i.size))
            return out

        def recurrence(x: Any, h: Any) -> Any:
            out = np.empty_like(x)
            library.recurrence(pointer(x), ctypes.c_double(h), pointer(out), ctypes.c_int64(x.size))
            return out

        def hmm(symbols: Any, start: Any, transition: Any, emission: Any) -> Any:
            out = np.empty(())
            arrays = (symbols, start, transition, emission, out)
            library.hmm(*map(pointer, arrays), ctypes.c_int64(symbols.size), ctypes.c_int64(start.size))
            return out

        return {
            "exp": lambda x, y: elements("fused_exp", x, y),
            "transcendental": lambda x, y: elements("transcendental", x, y),
            "square_distance": lambda x, y: elements("square_distance", x, y, shape=()),
            "softmax": softmax,
            "argmax": lambda x: elements("argmax", x, dtype="int64", shape=()),
            "cumsum": lambda x: elements("cumsum", x),
            "gather": gather,
            "scatter": lambda x, i: elements("scatter", x, i, x),
            "recurrence": recurrence,
            "hmm": hmm,
        }


class Numba(_ByHand):
    """The same loops for numba, parallel where their iterations are independent."""

    def __init__(self) -> None:
        import numba

        self.version = numba.__version__
        self.functions = _numba_functions(numba)


def _numba_functions(numba: Any) -> dict[str, Function]:
    parallel, serial = numba.njit(parallel=True, fastmath=True), numba.njit(fastmath=True)
    prange = numba.prange

    @parallel
    def exp(x, y):
        out = np.empty_like(x)
        for i in prange(x.size):
            out[i] = math.exp(x[i]) * y[i] + 1.0
        return out

    @parallel
    def transcendental(x, y):
        out = np.empty_like(x)
        for i in prange(x.size):
            out[i] = math.log1p(math.exp(-abs(x[i]))) + math.tanh(y[i]) / (1.0 + math.exp(-x[i]))
        return out

    @parallel
    def square_distance(x, y):
        total = 0.0
        for i in prange(x.size):
            total += (x[i] - y[i]) ** 2
        return total

    @parallel
    def softmax(x):
        out = np.empty_like(x)
        for r in prange(x.shape[0]):
            top, total = x[r].max(), 0.0
            for i in range(x.shape[1]):
                out[r, i] = math.exp(x[r, i] - top)
                total += out[r, i]
            for i in range(x.shape[1]):
                out[r, i] /= total
        return out

    @serial
    def argmax(x):
        return x.argmax()

    @serial
    def cumsum(x):
        out = np.empty_like(x)
        total = 0.0
        for i in range(x.size):
            total += x[i]
            out[i] = total
        return out

    @parallel
    def gather(x, at):
        out = np.empty(at.size)
        for i in prange(at.size):
            out[i] = x[at[i]]
        return out

    @serial
    def scatter(x, at):
        out = x.copy()
        for i in range(at.size):
            out[at[i]] += x[i]
        return out

    @serial
    def recurrence(x, h):
        out = np.empty_like(x)
        last = h.item()
        for i in range(x.size):
            last = 0.9 * last + x[i]
            out[i] = last
        return out

    @serial
    def hmm(symbols, start, transition, emission):
        states, total_log = start.size, 0.0
        a, b = start.copy(), np.empty(start.size)
        for t in range(symbols.size):
            total = 0.0
            for j in range(states):
                b[j] = 0.0
            for i in range(states):
                for j in range(states):
                    b[j] += a[i] * transition[i, j]
            for j in range(states):
                b[j] *= emission[symbols[t], j]
                total += b[j]
            for j in range(states):
                a[j] = b[j] / total
            total_log += math.log(total)
        return total_log

    made = (exp, transcendental, square_distance, softmax, argmax, cumsum, gather, scatter, recurrence, hmm)
    return {f.__name__: f for f in made}
