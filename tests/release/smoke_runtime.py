# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the runtime does where only NumPy is installed: loads and calls the file that smoke.py wrote."""

from __future__ import annotations

import importlib.util
import platform
import sys

import numpy as np

import graphc_runtime


def main(path: str) -> None:
    absent = ["graphc", "graphc_dialects", "llvmlite", "scipy", "torch_mlir"]
    assert not any(importlib.util.find_spec(name) for name in absent), "this environment is not bare"
    model = graphc_runtime.load(path)
    x = np.array([0.0, 1.0, -2.0])
    value, slope = model.f(x)
    assert np.allclose(value, np.exp(x).sum(), rtol=1e-14) and np.allclose(slope, np.exp(x), rtol=1e-14)
    assert np.allclose(model.solve(2.0 * np.eye(3) + 1, x), np.linalg.solve(2.0 * np.eye(3) + 1, x))
    assert (model.draw() == np.random.default_rng(3).normal(size=3)).all()
    print("ok", platform.machine(), sys.version.split()[0], "numpy", np.__version__, graphc_runtime.__file__)


if __name__ == "__main__":
    main(sys.argv[1])
