# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Values for tests of elementwise rows, and running graphs op by op."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from graphc.graph.basic import Constant, Variable
from graphc.graph.traversal import toposort

DTYPES = (
    *("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
    *("float16", "float32", "float64", "complex64", "complex128"),
)
TOLERANCE = {"float16": 4e-3, "float32": 3e-6, "float64": 1e-12, "complex64": 1e-5, "complex128": 1e-11}

# Intervals in which the real functions are defined; elsewhere results are NaN.
DOMAINS = {
    **dict.fromkeys(
        ("log", "log2", "log10", "sqrt", "gammaln", "gamma", "digamma", "reciprocal"), (0.1, 3.0)
    ),
    **dict.fromkeys(
        ("trigamma", "rgamma", "beta", "betaln", "poch", "xlogy", "entr", "rel_entr", "kl_div"), (0.1, 3.0)
    ),
    **dict.fromkeys(("gammainc", "gammaincc", "gammainc_da", "hyp1f1", "expi", "exp1", "spence"), (0.1, 3.0)),
    **dict.fromkeys(("iv", "ive", "jv", "kv", "kve", "yv", "k0", "k0e", "k1", "k1e", "y0", "y1"), (0.2, 3.0)),
    **dict.fromkeys(
        (
            "ndtri",
            "logit",
            "ellipk",
            "ellipe",
            "ellipkm1",
            "ellipkinc",
            "ellipeinc",
            "gammaincinv",
            "gammainccinv",
        ),
        (0.1, 0.9),
    ),
    **dict.fromkeys(("betainc", "betaincc", "betaincinv", "betainc_da", "betainc_db"), (0.1, 0.9)),
    **dict.fromkeys(("hyp2f1", "hyp2f1_da", "hyp2f1_dc", "erfcinv"), (0.1, 0.9)),
    "ndtri_exp": (-3.0, -0.1),
    **dict.fromkeys(
        ("airye_ai", "airye_aip", "ellipj_sn", "ellipj_cn", "ellipj_dn", "ellipj_ph"), (0.1, 0.9)
    ),
    "lambertw0": (-0.3, 3.0),
    "lambertw1": (-0.35, -0.05),
    "stdtrit": (0.1, 0.9),
    "erfinv": (-0.9, 0.9),
    "xlog1py": (-0.9, 3.0),
    "zeta": (1.5, 4.0),
    "polygamma": (1.0, 3.0),
    "binom": (0.1, 0.9),
    **dict.fromkeys(("arcsin", "arccos", "arctanh"), (-0.9, 0.9)),
    "log1p": (-0.9, 3.0),
    "arccosh": (1.1, 3.0),
    "log1mexp": (-3.0, -0.1),
    "pow": (0.2, 3.0),
}


def sample(
    dtype: str, shape: Sequence[int], rng: np.random.Generator, interval: tuple[float, float]
) -> np.ndarray:
    """Random values of a dtype in an interval; integers are small, and at least 0 when unsigned."""
    kind = np.dtype(dtype).kind
    low, high = interval
    if kind == "b":
        return rng.integers(0, 2, shape).astype(bool)
    if kind in "iu":
        return rng.integers(max(int(low), 0) if kind == "u" or low >= 0 else -4, 6, shape).astype(dtype)
    values = rng.uniform(low, high, shape)
    if kind == "c":
        return (values + 1j * rng.uniform(-0.8, 0.8, shape)).astype(dtype)
    return values.astype(dtype)


def operands(
    name: str, arity: int, dtype: str, rng: np.random.Generator, shape: Sequence[int] = (3, 4)
) -> list[Any]:
    """Operands for a row."""
    values = [sample(dtype, shape, rng, DOMAINS.get(name, (-2.0, 2.0))) for _ in range(arity)]
    if name == "polygamma" and np.dtype(dtype).kind == "f":
        values[0] = np.rint(values[0])
    if name == "sph_legendre" and arity == 3 and np.dtype(dtype).kind == "f":
        values[:2] = np.full_like(values[0], 3), np.rint(values[1])
    return values


def perform(outputs: Sequence[Variable], values: Mapping[Variable, Any]) -> list[Any]:
    """Run a graph op by op, checking that each value is of the type that was inferred."""
    computed: dict[Variable, Any] = dict(values)
    for node in toposort(outputs):
        inputs = [x.data if isinstance(x, Constant) else computed[x] for x in node.inputs]
        cells: list[list[Any]] = [[None] for _ in node.outputs]
        node.op.perform(node, inputs, cells)
        for output, (value,) in zip(node.outputs, cells, strict=True):
            assert isinstance(value, np.ndarray), f"{node} gives {type(value)}"
            assert value.dtype == output.type.numpy_dtype, (
                f"{node} gives {value.dtype}, inferred {output.type}"
            )
            assert output.type.is_valid_value(value), (
                f"{node} gives shape {value.shape}, inferred {output.type}"
            )
            computed[output] = value
    return [x.data if isinstance(x, Constant) else computed[x] for x in outputs]
