# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Classes of PyTensor's ops under whose names tests build graphs: graphc's functions and classes for them.

A test that calls ``Cholesky(lower=False)(x)`` is about the factor, not about the class: the call becomes a
call of graphc's function. ``isinstance(op, Cholesky)`` asks for graphc's class of op.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse
from absent import absent, use
from scipy import stats

import graphc.sparse as sparse
import graphc.tensor as pt
from graphc.gradient.verify import _STEPS, numeric_grad
from graphc.ops.factors import Cholesky
from graphc.ops.kernel import KernelOp
from graphc.ops.matrix_functions import Inv
from graphc.ops.sparse import CsrProduct
from graphc.ops.spectral import SVD
from graphc.tensor import linalg
from graphc.tensor.random import RandomVariable


class OpClass(type):
    """Metaclass of the stand-in of a class of ops."""

    build: Callable[..., Any]
    ours: tuple[type, ...]

    def __call__(cls, *args: Any, **parameters: Any) -> Any:
        if "build" not in vars(cls):  # a test's own subclass
            use(f"pytensor.tensor.{cls.__mro__[1].__name__}")
            return absent(f"pytensor.tensor.{cls.__name__}()")
        return cls.build(*args, **parameters)

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, cls.ours)


def _class(name: str, build: Callable[..., Any], *ours: type) -> OpClass:
    """A stand-in.

    Args:
        name: of PyTensor's class.
        build: takes the parameters of the op, returns what is called on its inputs.
        ours: graphc's classes of ops for it.
    """
    return OpClass(name, (), {"build": staticmethod(build), "ours": ours})


def _sparse_from_dense(format: str) -> Any:
    return {"csr": sparse.csr_from_dense, "csc": sparse.csc_from_dense}[format]


def _stack(join: Any, format: Any = None, dtype: Any = None) -> Any:
    return lambda *blocks: join(list(blocks), format=format, dtype=dtype)


def _shape_of_draws(draw: Callable[..., Any]) -> Callable[..., Any]:
    def infer(size: Any, parameters: Any, param_shapes: Any = None) -> tuple[Any, ...]:
        return tuple(draw(*parameters, size=size).shape)

    return infer


# The samplers that tests compare draws with: PyTensor's ops call SciPy and NumPy in these ways.
SAMPLERS: dict[str, Callable[..., Any]] = {
    "invgamma": lambda rng, shape, scale, size: 1 / rng.gamma(shape, 1 / scale, size),
    "truncexpon": lambda rng, b, loc, scale, size: _draw(stats.truncexpon, rng, size, b, loc, scale),
    "t": lambda rng, df, loc, scale, size: _draw(stats.t, rng, size, df, loc, scale),
    "bernoulli": lambda rng, p, size: _draw(stats.bernoulli, rng, size, p),
    "nbinom": lambda rng, n, p, size: _draw(stats.nbinom, rng, size, n, p),
    "betabinom": lambda rng, n, a, b, size: _draw(stats.betabinom, rng, size, n, a, b),
    "gengamma": lambda rng, a, p, scale, size: _draw(stats.gengamma, rng, size, a / p, p, 0, scale),
    "multinomial": lambda rng, n, p, size: rng.multinomial(n, p, size=size),
    "dirichlet": lambda rng, alphas, size: _rows_of_dirichlet(rng, alphas, size),
}


def _draw(distribution: Any, rng: Any, size: Any, *parameters: Any) -> Any:
    shape = np.broadcast_shapes(*map(np.shape, parameters)) if size is None else tuple(size)
    return np.broadcast_to(distribution.rvs(*parameters, size=size, random_state=rng), shape)


def _rows_of_dirichlet(rng: Any, alphas: Any, size: Any) -> Any:
    rows = np.broadcast_to(alphas, (*(np.shape(alphas)[:-1] if size is None else size), alphas.shape[-1]))
    return np.apply_along_axis(rng.dirichlet, -1, rows)


def _gamma(shape: Any, scale: Any, **options: Any) -> Any:
    return pt.random.gamma(shape, scale=scale, **options)


_gamma.__name__ = "gamma"


def _random_variable(name: str, *_: Any, dtype: Any = None, **options: Any) -> RandomVariable:
    """PyTensor's constructor: ``(name, ndim_supp, ndims_params, dtype, inplace, signature)``."""
    return RandomVariable(name, _[2] if len(_) > 2 else dtype)


def _size_param(op: RandomVariable, node: Any) -> list[Any]:
    sizes = op.split(node.inputs)[1]
    return sizes[: len(sizes) - op.row.support]


