# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Cases of functions that make, reshape, reorder and join arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
from op_table import FLOATS, NUMBERS, REALS, Family, arg, between

ROW, MATRIX, CUBE = arg("n"), arg("n", "n+1"), arg(2, "n", "n+1")
SQUARE, OTHER = arg("n", "n"), arg("n", "n+1", make=between(-1, 1))
ONE, COUNT = arg(), arg(dtype="int64", make=between(3, 3))

# Creation -----------------------------------------------------------------------------------------

case = Family("creation", dtypes=("float64",), gradient=False, jax=False)


def count(x: Any) -> int:
    """A size given as an array."""
    return int(x)


case("arange", [ROW], lambda m, x: m.arange(x.shape[0]))
case("arange:floats", [COUNT], lambda m, n: m.arange(0.5, n, 0.25), same_dtype=False)
case("zeros", [MATRIX], lambda m, x: m.zeros((x.shape[0], 2), dtype="float32"))
case("ones", [MATRIX], lambda m, x: m.ones((x.shape[1],)))
case("full", [MATRIX], lambda m, x: m.full((2, x.shape[0]), 1.5))
case("eye", [MATRIX], lambda m, x: m.eye(x.shape[0], x.shape[1], 1), lambda x: np.eye(*x.shape, 1))
case("identity", [MATRIX], lambda m, x: m.identity(x.shape[0]))
case("identity_like", [SQUARE], reference=lambda x: np.eye(*x.shape))
case("tri", [MATRIX], lambda m, x: m.tri(x.shape[0], x.shape[1], -1), lambda x: np.tri(*x.shape, -1))
case("tril_indices", [ROW], lambda m, x: [*m.tril_indices(3, 1), *m.tril_indices(2, -1, 4)], sizes=(1,))
case("triu_indices", [ROW], lambda m, x: [*m.triu_indices(3, 1), *m.triu_indices(2, -1, 4)], sizes=(1,))
case("diag_indices", [ROW], lambda m, x: m.diag_indices(3), sizes=(1,))
case("indices", [ROW], lambda m, x: m.indices((2, 3)), sizes=(1,))
case("mgrid", [ROW], lambda m, x: [*m.mgrid[0:3, 1:2:0.25]], same_dtype=False)
case("ogrid", [ROW], lambda m, x: [*m.ogrid[0:3, 1:8:2]])

case = Family("creation like", dtypes=NUMBERS, jax=False, gradient=False)
case("zeros_like", [MATRIX])
case("ones_like", [MATRIX])
case("full_like", [MATRIX], lambda m, x: m.full_like(x, 1))
case("empty_like", [MATRIX], lambda m, x: m.empty_like(x).shape[0], lambda x: np.int64(x.shape[0]))
case("empty", [MATRIX], lambda m, x: m.empty((x.shape[0], 2)).shape[1], lambda x: np.int64(2))
case("fill", [MATRIX, ONE], reference=lambda x, y: np.full_like(x, y, dtype=np.asarray(y).dtype))
case("second", [MATRIX, OTHER], reference=lambda x, y: y.copy())
case("tensor_copy", [MATRIX], reference=np.copy)
case("cast", [MATRIX], lambda m, x: m.cast(x, "complex128"), lambda x: x.astype("complex128"))
case("shape", [MATRIX], reference=lambda x: np.array(x.shape, "int64"))
case("size", [MATRIX], reference=lambda x: np.int64(x.size))

case = Family("grids")
case("alloc", [ONE], lambda m, x: m.alloc(x, 3, 2), lambda x: np.full((3, 2), x), jax=False, sizes=(1,))
LOW, HIGH = arg(make=between(0.5, 1)), arg(make=between(2, 3))
for count_ in (5, 1, 0):
    case(f"linspace:{count_}", [ONE, HIGH], lambda m, x, y, k=count_: m.linspace(x, y, k), sizes=(1,))
