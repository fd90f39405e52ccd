# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The compared libraries with one interface: `build(case)` gives the statement to time and what it needs.

No library is imported before it is chosen: the peers live in an environment where graphc is not installed.
"""

from __future__ import annotations

import timeit
from collections.abc import Callable
from functools import partial
from types import SimpleNamespace
from typing import Any

import by_hand
import indexing_lines
import lazy_lines
import linalg_lines
import memory
import nn_lines
import numpy as np
import random_lines
import scan_forms
import scan_lines
import sparse_lines
from cases import Case, deep_graph
from torch_peer import Torch

Timed = tuple[str, dict[str, Any]]
# Those with a column on every line; then those that have only the ten lines of `by_hand`.
NAMES = ("graphc", "pytensor", "jax", "torch", "numpy")
BY_HAND = ("numba", "c")


def _call(count: int, suffix: str = "") -> str:
    return "f(" + ", ".join(f"a{i}" for i in range(count)) + suffix + ")"


def _arguments(case: Case) -> dict[str, Any]:
    return {f"a{i}": value for i, value in enumerate(case.inputs())}


def _eager(case: Case, m: Any, names: dict[str, Any]) -> Timed:
    """The operations themselves, without a compiled function around them."""
    if case.eager == "eager":
        # One operator: a function around it would cost a good part of what is measured.
        return "a0 + a1", names
    return f"asarray({_call(len(names))})", {
        "f": lambda *args: case.expression(m, *args), "asarray": np.asarray, **names,
    }  # fmt: skip


def graphc_environment(kind: str) -> Any:
    """An environment of immediate mode."""
    import graphc

    return graphc.immediate.Environment(lazy=kind == "lazy")


class NotOffered(Exception):
    """This library has no counterpart of the case."""


def _numpy_namespace() -> Any:
    def softmax(x: Any) -> Any:
        e = np.exp(x - x.max(axis=-1, keepdims=True))
        e /= e.sum(axis=-1, keepdims=True)
        return e

    listed = ("exp", "log", "log1p", "abs", "tanh", "dot", "concatenate")
    names = {name: getattr(np, name) for name in listed} | {"gradients": None}
    names |= scan_forms.numpy_forms() | random_lines.numpy_draws()
    names |= nn_lines.numpy_networks() | sparse_lines.numpy_sparse()
    names |= linalg_lines.numpy_matrices() | indexing_lines.numpy_indexing()
    return SimpleNamespace(**names, softmax=softmax, sigmoid=lambda x: 1 / (1 + np.exp(-x)))


class Numpy:
    """NumPy, operation by operation: the reference of every result."""

    def __init__(self) -> None:
        self.m, self.version = _numpy_namespace(), np.__version__

    def build(self, case: Case) -> Timed:
        """The statement and its names."""
        names = _arguments(case)
        if case.wrt:
            raise NotOffered("there are no derivatives")
        if case.out:
            return "np.add(a0, 1, out=o)", {"np": np, "o": np.empty_like(names["a0"]), **names}
        m = self.m
        if case.eager:
            return _eager(case, m, names)
        return _call(len(names)), {"f": lambda *args: case.expression(m, *args), **names}

    forgetful = build

    def first_call(self) -> Any:
        """Nothing to compile."""
        raise NotOffered("nothing is compiled")

    deep = scan_ar1 = scan_rnn = scan_garch = first_call


class _Compiling:
    """The loops whose compilation is timed: compile and call."""

    def build(self, case: Case) -> Timed:
        """The statement and its names."""
        raise NotImplementedError

    def forgetful(self, case: Case) -> Timed:
        """The same, of a function that keeps no memory from call to call, so that a call's can be
        measured.
        """
        return self.build(case)

    def _compile_and_call(self, name: str) -> Any:
        case = next(case for case in scan_lines.CASES if case.name == name)
        return eval(*self.build(case))

    def scan_ar1(self) -> Any:
        """The recurrence."""
        return self._compile_and_call("recurrence")

    def scan_rnn(self) -> Any:
        """The gradient of the recurrent network."""
        return self._compile_and_call("rnn16_gradient")

    def scan_garch(self) -> Any:
        """GARCH's log-likelihood and gradient."""
        return self._compile_and_call("garch")

    def scan_long(self) -> dict[str, Any]:
        """The recurrence over `scan_lines.LONG` steps, whose last value alone is asked for.

        Returns:
            `long`, the best time of three calls, and `memory`, what a call takes.
        """
        case = next(case for case in scan_lines.CASES if case.name == "recurrence_last")
        statement, names = self.build(case)
        eval(statement, names)
        names["a0"] = self.array(np.ones(scan_lines.LONG))
        seconds = min(timeit.repeat(statement, globals=names, number=1, repeat=3))
        return {"long": seconds, "memory": memory.extra(eval(f"lambda: {statement}", names), repeats=1)}

    def array(self, value: Any) -> Any:
        """A large argument in the form that the library takes without a copy."""
        return value


