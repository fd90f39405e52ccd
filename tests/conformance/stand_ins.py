# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What PyTensor's tests set up their runs with: modes, settings, helpers of its test suite."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ContextDecorator
from dataclasses import fields
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import op_calls
import op_classes
import rewrites
import scipy.sparse

import graphc
import graphc.tensor
from graphc.graph.tensor.convert import NotScalarConstantError
from graphc.graph.tensor.type import DTYPES
from graphc.tensor import fourier
from graphc.tensor.vectorizing import parse_signature

_MODES = {"fast_run": "fast_run", "fast_compile": "fast_compile", "debugmode": "debug", "debug_mode": "debug"}


class Mode(str):
    """A mode of PyTensor as one of graphc's: linkers that run op by op in Python are "reference", all others
    "fast_run". Which rewrites a mode includes is PyTensor's own affair.
    """

    def __new__(cls, linker: Any = None, optimizer: Any = "default", *args: Any, **kwargs: Any) -> Mode:
        if isinstance(linker, str) and linker.lower() in _MODES:
            return str.__new__(cls, _MODES[linker.lower()])
        if linker in ("py", "vm_nogc_py"):
            return str.__new__(cls, "reference")
        return str.__new__(cls, "fast_compile" if optimizer == "fast_compile" else "fast_run")

    def _same(self, *args: Any, **kwargs: Any) -> Mode:
        return self

    def including(self, *rewrites: str) -> Mode:
        """PyTensor's op-by-op modes with rewrites of graphs: graphc's passes."""
        return Mode("fast_run") if self == "reference" else self

    excluding = requiring = register = clone = _same
    linker = property(lambda self: self)
    optimizer = property(lambda self: None)
    check_isfinite = True


class DebugMode(Mode):
    """PyTensor's class of that mode, as graphc's debug mode; what it checks is not chosen by arguments."""

    def __new__(cls, *args: Any, **kwargs: Any) -> DebugMode:
        return str.__new__(cls, "debug")


def get_mode(mode: Any = None) -> Mode:
    return mode if isinstance(mode, Mode) else Mode(graphc.config.mode if mode is None else mode)


class Config:
    """PyTensor's settings: those that graphc has are graphc's, the others can be set and have no effect."""

    _defaults = {
        "cxx": "g++",  # tests that need a compiler run
        "linker": "py",
        "optimizer": "fast_run",
        "cast_policy": "custom",
        "blas__ldflags": "",
        "openmp": False,
        "openmp_elemwise_minsize": 200_000,
        "profile": False,
        "profile_memory": False,
        "cycle_detection": "regular",
        "on_opt_error": "raise",
        "vm__lazy": None,
        "scan__allow_output_prealloc": True,
        "compute_test_value": "off",
        "unittests__rseed": "666",  # PyTensor 2 seeds its tests by it
        "warn_float64": "ignore",
        "deterministic": "default",
    }

    def __init__(self) -> None:
        object.__setattr__(self, "_own", dict(self._defaults))

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        if name == "mode":
            return graphc.config.mode.upper()
        if name in _settings():
            return getattr(graphc.config, name)
        return self._own.get(name, "")

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "mode":
            graphc.config.mode = str(get_mode(value))
        elif name in _settings():
            setattr(graphc.config, name, value)
        else:
            self._own[name] = value

    def change_flags(self, *args: Any, **kwargs: Any) -> _Flags:
        return _Flags(self, dict(*args, **kwargs))


class _Flags(ContextDecorator):
    """Settings that are changed for a while, as often as one likes."""

    def __init__(self, config: Config, changes: dict[str, Any]) -> None:
        self._config, self._changes = config, changes
        self._before: list[dict[str, Any]] = []

    def __enter__(self) -> Config:
        self._before.append({name: getattr(self._config, name) for name in self._changes})
        try:
            for name, value in self._changes.items():
                setattr(self._config, name, value)
        except BaseException:
            self.__exit__()
            raise
        return self._config

    def __exit__(self, *error: object) -> None:
        for name, value in self._before.pop().items():
            setattr(self._config, name, value)


def _settings() -> set[str]:
    return {setting.name for setting in fields(graphc.config)}


def _allclose(a: Any, b: Any, rtol: float | None = None, atol: float | None = None) -> bool:
    """Whether arrays are as near to each other as PyTensor's own helpers of tests ask for.

    The coarser dtype of the two decides. A NaN is not near to anything.

    Args:
        a: found or expected values.
        b: the others.
        rtol: relative tolerance instead of the dtype's.
        atol: absolute tolerance instead of the dtype's.
    """
    # PyTensor's products of two sparse matrices are dense.
    a, b = (np.asarray(x.toarray() if scipy.sparse.issparse(x) else x) for x in (a, b))
    dtypes = {a.dtype.name, b.dtype.name}
    tolerances = (1e-5, 1e-8)
    if "float16" in dtypes:
        tolerances = (1e-3, 1e-3)
    elif dtypes & {"float32", "complex64"}:
        tolerances = (1e-5, 1e-5)
    rtol = tolerances[0] if rtol is None else rtol
    atol = tolerances[1] if atol is None else atol
    return bool(np.allclose(a, b, rtol=rtol, atol=atol))


