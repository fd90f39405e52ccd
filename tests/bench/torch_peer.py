# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""torch.compile (Inductor) on the CPU in double precision, NumPy arrays in and out.

Tensors share the memory of NumPy's arrays, so that going from one to the other costs a fraction of a
microsecond. Loops over time have no counterpart: Inductor unrolls them.
"""

from __future__ import annotations

from types import FunctionType, SimpleNamespace
from typing import Any

import linalg_lines
import numpy as np
from cases import Case, deep_graph


class Torch:
    """Functions that `torch.compile` has made."""

    def __init__(self) -> None:
        import torch

        self.torch, self.version = torch, torch.__version__
        self.m = SimpleNamespace(**_namespace(torch))

    def build(self, case: Case) -> tuple[str, dict[str, Any]]:
        """The statement and its names."""
        from libraries import NotOffered

        if case.out:
            raise NotOffered("there is no out= argument")
        if case.form:
            raise NotOffered("conditionals are a prototype, and functions have no state")
        if case.series is not None and case.series:
            raise NotOffered("loops over time are unrolled")
        torch, m = self.torch, self.m
        arguments = case.inputs()
        count = len(arguments)
        names = {f"a{i}": value for i, value in enumerate(arguments)}
        call = ", ".join(names)
        if case.eager:
            tensors = {name: torch.from_numpy(value) for name, value in names.items()}
            if case.eager == "eager":
                return "a0 + a1", tensors
            return f"f({call}).numpy()", {"f": lambda *args: case.expression(m, *args), **tensors}
        f = torch.compile(_of_its_own(lambda *args: case.expression(m, *args)))
        if case.wrt:
            if case.series is not None:
                # Parameters and data of a model stay in its tensors.
                names = {name: torch.from_numpy(value) for name, value in names.items()}
            return f"g({call})", {"g": self._with_gradient(f, case), **names}
        given = ", ".join(f"t(a{i})" for i in range(count))
        return f"f({given}).numpy()", {"f": f, "t": torch.from_numpy, **names}

    forgetful = build

    def _with_gradient(self, f: Any, case: Case) -> Any:
        torch = self.torch

        def g(*args: Any) -> Any:
            tensors = [torch.from_numpy(a) if isinstance(a, np.ndarray) else a.detach() for a in args]
            leaves = [tensors[i].requires_grad_() for i in case.wrt]
            value = f(*tensors)
            found = [v.numpy() for v in torch.autograd.grad(value, leaves)]
            return [value.detach().numpy(), *found] if case.value else found

        return g

    def first_call(self) -> Any:
        """Compile and call x + 1."""
        return self.torch.compile(lambda x: x + 1)(self.torch.arange(3.0, dtype=self.torch.float64)).numpy()

    def deep(self) -> Any:
        """Compile and call the deep graph with its gradient."""
        f = self.torch.compile(lambda x: deep_graph(self.m, x))
        x = self.torch.linspace(-1, 1, 10, dtype=self.torch.float64).requires_grad_()
        loss = f(x)
        return loss.detach().numpy(), self.torch.autograd.grad(loss, x)[0].numpy()


def _of_its_own(f: Any) -> Any:
    """The function with a code object of its own: what is compiled of one is looked up in turns."""
    return FunctionType(f.__code__.replace(), f.__globals__, f.__name__, None, f.__closure__)


def _namespace(torch: Any) -> dict[str, Any]:
    """What the workloads call, in torch's terms."""

    def gradients(f: Any, *xs: Any) -> Any:
        return torch.func.grad(f, argnums=tuple(range(len(xs))))(*xs)

    def scatter_add(x: Any, i: Any, y: Any) -> Any:
        return x.index_add(0, i, y)

    names = {name: getattr(torch, name) for name in ("exp", "log", "log1p", "abs", "tanh", "sigmoid")}
    names |= {"dot": torch.matmul, "matmul": torch.matmul, "concatenate": torch.cat, "gradients": gradients}
    names |= {name: getattr(torch, name) for name in ("argmax", "argsort", "searchsorted", "einsum")}
    return names | {
        "softmax": lambda x: torch.softmax(x, -1),
        "cumsum": lambda x: torch.cumsum(x, 0),
        "sort": lambda x: torch.sort(x).values,
        # torch.median is the lower of the two in the middle.
        "median": lambda x: torch.quantile(x, 0.5),
        "scatter_add": scatter_add,
        "normals": lambda seed, n: torch.randn(n, dtype=torch.float64),
        "conv2d": torch.nn.functional.conv2d,
        "rfft": torch.fft.rfft,
        "cholesky": torch.linalg.cholesky,
        "solve": torch.linalg.solve,
        "sparse_product": _no_sparse,
        "sparse_transposed_product": _no_sparse,
        **linalg_lines.decompositions(torch.linalg),
    }


def _no_sparse(*args: Any) -> Any:
    from libraries import NotOffered

    raise NotOffered("sparse matrices are not compiled")