case("linspace:open", [ONE, HIGH], lambda m, x, y: m.linspace(x, y, 4, endpoint=False), sizes=(1,))
case("logspace", [ONE, HIGH], lambda m, x, y: m.logspace(x, y, 4), sizes=(1,), tolerance=10, same_dtype=False)
case("geomspace", [LOW, HIGH], lambda m, x, y: m.geomspace(x, y, 4), sizes=(1,), tolerance=10)
case("linspace:arrays", [ROW, HIGH], lambda m, x, y: m.linspace(x, y, 4, axis=-1))
case("meshgrid", [ROW, arg("n+1")], lambda m, x, y: m.meshgrid(x, y))
case("meshgrid:ij", [ROW, arg("n+1")], lambda m, x, y: m.meshgrid(x, y, indexing="ij", sparse=True))
case(
    "complex_from_polar",
    [MATRIX, OTHER],
    reference=lambda r, a: r * np.cos(a) + 1j * r * np.sin(a),
    jax=False,
    same_dtype=False,
)

# Shapes -------------------------------------------------------------------------------------------

case = Family("shaping", dtypes=NUMBERS)
case("reshape", [MATRIX], lambda m, x: m.reshape(x, (x.shape[1], x.shape[0])))
case("reshape:-1", [MATRIX], lambda m, x: m.reshape(x, (-1,)))
case("ravel", [MATRIX])
case(
    "flatten",
    [CUBE],
    lambda m, x: m.flatten(x, 2),
    lambda x: x.reshape(2, x.shape[1] * x.shape[2]),
    jax=False,
)
case("transpose", [CUBE], lambda m, x: m.transpose(x, (1, 2, 0)))
case("transpose:all", [CUBE])
case("dimshuffle", [MATRIX], lambda m, x: m.dimshuffle(x, 1, "x", 0), lambda x: x.T[:, None, :], jax=False)
case("matrix_transpose", [CUBE])
case("swapaxes", [CUBE], lambda m, x: m.swapaxes(x, 0, 2))
case("moveaxis", [CUBE], lambda m, x: m.moveaxis(x, [0, 1], [-1, 0]))
case("expand_dims", [MATRIX], lambda m, x: m.expand_dims(x, (0, 2)))
case("squeeze", [arg("n", 1, "n+1", 1)], lambda m, x: m.squeeze(x, (1, 3)))
case("squeeze:axis", [arg("n", 1, "n+1", 1)], lambda m, x: m.squeeze(x, axis=1))
case(
    "broadcast_to",
    [MATRIX],
    lambda m, x: m.broadcast_to(x, (3, *x.shape)),
    lambda x: np.broadcast_to(x, (3, *x.shape)),
)
case("broadcast_to:ones", [arg("n", 1)], lambda m, x: m.broadcast_to(x, (x.shape[0], 5)))
case("broadcast_arrays", [arg("n", 1), arg(1, "n+1")])
case("atleast_1d", [ONE])
case("atleast_2d", [ONE])
case("atleast_2d:row", [ROW])
case("atleast_3d", [MATRIX], reference=lambda x: x[None], jax=False)  # as in PyTensor
case("atleast_3d:row", [ROW], reference=lambda x: x[None, None], jax=False)
case("shape_padleft", [ROW], lambda m, x: m.shape_padleft(x, 2), lambda x: x[None, None], jax=False)
case("shape_padright", [ROW], lambda m, x: m.shape_padright(x, 2), lambda x: x[:, None, None], jax=False)
case("shape_padaxis", [MATRIX], lambda m, x: m.shape_padaxis(x, 1), lambda x: x[:, None], jax=False)
case(
    "specify_shape", [arg("n", 3)], lambda m, x: m.specify_shape(x, (None, 3)), lambda x: x.copy(), jax=False
)
case(
    "specify_broadcastable",
    [arg("n", 1)],
    lambda m, x: m.specify_broadcastable(x, 1),
    lambda x: x.copy(),
    jax=False,
)
case("unbroadcast", [arg("n", 1)], lambda m, x: m.unbroadcast(x, 1), lambda x: x.copy(), jax=False)

# Joining ------------------------------------------------------------------------------------------