def _debugmode(module: ModuleType) -> None:
    module.str_diagnostic = lambda *args, **kwargs: "\n".join(map(str, args))  # type: ignore[attr-defined]


def function(
    inputs: Any, outputs: Any = None, mode: Any = None, *args: Any, **kwargs: Any
) -> graphc.function.types.Function:
    """``pytensor.function``: linkers may be named as modes."""
    mode = Mode(mode) if isinstance(mode, str) and not isinstance(mode, Mode) else mode
    return graphc.function(inputs, outputs, mode, *args, **kwargs)


def _pfunc(
    params: Any, outputs: Any = None, mode: Any = None, **kwargs: Any
) -> graphc.function.types.Function:
    """The function behind ``pytensor.function`` up to PyTensor 2, whose arguments have other places."""
    return function(params, outputs, mode, **kwargs)


def _advanced_inc(x: Any, y: Any, *index: Any, **kwargs: Any) -> Any:
    return graphc.tensor.inc_subtensor(x[index], y, **kwargs)


def _advanced_set(x: Any, y: Any, *index: Any) -> Any:
    return graphc.tensor.set_subtensor(x[index], y)


class _Cast:
    """A cast that says where PyTensor's ops do what dtype its results have."""

    def __init__(self, dtype: str) -> None:
        self._dtype = dtype
        preference = SimpleNamespace(spec=[SimpleNamespace(dtype=dtype)])
        self.scalar_op = SimpleNamespace(output_types_preference=preference)

    def __call__(self, x: Any) -> Any:
        return graphc.tensor.cast(x, self._dtype)


def _unique(x: Any, *options: bool, axis: int | None = None) -> Any:
    """NumPy's function with the positions of flattened arrays as vectors, as in NumPy 1."""
    found = np.unique(x, *options, axis=axis)
    return (found[0], *map(np.ravel, found[1:])) if isinstance(found, tuple) else found


_config = Config()
# By name, or by full path where a name has several meanings.
NAMES: dict[str, Any] = {
    **op_calls.NAMES,
    **rewrites.NAMES,
    "Mode": Mode,
    "get_mode": get_mode,
    "get_default_mode": get_mode,
    "FAST_RUN": Mode("fast_run"),
    "FAST_COMPILE": Mode("fast_compile"),
    "OPT_FAST_RUN": "fast_run",
    "OPT_FAST_COMPILE": "fast_compile",
    "OPT_NONE": None,
    "config": _config,
    "function": function,
    "pytensor.compile.function.pfunc": _pfunc,
    "pytensor.compile.debugmode.DebugMode": DebugMode,
    "_allclose": _allclose,
    "cpu_contiguous": graphc.tensor.tensor_copy,
    "isnan_": graphc.tensor.isnan,
    "isinf_": graphc.tensor.isinf,
    "make_vector": op_calls.CLASSES["MakeVector"](),
    **dict.fromkeys(("advanced_subtensor", "advanced_subtensor1"), lambda x, *index: x[index]),
    **dict.fromkeys(("advanced_inc_subtensor", "advanced_inc_subtensor1"), _advanced_inc),
    **dict.fromkeys(("advanced_set_subtensor", "advanced_set_subtensor1"), _advanced_set),
    "broadcast_shapes": np.broadcast_shapes,
    **op_classes.NAMES,
    "pytensor.scan.views.filter": graphc.scan.filter,
    "pytensor.tensor.fft.rfft": fourier.rfft,
    "pytensor.tensor.fft.irfft": fourier.irfft,
    **{f"_convert_to_{dtype}": _Cast(dtype) for dtype in DTYPES},
    "NotScalarConstantError": NotScalarConstantError,
    "old_np_unique": _unique,
    "_parse_gufunc_signature": parse_signature,
    "pytensor.scalar.all_types": DTYPES,
    "pytensor.tensor.interpolate.valid_methods": ("linear", "nearest", "first", "last", "mean"),
    "PYTHON_INT_BITWIDTH": 64,
    "LOCAL_BITWIDTH": 64,
}
# Modules that need more than names.
MODULES: dict[str, Callable[[ModuleType], None]] = dict.fromkeys(
    ("pytensor.compile.debug.debugmode", "pytensor.compile.debugmode"), _debugmode
)
