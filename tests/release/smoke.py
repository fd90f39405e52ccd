# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What an installation has to do: compile, differentiate, loop, solve, save, load. Needs the wheels only.

`--write FILE` keeps the file that is saved, for `smoke_runtime.py`.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import numpy as np

import graphc
import graphc.tensor as pt
import graphc_runtime


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", type=Path)
    options = parser.parse_args()
    graphc.show_versions()
    assert graphc.__version__ == graphc_runtime.__version__, graphc_runtime.__version__
    x, a = pt.vector("x"), pt.matrix("a")
    total = pt.exp(x).sum()
    f = graphc.function([x], [total, graphc.grad(total, x)])
    value, slope = f([0.0, 1.0])
    assert np.allclose(value, slope.sum()) and np.allclose(slope, np.exp([0.0, 1.0]))
    states = graphc.scan(
        lambda v, h: 0.5 * h + v, sequences=[x], outputs_info=[pt.constant(0.0)], return_updates=False
    )
    assert np.allclose(graphc.function([x], states)([1.0, 1.0]), [1.0, 1.5])
    solve = graphc.function([a, x], pt.linalg.solve(a, x))
    assert np.allclose(solve(2.0 * np.eye(2), [2.0, 4.0]), [1.0, 2.0])
    rng = graphc.shared(np.random.default_rng(3))
    next_rng, draws = rng.normal(size=3)
    expected = np.random.default_rng(3).normal(size=3)
    draw = graphc.function([], draws, updates={rng: next_rng})
    assert (draw() == expected).all()
    rng.set_value(np.random.default_rng(3))
    with tempfile.TemporaryDirectory() as folder:
        path = options.write or Path(folder) / "model.gcx"
        graphc.export({"f": f, "solve": solve, "draw": draw}, path, targets=["host", "aarch64"])
        assert np.allclose(graphc_runtime.load(path).f(np.array([0.0, 1.0]))[1], slope)
    print("ok", graphc.__file__, graphc_runtime.__file__)


if __name__ == "__main__":
    main()