case = Family("joining", dtypes=NUMBERS)
case("concatenate", [MATRIX, arg(3, "n+1")], lambda m, x, y: m.concatenate([x, y, x]))
case("concatenate:axis", [MATRIX, OTHER], lambda m, x, y: m.concatenate([x, y], axis=-1))
case(
    "join",
    [MATRIX, OTHER],
    lambda m, x, y: m.join(1, x, y),
    lambda x, y: np.concatenate([x, y], 1),
    jax=False,
)
case("stack", [MATRIX, OTHER], lambda m, x, y: m.stack([x, y], axis=1))
case("hstack", [MATRIX, OTHER], lambda m, x, y: m.hstack([x, y]))
case("vstack", [MATRIX, OTHER], lambda m, x, y: m.vstack([x, y]))
case("dstack", [MATRIX, OTHER], lambda m, x, y: m.dstack([x, y]))
case("column_stack", [ROW, arg("n", make=between(0, 1))], lambda m, x, y: m.column_stack([x, y]))
case("block", [MATRIX, SQUARE], lambda m, x, y: m.block([[x, y], [y, x]]))
case("split", [arg(5, "n")], lambda m, x: m.split(x, [2, 0, 3], 3), lambda x: np.split(x, [2, 2]), jax=False)

# Order and repetition -----------------------------------------------------------------------------

case = Family("rearranging", dtypes=NUMBERS)
case("tile", [MATRIX], lambda m, x: m.tile(x, (2, 3)))
case("tile:more", [ROW], lambda m, x: m.tile(x, (2, 1, 2)))
case("repeat", [MATRIX], lambda m, x: m.repeat(x, 3, axis=1))
case("repeat:flat", [MATRIX], lambda m, x: m.repeat(x, 2))
case(
    "repeat:counts",
    [arg(3, "n"), arg(3, dtype="int64", make=between(0, 3))],
    lambda m, x, k: m.repeat(x, k, axis=0),
    jax=False,
)
case("roll", [MATRIX], lambda m, x: m.roll(x, 2, axis=1))
case("roll:flat", [MATRIX], lambda m, x: m.roll(x, -3))
case("roll:axes", [MATRIX], lambda m, x: m.roll(x, (1, -1), axis=(0, 1)))
case("flip", [CUBE], lambda m, x: m.flip(x, (0, 2)))
case("flip:all", [CUBE])
case("fliplr", [MATRIX])
case("flipud", [MATRIX])
case("rot90", [CUBE], lambda m, x: m.rot90(x, 3, (1, 2)))
case("diag", [ROW], lambda m, x: m.diag(x, 1))
case("diag:of", [MATRIX], lambda m, x: m.diag(x, -1), sizes=(4, 1))
case("diagonal", [CUBE], lambda m, x: m.diagonal(x, 1, 1, 2), sizes=(4, 1))
case("tril", [CUBE], lambda m, x: m.tril(x, -1))
case("triu", [MATRIX], lambda m, x: m.triu(x, 1))
case("trace", [MATRIX])
case("trace:axes", [CUBE], lambda m, x: m.trace(x, 1, 2, 1), sizes=(4, 1))


def _filled(x: np.ndarray, value: Any) -> np.ndarray:
    x = x.copy()
    np.fill_diagonal(x, value)
    return x


case("fill_diagonal", [MATRIX, ONE], reference=_filled, jax=False, sizes=(4, 1))

# Padding ------------------------------------------------------------------------------------------

case = Family("padding", dtypes=REALS, sizes=(4, 1))
for mode in (
    "constant",
    "edge",
    "reflect",
    "symmetric",
    "wrap",
    "linear_ramp",
    "maximum",
    "minimum",
    "mean",
    "median",
):
    options: dict[str, Any] = {"dtypes": FLOATS} if mode in ("linear_ramp", "mean", "median") else {}
    if mode in ("reflect", "wrap"):
        options["sizes"] = (4,)
    case(
        f"pad:{mode}",
        [CUBE],
        lambda m, x, mode=mode: m.pad(x, ((0, 0), (2, 1), (0, 3)), mode=mode),
        tolerance=4,
        gradient=mode not in ("maximum", "minimum", "median"),
        **options,
    )
case("pad:empty", [MATRIX], lambda m, x: m.pad(x, 2), sizes=(0,))
case("pad:value", [MATRIX], lambda m, x: m.pad(x, (1, 2), constant_values=(3, 4)))

# Flat and several indices -------------------------------------------------------------------------

case = Family("flat indices", dtypes=("int64", "int32", "uint8"), gradient=False, jax=False)
INDEX = arg("n", make=between(0, 2))
case(
    "ravel_multi_index",
    [INDEX, arg("n", make=between(0, 1))],
    lambda m, i, j: m.ravel_multi_index((i, j), (3, 4)),
)
case("unravel_index", [INDEX], lambda m, i: m.unravel_index(i, (2, 4)))
