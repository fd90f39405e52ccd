# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What workers of these tests run besides compiled functions."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

import numpy as np

COMPILERS = ("llvmlite", "torch_mlir")


class Witness:
    """A function, and what of a compiler its process has loaded."""

    def __init__(self, function):
        self.function = function

    def __call__(self, *args):
        result = self.function(*args)
        return result, os.getpid(), [name for name in COMPILERS if name in sys.modules]


class DiesOnce:
    """A function whose first call ends the process, which leaves a mark."""

    def __init__(self, function, mark):
        self.function, self.mark = function, str(mark)

    def __call__(self, *args):
        try:
            os.close(os.open(self.mark, os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            return self.function(*args)
        os.kill(os.getpid(), signal.SIGKILL)
        return None


class Reads:
    """A partition that workers read from files."""

    def __init__(self, path):
        self.path = Path(path)

    def __call__(self):
        with np.load(self.path) as found:
            return found["x"], found["y"]