def add_attributes() -> None:
    """What tests read from PyTensor's ops and find in graphc's under another name."""
    numeric_grad.type_eps = _STEPS  # type: ignore[attr-defined]
    KernelOp.core_op = property(lambda op: op)  # type: ignore[attr-defined]
    KernelOp.gufunc_signature = property(lambda op: op._text())  # type: ignore[attr-defined]
    # How PyTensor's nodes of draws are read: the batch's sizes and the parameters.
    RandomVariable.size_param = _size_param  # type: ignore[attr-defined]
    RandomVariable.dist_params = lambda op, node: op.split(node.inputs)[2]  # type: ignore[attr-defined]
    for name in ("normal", "dirichlet"):
        draw = getattr(pt.random, name)
        draw._infer_shape = _shape_of_draws(draw)
    for name, sampler in SAMPLERS.items():
        getattr(pt.random, name).rng_fn = sampler


# Those that SciPy's matrices have; bool is none of PyTensor's.
_DTYPES = ["float32", "float64", "complex64", "complex128"]
_DTYPES += [f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)]
_SPARSE = {
    "cast": sparse.cast,
    "SparseFromDense": _class("SparseFromDense", _sparse_from_dense),
    "DenseFromSparse": _class(
        "DenseFromSparse", lambda structured=True: partial(sparse.dense_from_sparse, structured=structured)
    ),
    "Remove0": _class("Remove0", lambda inplace=False: sparse.remove0),
    "Cast": _class("Cast", lambda out_type: partial(sparse.cast, dtype=out_type)),
    "HStack": _class("HStack", partial(_stack, sparse.hstack)),
    "VStack": _class("VStack", partial(_stack, sparse.vstack)),
    "SpSum": _class(
        "SpSum",
        lambda axis=None, sparse_grad=True: partial(sparse.sp_sum, axis=axis, sparse_grad=sparse_grad),
    ),
    "AddSSData": _class("AddSSData", lambda: sparse.add_s_s_data),
    "CSMProperties": _class("CSMProperties", lambda: sparse.csm_properties),
    "GetItemList": _class("GetItemList", lambda: sparse.get_item_list),
    "GetItem2Lists": _class("GetItem2Lists", lambda: sparse.get_item_2lists),
    "Dot": _class("Dot", lambda: sparse.dot),
    "StructuredDot": _class("StructuredDot", lambda: sparse.structured_dot, CsrProduct),
    "_is_sparse": scipy.sparse.issparse,
    "_is_sparse_variable": lambda x: isinstance(x.type, sparse.SparseTensorType),
    "_is_dense_variable": lambda x: isinstance(x.type, pt.TensorType),
    "_is_dense": lambda x: isinstance(x, np.ndarray),
    "all_dtypes": _DTYPES,
    "float_dtypes": [name for name in _DTYPES if name.startswith("float")],
    "complex_dtypes": [name for name in _DTYPES if name.startswith("complex")],
    "integer_dtypes": [name for name in _DTYPES if "int" in name],
    "discrete_dtypes": [name for name in _DTYPES if "int" in name],
    "_mtypes": [scipy.sparse.csc_matrix, scipy.sparse.csr_matrix],
    "_mtype_to_str": {scipy.sparse.csc_matrix: "csc", scipy.sparse.csr_matrix: "csr"},
}
# By full path.
NAMES: dict[str, Any] = {
    "pytensor.tensor.linalg.Cholesky": _class("Cholesky", partial(partial, linalg.cholesky), Cholesky),
    "pytensor.tensor.linalg.MatrixInverse": _class("MatrixInverse", lambda: linalg.inv, Inv),
    "pytensor.tensor.linalg.SVD": _class("SVD", partial(partial, linalg.svd), SVD),
    "pytensor.scalar.upcast": lambda *dtypes: str(np.result_type(*dtypes)),
    "pytensor.tensor.type.DenseTensorType": pt.TensorType,
    # Ops that only graphs before optimisation hold.
    **{
        f"pytensor.gradient.{name}": _class(name, dict) for name in ("GradClip", "GradScale", "UndefinedGrad")
    },
    "pytensor.tensor.random.basic._gamma": _gamma,
    "pytensor.tensor.random.op.RandomVariable": _class("RandomVariable", _random_variable, RandomVariable),
    "pytensor.tensor.random.basic.NormalRV": _class("NormalRV", lambda: pt.random.normal, RandomVariable),
    **{
        f"pytensor.sparse{module}.{name}": value
        for module in ("", ".basic", ".math")
        for name, value in _SPARSE.items()
    },
}