class _Symbolic(_Compiling):
    """What graphc and PyTensor share, as graphc follows PyTensor's interface."""

    def __init__(
        self,
        package: Any,
        tensor: Any,
        function: Callable[..., Any],
        softmax: Any,
        forms: dict[str, Any],
    ) -> None:
        self.package, self.pt, self.function, self.version = package, tensor, function, package.__version__
        listed = ("exp", "log", "log1p", "abs", "tanh", "sigmoid", "dot", "concatenate")
        names = {name: getattr(tensor, name) for name in listed} | forms
        names |= random_lines.symbolic_draws(tensor) | linalg_lines.symbolic_matrices(tensor)
        names |= indexing_lines.symbolic_indexing(tensor) | nn_lines.symbolic_networks(tensor)
        names |= sparse_lines.symbolic_sparse(package.__name__)
        names["gradients"] = lambda f, *xs: package.grad(f(*xs), list(xs))
        self.m = SimpleNamespace(**names, softmax=lambda x: softmax(x, axis=-1))

    def _compiled(self, case: Case) -> tuple[Any, dict[str, Any]]:
        names = _arguments(case)
        variables = [
            self.pt.TensorType(str(v.dtype), case.shape(i, v))() for i, v in enumerate(names.values())
        ]
        if case.form:
            return lazy_lines.SYMBOLIC[case.form](self.package, self.pt, self.function), names
        result = case.expression(self.m, *variables)
        if case.wrt:
            derivatives = self.package.grad(result, [variables[i] for i in case.wrt])
            result = [result, *derivatives] if case.value else derivatives
        return self.function(variables, result, on_unused_input="ignore"), names

    def build(self, case: Case) -> Timed:
        """The statement and its names."""
        if case.out:
            raise NotOffered("there is no out= argument")
        if case.eager:
            raise NotOffered("operations do not run one by one")
        f, names = self._compiled(case)
        return _call(len(names)), {"f": f, **names}

    def first_call(self) -> Any:
        """Compile and call x + 1."""
        x = self.pt.vector("x")
        return self.function([x], x + 1)(np.arange(3.0))

    def deep(self) -> Any:
        """Compile and call the deep graph with its gradient."""
        x = self.pt.vector("x")
        loss = deep_graph(self.m, x)
        return self.function([x], [loss, self.package.grad(loss, x)])(np.linspace(-1, 1, 10))


class Graphc(_Symbolic):
    """The compiler under test."""

    def __init__(self) -> None:
        import graphc
        import graphc.tensor as pt
        from graphc.tensor.special import softmax

        forms = scan_forms.symbolic_forms(graphc, graphc.until, return_updates=False)
        super().__init__(graphc, pt, graphc.function, softmax, forms)

    def build(self, case: Case) -> Timed:
        """The statement and its names."""
        if case.eager:
            environment = graphc_environment(case.eager)
            tensors = {name: environment.numpy_to_tensor(v) for name, v in _arguments(case).items()}
            return _eager(case, environment, tensors)
        self.function = partial(self.package.function, memory_budget=case.budget or None)
        f, names = self._compiled(case)
        suffix = ""
        if case.out:
            names["o"], suffix = np.empty_like(names["a0"]), ", out=o"
        return _call(len(_arguments(case)), suffix), {"f": f, **names}

    def forgetful(self, case: Case) -> Timed:
        """The statement and its names, without a workspace that waits for the next call."""
        with self.package.config.change_flags(workspace_limit_mb=0):
            return self.build(case)


