# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""PyMC models for nutpie: chains call machine code of graphc, without the interpreter's lock.

Ops that graphc does not know run in Python, with the lock, as nutpie's numba backend runs them.

Source: nutpie's own backends (``nutpie.compile_pymc``).
"""

from __future__ import annotations

import ctypes
import traceback
import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields, replace
from functools import wraps
from typing import TYPE_CHECKING, Any

import numpy as np

try:
    import nutpie
    from nutpie import compile_pymc
    from pymc.initial_point import make_initial_point_fn
    from pytensor import config
    from pytensor.compile.mode import Mode, get_mode
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(
        f"graphc.interop.nutpie needs nutpie and PyMC, and {error.name} is not installed: "
        "pip install 'graphc[nutpie]'"
    ) from error

from graphc.function.c_entry import CEntry, density_entry, values_entry
from graphc.interop.pytensor import GraphcLinker

if TYPE_CHECKING:
    from pymc import Model
    from pytensor.tensor.variable import TensorVariable


class _Linker(GraphcLinker):
    """Values of ``pm.Data`` are arguments, so that `CompiledModel.with_data` can give others."""

    finds_shared = False


# Its base is one, which a record cannot have.
@dataclass(frozen=True)
class CompiledModel(compile_pymc.CompiledPyMCModel):
    """A model for ``nutpie.sample``; ``with_data(name=value)`` exchanges the values of ``pm.Data``."""

    def with_data(self, **updates: object) -> CompiledModel:
        """The model with other data of the same ranks; nothing is compiled again."""
        data = dict(self.shared_data)
        for name, value in updates.items():
            if name not in data:
                raise KeyError(f"the model has no data named {name!r}, only {', '.join(data) or 'none'}")
            new = np.array(value, dtype=data[name].dtype, order="C")
            if new.ndim != data[name].ndim:
                raise ValueError(f"{name} has {data[name].ndim} axes, given an array of {new.ndim}")
            data[name] = new
        logp, expand = _entries(self.logp_func, self.expand_func, self._n_dim, data)
        changes: dict[str, object] = {
            "shared_data": data,
            "compiled_logp_func": logp,
            "compiled_expand_func": expand,
        }
        return replace(self, **changes)

    def _make_model(self, init_mean: object) -> Any:
        library = compile_pymc._lib
        logp, expand = self.compiled_logp_func, self.compiled_expand_func
        names, shapes = self.shape_info[0], self.shape_info[2]
        coords = dict(self._coords or {})
        sizes = {name: len(values) for name, values in coords.items()}
        variables = library.PyVariable.new_variables(
            names, ["float64"] * len(names), shapes, sizes, dict(self.dims or {})
        )
        options = self._transform_adapt_args or {}

        def make_adapter(*args: object, **kwargs: object) -> Any:
            from nutpie.transform_adapter import make_transform_adapter

            return make_transform_adapter(**options)(*args, **kwargs, logp_fn=None)

        return library.PyMcModel(
            library.LogpFunc(logp.address, logp.user, self),
            library.ExpandFunc(self.n_dim, self.n_expanded, expand.address, expand.user, self),
            variables,
            self.n_dim,
            sizes,
            coords,
            self.initial_point_func,
            make_adapter,
        )


def compile_pymc_model(
    model: Model,
    *,
    var_names: Iterable[str] | None = None,
    mode: str = "GRAPHC",
    initial_points: Mapping[Any, Any] | None = None,
    jitter_rvs: Iterable[TensorVariable] | None = None,
    default_initialization_strategy: str = "support_point",
    freeze_model: bool = False,
) -> CompiledModel:
    """Compiles a model for nutpie, as ``nutpie.compile_pymc_model(model)`` does with numba.

    Where a part of the model runs in Python a UserWarning names the ops, and each call takes Python's lock.

    Args:
        model: a PyMC model with continuous free variables.
        var_names: which variables are kept; all by default.
        mode: ``"GRAPHC"`` or ``"GRAPHC_REWRITTEN"``.
        initial_points: values, or strategies, of variables where chains begin.
        jitter_rvs: variables whose initial values get noise; all by default.
        default_initialization_strategy: ``"support_point"`` or ``"prior"``.
        freeze_model: make data and sizes constants.

    Returns:
        What ``nutpie.sample`` takes.
    """
    if freeze_model:
        from pymc.model.transform.optimization import freeze_dims_and_data

        model = freeze_dims_and_data(model)
    if jitter_rvs is None and default_initialization_strategy == "support_point":
        # As nutpie's other backends begin: without jitter the first steps tell little of the scales.
        jitter_rvs = model.free_RVs
    # PyTensor would compile its virtual machine in C++, for a function that each chain calls once.
    with config.change_flags(cxx=""):
        start = make_initial_point_fn(
            model=model,
            overrides=initial_points,
            default_strategy=default_initialization_strategy,
            jitter_rvs=None if jitter_rvs is None else set(jitter_rvs),
            return_transformed=True,
        )
    # Newer versions of nutpie also say which variables are sampled on another scale.
    n_dim, n_expanded, logp, expand, initial, shapes, *renamed = compile_pymc._make_functions(
        model,
        mode=Mode(_Linker(), get_mode(mode).provided_optimizer),
        compute_grad=True,
        join_expanded=True,
        pymc_initial_point_fn=compile_pymc._wrap_with_lock(start),
        var_names=var_names,
    )
    data = {
        variable.name: np.array(variable.get_value(), order="C")
        for variable in (*logp.get_shared(), *expand.get_shared())
    }
    c_logp, c_expand = _entries(logp, expand, n_dim, data)
    dims, coords = compile_pymc._prepare_dims_and_coords(model, shapes, *renamed)
    known = {field.name for field in fields(CompiledModel)}
    newer: dict[str, object] = {"shared_var_keys": {}, "reparameterized_names": next(iter(renamed), [])}
    return CompiledModel(
        **{name: value for name, value in newer.items() if name in known},
        _n_dim=n_dim,
        dims=dims,
        _coords=coords,
        _shapes={name: tuple(shape) for name, _, shape in zip(*shapes, strict=True)},
        compiled_logp_func=c_logp,
        compiled_expand_func=c_expand,
        initial_point_func=initial,
        shared_data=data,
        user_data=None,
        n_expanded=n_expanded,
        shape_info=shapes,
        logp_func=logp,
        expand_func=expand,
    )


def register_backend() -> None:
    """Makes ``"graphc"`` a backend of ``nutpie.compile_pymc_model``, and so of ``pm.sample``.

    nutpie has a fixed list of backends: its function is exchanged for one that hands other backends on to it.
    A second call does nothing.
    """
    theirs = nutpie.compile_pymc_model
    if hasattr(theirs, "_before_graphc"):
        return

    @wraps(theirs)
    def compile_pymc_model_with_graphc(model: Model, *, backend: str | None = "numba", **options: Any) -> Any:
        if not isinstance(backend, str) or backend.lower() != "graphc":
            return theirs(model, backend=backend, **options)
        gradient = options.pop("gradient_backend", None)
        if gradient not in (None, "pytensor"):
            raise ValueError(f'the gradient of backend "graphc" is PyTensor\'s, got {gradient!r}')
        return compile_pymc_model(model, **{**options, "freeze_model": bool(options.get("freeze_model"))})

    vars(compile_pymc_model_with_graphc)["_before_graphc"] = theirs
    nutpie.compile_pymc_model = compile_pymc_model_with_graphc


class _PythonEntry:
    """Stands for a `CEntry` where a part of the graph runs in Python.

    Args:
        function: of PyTensor's graph.
        fixed: values of its arguments but the first one.
        is_density: returns a value and a gradient, not values alone.

    Attributes:
        address, user: as those of `CEntry`.
    """

    user = 0
    _told = False

    def __init__(self, function: Callable[..., Any], fixed: list[np.ndarray], is_density: bool) -> None:
        def array(address: int, size: int) -> np.ndarray:
            return np.ctypeslib.as_array((ctypes.c_double * size).from_address(address))

        def density(dim: int, x: int, gradient: int, value: int, user: int | None) -> int:
            values = function(array(x, dim).copy(), *fixed)
            array(value, 1)[0], array(gradient, dim)[:] = values
            if not np.isfinite(values[0]):
                return 4
            return 0 if np.isfinite(values[1]).all() else 3

        def expanded(dim: int, count: int, x: int, result: int, user: int | None) -> int:
            (array(result, count)[:],) = function(array(x, dim).copy(), *fixed)
            return 0

        def call(*args: Any) -> int:
            try:
                return (density if is_density else expanded)(*args)
            except (ValueError, ArithmeticError, AssertionError, np.linalg.LinAlgError):
                return 1
            except (
                Exception
            ):  # a bug of an op: sampling ends, and this is all that says why, once for all chains
                if not self._told:
                    self._told = True
                    traceback.print_exc()
                return -1

        pointers = [ctypes.c_void_p] * (4 if is_density else 3)
        kind = ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_uint64] * (5 - len(pointers)), *pointers)
        self._call = kind(call)
        self.address: int = ctypes.cast(self._call, ctypes.c_void_p).value or 0


def _entries(
    logp: Any, expand: Any, n_dim: int, data: dict[str, np.ndarray]
) -> tuple[CEntry | _PythonEntry, CEntry | _PythonEntry]:
    """The C functions of PyTensor's compiled functions, with these values of shared variables."""
    x = np.zeros(n_dim)
    found: list[CEntry | _PythonEntry] = []
    for made, entry in ((logp, density_entry), (expand, values_entry)):
        function, fixed = made.vm.jit_fn, [data[variable.name] for variable in made.get_shared()]
        fallbacks = function.report.fallbacks
        if fallbacks:
            names = ", ".join(dict.fromkeys(fallback.op for fallback in fallbacks))
            warnings.warn(
                f"a part of the model runs in Python, where chains wait for each other: {names}", stacklevel=3
            )
            found.append(_PythonEntry(function, fixed, entry is density_entry))
        else:
            found.append(entry(function, x, *fixed))
    return found[0], found[1]
