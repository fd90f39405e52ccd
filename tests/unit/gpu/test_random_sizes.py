# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Kernels of every class at random sizes, without a device.

The schedule runs on the simulated driver, the kernels in the interpreter of the gpu dialect: races, divergent
barriers, indices out of bounds, unwritten memory and leaks are errors.
"""

from __future__ import annotations

import math
from functools import cache

import numpy as np
import pytest
from fuzzing import FUZZING, some
from gpu_cases import CASES, Case
from simulation import assert_nothing_lives

import graphc
from graphc.backends.cuda import code as compiler
from graphc.backends.cuda.code import Lowered
from graphc_runtime.artifact import Artifact
from graphc_runtime.cuda.code import DeviceCode
from graphc_runtime.cuda.executable import DeviceExecutable
from graphc_runtime.manifest import ArraySpec, Manifest, Signature
from graphc_tools.gpu.kernels import Kernels
from graphc_tools.gpu.simulated import SimulatedDriver

# Around those of warps, vectors, tiles and blocks.
_SIZES = (0, 1, 2, 7, 31, 32, 33, 64, 67, 128, 131, 257)
# Indices are for the sizes; errors of systems grow with condition numbers, which grow with sizes.
_SYSTEMS = ("triangular systems", "systems and determinants", "systems with structure")
_OF_THEIR_SIZES = ("take", "put", "cholesky", *_SYSTEMS)
_TOLERANCES = {"float16": 2e-2, "float32": 2e-5, "complex64": 2e-5}


@cache
def lowered(name: str) -> Lowered:
    return compiler.lower(CASES[name].text(), "sm_90")


@cache
def reference(name: str) -> graphc.function.types.Function:
    inputs, outputs = CASES[name].graph()
    return graphc.function(inputs, outputs, mode="interpret")


def executable(name: str) -> DeviceExecutable:
    """The kernels of a case, for a simulated device."""
    case, code = CASES[name], lowered(name)
    inputs, outputs = case.graph()
    given, found = (
        tuple(ArraySpec(variable.type.dtype, tuple(variable.type.shape)) for variable in variables)
        for variables in (inputs, outputs)
    )
    manifest = Manifest(Signature(given, outputs=found, returns="list"), sites=code.sites)
    driver = SimulatedDriver(Kernels(code.kernels) if "gpu.func" in code.kernels else {})
    data = DeviceCode(code.schedule, code.ptx, "sm_90").to_bytes()
    return DeviceExecutable(Artifact(manifest, data), driver)


def check(name: str, values: list[np.ndarray]) -> None:
    """Compares a run with the reference, and looks for what is left in memory."""
    made = executable(name)
    try:
        wanted = reference(name)(*values)
    except (ValueError, IndexError) as error:
        with pytest.raises(type(error)):
            made.bind()(*values)
        return
    found = made.bind()(*values)
    for result, expected in zip(found, wanted, strict=True):
        array = np.asarray(result)
        assert array.dtype == expected.dtype and array.shape == expected.shape
        tolerance = _TOLERANCES.get(str(array.dtype), 1e-12)
        np.testing.assert_allclose(array, expected, rtol=tolerance, atol=tolerance * 10)
    del found, result
    assert_nothing_lives(made.driver)


def other_shapes(case: Case, rng: np.random.Generator) -> list[tuple[int, ...]]:
    """Shapes of a run with each size replaced, equal ones by equal ones; few elements in all."""
    shapes = case.shapes[int(rng.integers(len(case.shapes)))]
    while True:
        new = {size: int(rng.choice(_SIZES)) for shape in shapes for size in shape}
        found = [tuple(new[size] for size in shape) for shape in shapes]
        if sum(math.prod(shape) for shape in found) < 6000:
            return found


def _of_any_size() -> list[str]:
    """In ordinary runs every second case; test_executed.py has all of them, at sizes of their own."""
    names = [name for name in CASES if name not in _OF_THEIR_SIZES]
    return names if FUZZING else names[::2]


@pytest.mark.fuzz
@pytest.mark.parametrize("seed", some(range(20), 1))
@pytest.mark.parametrize("name", _of_any_size())
def test_kernels_of_random_sizes(name: str, seed: int) -> None:
    rng = np.random.default_rng([seed, *name.encode()])
    case = CASES[name]
    shapes = other_shapes(case, rng)
    check(name, case.values(shapes))