class Pytensor(_Symbolic):
    """PyTensor 3 with its numba backend and trusted inputs, the fastest call it offers."""

    def __init__(self) -> None:
        import pytensor
        import pytensor.tensor as pt
        from pytensor.scan.utils import until
        from pytensor.tensor.special import softmax

        def function(inputs: Any, outputs: Any, **options: Any) -> Any:
            return pytensor.function(inputs, outputs, mode="NUMBA", trust_input=True, **options)

        forms = scan_forms.symbolic_forms(pytensor, until, return_updates=False)
        super().__init__(pytensor, pt, function, softmax, forms)


class Jax(_Compiling):
    """jax.jit on the CPU in double precision, NumPy arrays in and out."""

    def __init__(self) -> None:
        import jax

        jax.config.update("jax_platforms", "cpu")
        jax.config.update("jax_enable_x64", True)
        import jax.numpy as jnp

        self.jax, self.version = jax, jax.__version__
        listed = ("exp", "log", "log1p", "abs", "tanh", "dot", "concatenate")
        names = {name: getattr(jnp, name) for name in listed} | scan_forms.jax_forms()
        names |= nn_lines.jax_networks() | sparse_lines.jax_sparse()
        names |= random_lines.jax_draws() | linalg_lines.jax_matrices() | indexing_lines.jax_indexing()
        names["gradients"] = lambda f, *xs: jax.grad(f, argnums=tuple(range(len(xs))))(*xs)
        self.m = SimpleNamespace(**names, softmax=jax.nn.softmax, sigmoid=jax.nn.sigmoid)

    def build(self, case: Case) -> Timed:
        """The statement and its names; `np.asarray` waits for the result and does not copy it."""
        if case.out:
            raise NotOffered("there is no out= argument")
        names = _arguments(case)
        if case.eager:
            return _eager(case, self.m, {name: self.array(value) for name, value in names.items()})
        f = self._function(case)
        if case.series is not None:
            # Parameters and data of a model stay in its arrays, which spares it their copies in every call.
            names = {name: self.array(value) for name, value in names.items()}
        if case.wrt:
            leaves = self.jax.tree.leaves
            return f"[asarray(v) for v in leaves({_call(len(names))})]", {
                "f": f, "asarray": np.asarray, "leaves": leaves, **names,
            }  # fmt: skip
        return f"asarray({_call(len(names))})", {"f": f, "asarray": np.asarray, **names}

    def array(self, value: Any) -> Any:
        """An array of JAX."""
        return self.jax.block_until_ready(self.jax.numpy.asarray(value))

    def _function(self, case: Case) -> Any:
        m, jax = self.m, self.jax
        if case.name == "mask":
            raise NotOffered("sizes of results cannot depend on values")
        if case.form:
            if case.form not in lazy_lines.JAX:
                raise NotOffered("functions have no state")
            return lazy_lines.JAX[case.form](jax)

        def f(*args: Any) -> Any:
            return case.expression(m, *args)

        if not case.wrt:
            return jax.jit(f)
        return jax.jit((jax.value_and_grad if case.value else jax.grad)(f, argnums=case.wrt))

    def first_call(self) -> Any:
        """Compile and call x + 1."""
        return np.asarray(self.jax.jit(lambda x: x + 1)(np.arange(3.0)))

    def deep(self) -> Any:
        """Compile and call the deep graph with its gradient."""
        f = self.jax.jit(self.jax.value_and_grad(lambda x: deep_graph(self.m, x)))
        return [np.asarray(v) for v in f(np.linspace(-1, 1, 10))]


def load(name: str) -> Any:
    """The library of that name; ImportError when it is not installed."""
    made = {"graphc": Graphc, "pytensor": Pytensor, "jax": Jax, "torch": Torch, "numpy": Numpy}
    return (made | {"numba": by_hand.Numba, "c": by_hand.C})[name]()
