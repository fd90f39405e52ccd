# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""An artifact runs in an environment that has the runtime and NumPy, and nothing else."""

from __future__ import annotations

import subprocess
import venv
from pathlib import Path

import numpy as np
import pytest

import graphc
import graphc.tensor as pt
import graphc_runtime

PROGRAM = """
import importlib.util, sys
import numpy as np
import graphc_runtime
module = graphc_runtime.load(sys.argv[1])
x, a = np.linspace(0.1, 0.9, 5), np.array([[4.0, 1.0, 0.5], [1.0, 3.0, 0.2], [0.5, 0.2, 2.0]])
big = np.eye(40) * 50 + np.sin(np.arange(1600.0)).reshape(40, 40)
results = [*module.loop(x), *module.algebra(a), *module.algebra(big @ big.T), *module.draw()]
results += [*module.draw(), *module.choose(x, 1), *module.choose(x, -1), *module.count(), *module.count()]
np.savez(sys.argv[2], *results)
absent = [name for name in ("scipy", "llvmlite", "torch_mlir", "graphc") if importlib.util.find_spec(name)]
assert not absent, absent
assert not any(name.split(".")[0] in ("graphc", "llvmlite", "scipy") for name in sys.modules)
"""


@pytest.fixture(scope="module")
def bare(tmp_path_factory):
    """The interpreter of a new environment, and its import path."""
    folder = tmp_path_factory.mktemp("bare")
    venv.create(folder / "env", symlinks=True)
    packages = folder / "packages"
    packages.mkdir()
    site = Path(np.__file__).parents[1]
    for item in [site / "numpy", *site.glob("numpy.libs")]:
        (packages / item.name).symlink_to(item)
    runtime = packages / "graphc_runtime"
    runtime.symlink_to(Path(graphc_runtime.__file__).parent)
    return folder / "env" / "bin" / "python", packages


def test_a_bare_environment(bare, tmp_path):
    x, a, n = pt.dvector("x"), pt.dmatrix("a"), pt.lscalar("n")
    rng = graphc.shared(np.random.default_rng(5), name="rng")
    total = graphc.shared(np.zeros(2), name="total")
    next_rng, draws = rng.normal(size=4)
    more_rng, gammas = next_rng.gamma(2.0, size=3)
    h = graphc.scan(
        lambda xt, h: 0.5 * h + xt, sequences=[x], outputs_info=[pt.constant(0.0)], return_updates=False
    )
    lower = pt.linalg.cholesky(a)
    functions = {
        "loop": graphc.function([x], [h, pt.join(0, x, h[::-1], x[:2])]),
        "algebra": graphc.function(
            [a],
            [lower, pt.linalg.solve(a, a[:, 0]), a @ a, pt.linalg.eigh(a)[0]],
        ),
        "draw": graphc.function([], [draws, gammas], updates={rng: more_rng}),
        "choose": graphc.function([x, n], [graphc.ifelse(n > 0, pt.exp(x), x[:2])]),
        "count": graphc.function([], [total], updates={total: total + 1}),
    }
    graphc.export(functions, tmp_path / "model.gcx")
    python, packages = bare
    command = [python, "-I", "-c", f"import sys; sys.path.append({str(packages)!r})\n{PROGRAM}"]
    done = subprocess.run(
        [*command, tmp_path / "model.gcx", tmp_path / "results.npz"], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    points = np.linspace(0.1, 0.9, 5), np.array([[4.0, 1.0, 0.5], [1.0, 3.0, 0.2], [0.5, 0.2, 2.0]])
    big = np.eye(40) * 50 + np.sin(np.arange(1600.0)).reshape(40, 40)
    f = functions
    expected = [*f["loop"](points[0]), *f["algebra"](points[1]), *f["algebra"](big @ big.T), *f["draw"]()]
    expected += [
        *f["draw"](),
        *f["choose"](points[0], 1),
        *f["choose"](points[0], -1),
        *f["count"](),
        *f["count"](),
    ]
    with np.load(tmp_path / "results.npz") as found:
        assert len(found) == len(expected)
        for i, want in enumerate(expected):
            np.testing.assert_allclose(found[f"arr_{i}"], want, rtol=1e-11, atol=1e-11, err_msg=str(i))
    needs = graphc_runtime.load(tmp_path / "model.gcx").package.functions["algebra"].needs
    assert {"BLAS", "LAPACK"} <= set(needs)
