# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""PyMC models for nutpie: chains call machine code of graphc, without the interpreter's lock.

Source: nutpie's own backends (``nutpie.compile_pymc``).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from nutpie import compile_pymc
from pymc.initial_point import make_initial_point_fn

import graphc.interop.pytensor  # noqa: F401
from graphc.function.c_entry import CEntry, density_entry, values_entry

if TYPE_CHECKING:
    from pymc import Model


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
    model: Model, *, var_names: Iterable[str] | None = None, mode: str = "GRAPHC"
) -> CompiledModel:
    """Compiles a model for nutpie, as ``nutpie.compile_pymc_model(model)`` does with numba.

    Args:
        model: a PyMC model with continuous free variables.
        var_names: which variables are kept; all by default.
        mode: ``"GRAPHC"`` or ``"GRAPHC_REWRITTEN"``.

    Returns:
        What ``nutpie.sample`` takes.

    Raises:
        TypeError: a part of the model runs in Python; the message names the ops.
    """
    # As nutpie's other backends begin: without jitter the first steps tell little of the scales.
    start = compile_pymc._wrap_with_lock(
        make_initial_point_fn(
            model=model,
            overrides=None,
            default_strategy="support_point",
            jitter_rvs=set(model.free_RVs),
            return_transformed=True,
        )
    )
    # Newer versions of nutpie also say which variables are sampled on another scale.
    n_dim, n_expanded, logp, expand, initial, shapes, *renamed = compile_pymc._make_functions(
        model,
        mode=mode,
        compute_grad=True,
        join_expanded=True,
        pymc_initial_point_fn=start,
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


def _entries(logp: Any, expand: Any, n_dim: int, data: dict[str, np.ndarray]) -> tuple[CEntry, CEntry]:
    """The C functions of PyTensor's compiled functions, with these values of shared variables."""
    x = np.zeros(n_dim)
    return (
        density_entry(logp.vm.jit_fn, x, *(data[variable.name] for variable in logp.get_shared())),
        values_entry(expand.vm.jit_fn, x, *(data[variable.name] for variable in expand.get_shared())),
    )
