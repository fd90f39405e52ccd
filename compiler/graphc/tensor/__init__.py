# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The tensor namespace: ``import graphc.tensor as pt``. Names and arguments follow PyTensor and NumPy.

Elementwise functions and constructors of variables are here from the start. Others are found when they are
first used, in modules that load then, since no program needs all of them.
"""

import sys as _sys
from importlib import import_module as _import_module
from typing import TYPE_CHECKING, Any

from graphc.errors import did_you_mean as _did_you_mean
from graphc.graph.tensor.convert import *  # noqa: F403
from graphc.graph.tensor.type import TensorType as TensorType
from graphc.graph.tensor.variable import TensorConstant as TensorConstant
from graphc.graph.tensor.variable import TensorVariable as TensorVariable
from graphc.hooks import RenamedModule as _RenamedModule
from graphc.ops.math import *  # noqa: F403
from graphc.tensor.compat import *  # noqa: F403
from graphc.tensor.constructors import *  # noqa: F403

if TYPE_CHECKING:
    from graphc.gradient import grad as grad
    from graphc.gradient import hessian as hessian
    from graphc.gradient import jacobian as jacobian
    from graphc.graph.tensor import AnyFunction as _AnyFunction
    from graphc.ops.create import *  # noqa: F403
    from graphc.ops.ifelse import ifelse as ifelse
    from graphc.ops.join import *  # noqa: F403
    from graphc.ops.reduce import *  # noqa: F403
    from graphc.ops.shaping import *  # noqa: F403
    from graphc.tensor import basic as basic
    from graphc.tensor import fft as fft
    from graphc.tensor import fourier as fourier
    from graphc.tensor import linalg as linalg
    from graphc.tensor import math as math
    from graphc.tensor import nlinalg as nlinalg
    from graphc.tensor import nn as nn
    from graphc.tensor import optimize as optimize
    from graphc.tensor import random as random
    from graphc.tensor import signal as signal
    from graphc.tensor import slinalg as slinalg
    from graphc.tensor import special as special
    from graphc.tensor import type as type
    from graphc.tensor import variable as variable
    from graphc.tensor.accumulating import *  # noqa: F403
    from graphc.tensor.arithmetic import *  # noqa: F403
    from graphc.tensor.dims import *  # noqa: F403
    from graphc.tensor.distribution_functions import *  # noqa: F403
    from graphc.tensor.einsums import *  # noqa: F403
    from graphc.tensor.functional import *  # noqa: F403
    from graphc.tensor.index_arrays import *  # noqa: F403
    from graphc.tensor.indexing import *  # noqa: F403
    from graphc.tensor.linalg.products import cross as cross
    from graphc.tensor.linalg.products import kron as kron
    from graphc.tensor.linalg.products import matvec as matvec
    from graphc.tensor.linalg.products import vdot as vdot
    from graphc.tensor.linalg.products import vecdot as vecdot
    from graphc.tensor.linalg.products import vecmat as vecmat
    from graphc.tensor.masks import *  # noqa: F403
    from graphc.tensor.nn.losses import to_one_hot as to_one_hot
    from graphc.tensor.padding import *  # noqa: F403
    from graphc.tensor.polynomials import *  # noqa: F403
    from graphc.tensor.products import *  # noqa: F403
    from graphc.tensor.ranges import *  # noqa: F403
    from graphc.tensor.rearranging import *  # noqa: F403
    from graphc.tensor.reductions import *  # noqa: F403
    from graphc.tensor.sets import *  # noqa: F403
    from graphc.tensor.sorting import *  # noqa: F403
    from graphc.tensor.special import *  # noqa: F403
    from graphc.tensor.splitting import *  # noqa: F403
    from graphc.tensor.statistics import *  # noqa: F403
    from graphc.tensor.vectorizing import *  # noqa: F403

# PyTensor's modules, and those that have their names.
_RENAMED = {
    "basic": "graphc.graph.tensor.convert",
    "math": "graphc.tensor.compat",
    "nlinalg": "graphc.tensor.linalg",
    "slinalg": "graphc.tensor.linalg",
    "type": "graphc.graph.tensor.type",
    "variable": "graphc.graph.tensor.variable",
}
for _name, _target in _RENAMED.items():
    _RenamedModule(f"{__name__}.{_name}", _target)

_NAMESPACES = (*("fft", "fourier", "linalg", "nn", "optimize", "random", "signal", "special"), *_RENAMED)
# Where other names are looked for, in this order: what most graphs need is before what few do.
_MODULES = (
    *("ops.reduce", "tensor.reductions", "ops.shaping", "tensor.indexing", "ops.create", "ops.join"),
    *("tensor.products", "tensor.dims", "tensor.arithmetic", "tensor.ranges", "tensor.special"),
    *("tensor.accumulating", "tensor.sorting", "tensor.rearranging", "tensor.splitting"),
    *("tensor.statistics", "tensor.masks", "tensor.index_arrays", "tensor.einsums", "tensor.vectorizing"),
    *("tensor.functional", "tensor.padding", "tensor.sets", "tensor.polynomials"),
)
_ELSEWHERE = {
    **dict.fromkeys(("cross", "kron", "matvec", "vdot", "vecdot", "vecmat"), "graphc.tensor.linalg.products"),
    **dict.fromkeys(("grad", "jacobian", "hessian"), "graphc.gradient"),
    "ifelse": "graphc.ops.ifelse",
    "to_one_hot": "graphc.tensor.nn.losses",
}


def _found(name: str) -> object:
    if name == "nnet":  # as Theano called it
        name = "nn"
    if name in _NAMESPACES or f"tensor.{name}" in _MODULES:
        return _import_module(f"graphc.tensor.{name}")
    if name in _ELSEWHERE:
        return getattr(_import_module(_ELSEWHERE[name]), name)
    for each in () if name.startswith("_") else _MODULES:
        module = _import_module(f"graphc.{each}")
        if name in module.__all__:
            return getattr(module, name)
    raise AttributeError(f"module 'graphc.tensor' has no attribute {name!r}{_hint(name)}")


def _hint(name: str) -> str:
    """Place of a name that is not here, or the name that it resembles."""
    if name.startswith("_"):
        return ""
    root = _sys.modules["graphc"]
    if name in root.__all__:
        return f"; it is graphc.{name}"
    for each in ("nn", "linalg", "special", "random", "fft", "signal", "optimize"):
        if name in _import_module(f"graphc.tensor.{each}").__all__:
            return f"; it is graphc.tensor.{each}.{name}"
    return _did_you_mean(name, __dir__())


def __getattr__(name: str) -> Any:
    value = _public() if name == "__all__" else _found(name)
    globals()[name] = value
    return value


# What variables call besides the names of this namespace.
_PRIVATE = {
    "__array_ufunc__": ("graphc.tensor.numpy_calls", "symbolic_ufunc"),
    "__array_function__": ("graphc.tensor.numpy_calls", "symbolic_function"),
    "where_sizes": ("graphc.ops.checks", "where_sizes"),
}


class _Functions(dict[str, "_AnyFunction"]):
    """Functions that operators and methods of variables call: the names of this namespace."""

    def __missing__(self, name: str) -> "_AnyFunction":
        found: _AnyFunction
        if name in _PRIVATE:
            found = getattr(_import_module(_PRIVATE[name][0]), _PRIVATE[name][1])
        else:
            found = globals().get(name) or __getattr__(name)
        self[name] = found
        return found


TensorVariable._functions = _Functions()


def __dir__() -> list[str]:
    modules = [_import_module(f"graphc.{each}") for each in _MODULES]
    return sorted(
        {*globals(), *_NAMESPACES, *_ELSEWHERE, *(name for module in modules for name in module.__all__)}
    )


def _public() -> list[str]:
    """The names that ``from graphc.tensor import *`` gives, asked for then: all but those of modules that are
    only where others are kept, or PyTensor's names for them.
    """
    hidden = {*_RENAMED, "compat", "constructors", "distribution_functions", "Any", "TYPE_CHECKING"}
    hidden |= {each.removeprefix("tensor.") for each in _MODULES} - {"special"}
    return [name for name in __dir__() if not name.startswith("_") and name not in hidden]
