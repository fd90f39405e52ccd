# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Draws that NumPy's generator makes in calls from Python."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from graphc.config import config
from graphc.graph.basic import Apply, Variable
from graphc.graph.op import FieldOp, no_cotangents, no_tangents
from graphc.graph.tensor.convert import as_tensor_variable
from graphc.graph.tensor.type import TensorType, parse_dtype
from graphc.graph.undefined import grad_undefined
from graphc.ops.elementwise import cast_to
from graphc.ops.shape import as_size, known_size, size_of
from graphc.ops.shaping import as_sizes
from graphc.tensor.random.shared import drawn
from graphc.tensor.random.type import as_generator, generator_type
from graphc_runtime.generators import generator_of, state_of

if TYPE_CHECKING:
    from graphc.graph.basic import Maybe, Variables
    from graphc.graph.tensor import DTypeLike
    from graphc.graph.tensor.variable import TensorVariable
    from graphc_runtime.thunk import Register


# Which square root of a covariance matrix the numbers are multiplied with.
Root = Literal["svd", "eigh", "cholesky"]


class PythonDraw(FieldOp):
    """Base: inputs are the generator, sizes and parameters; outputs the generator after and the draws."""

    default_output = 1

    def draw(self, generator: np.random.Generator, inputs: Sequence[np.ndarray]) -> np.ndarray:
        """The draws; inputs are the sizes and the parameters."""
        raise NotImplementedError

    def perform(self, node: Apply, inputs: Sequence[np.ndarray], output_storage: Sequence[Register]) -> None:
        generator = generator_of(inputs[0])
        draws = self.draw(generator, inputs[1:])
        output_storage[0][0] = state_of(generator)
        output_storage[1][0] = np.asarray(draws, dtype=node.outputs[1].type.dtype)

    def connection_pattern(self, node: Apply) -> list[list[bool]]:
        return [[i == 0, False] for i in range(len(node.inputs))]

    pullback, pushforward = no_cotangents, no_tangents


def check_vectors(mean: TensorVariable, cov: TensorVariable) -> None:
    """Raise a ValueError unless these are vectors and matrices, or batches of them."""
    if mean.type.ndim < 1 or cov.type.ndim < 2:
        raise ValueError(
            f"multivariate_normal takes mean vectors and covariance matrices, got {mean.type} and {cov.type}"
        )


class MultivariateNormal(PythonDraw):
    """Normal vectors; inputs are the sizes of the batch, the means (batch of vectors) and the covariances.

    Args:
        method: as in ``numpy.random.Generator.multivariate_normal``.
        dtype: of the draws.
    """

    __props__ = ("method", "dtype")

    def __init__(self, method: Root = "svd", dtype: DTypeLike | None = None) -> None:
        if method not in ("svd", "eigh", "cholesky"):
            raise ValueError(f"the method must be 'svd', 'eigh' or 'cholesky', got {method!r}")
        self.method: Root = method
        self.dtype = parse_dtype(config.floatX if dtype is None else dtype)

    def __call__(  # type: ignore[override]
        self,
        mean: Any,
        cov: Any,
        size: Any = None,
        rng: Any = None,
        name: str | None = None,
        return_next_rng: bool = False,
    ) -> Any:
        """See `graphc.tensor.random.multivariate_normal`."""
        mean, cov = (cast_to(as_tensor_variable(x), "float64") for x in (mean, cov))
        check_vectors(mean, cov)
        batch = max(mean.type.ndim - 1, cov.type.ndim - 2)
        if size is None:
            wide = mean if mean.type.ndim - 1 == batch else cov
            sizes = [size_of(wide, axis) for axis in range(batch)]
        else:
            sizes = as_sizes(size, "multivariate_normal")
        return drawn(self, rng, [*sizes, mean, cov], name, return_next_rng)

    def make_node(self, rng: Variable, *inputs: Any) -> Apply:
        *sizes, mean, cov = inputs
        rng = as_generator(rng)
        sizes = [as_size(x, "multivariate_normal") for x in sizes]
        shape = [*map(known_size, sizes), mean.type.shape[-1]]
        outputs = [generator_type(rng).make_variable(), TensorType(self.dtype, shape).make_variable()]
        return Apply(self, [rng, *sizes, mean, cov], outputs)

    def draw(self, generator: np.random.Generator, inputs: Sequence[np.ndarray]) -> np.ndarray:
        *sizes, mean, cov = inputs
        batch, k = tuple(map(int, sizes)), mean.shape[-1]
        if mean.ndim == 1 and cov.ndim == 2:
            return generator.multivariate_normal(mean, cov, size=batch, method=self.method)
        means, covs = np.broadcast_to(mean, (*batch, k)), np.broadcast_to(cov, (*batch, k, k))
        result = np.empty((*batch, k))
        for i in np.ndindex(batch):
            result[i] = generator.multivariate_normal(means[i], covs[i], method=self.method)
        return result

    def connection_pattern(self, node: Apply) -> list[list[bool]]:
        last = len(node.inputs) - 2
        return [[i == 0, i >= last] for i in range(len(node.inputs))]

    def pullback(self, inputs: Variables, outputs: Variables, cotangents: Maybe) -> list[Variable | None]:
        reason = 'draws have derivatives with method="cholesky"'
        if cotangents[1] is None:
            return [None] * len(inputs)
        terms = [grad_undefined(self, len(inputs) - 2 + i, inputs[i - 2], reason) for i in range(2)]
        return [*[None] * (len(inputs) - 2), *terms]

    def pushforward(self, inputs: Variables, outputs: Variables, tangents: Maybe) -> list[Variable | None]:
        if tangents[-1] is None and tangents[-2] is None:
            return [None, None]
        return super(PythonDraw, self).pushforward(inputs, outputs, tangents)


class ChoiceWithoutReplacement(PythonDraw):
    """Different numbers below the first parameter; inputs are the sizes, this number, and probabilities.

    Args:
        weighted: whether there are probabilities.
    """

    weighted: bool

    def __call__(  # type: ignore[override]
        self,
        count: Any,
        p: Any,
        size: Any,
        rng: Any = None,
        name: str | None = None,
        return_next_rng: bool = False,
    ) -> tuple[TensorVariable, TensorVariable]:
        """See `graphc.tensor.random.choice`."""
        weights = [] if p is None else [cast_to(as_tensor_variable(p), "float64")]
        return drawn(self, rng, [*as_sizes(size, "choice"), count, *weights], name, return_next_rng)

    def make_node(self, rng: Variable, *inputs: Any) -> Apply:
        rng = as_generator(rng)
        rest = 1 + self.weighted
        sizes = [as_size(x, "choice") for x in inputs[: len(inputs) - rest]]
        shape = [known_size(size) for size in sizes]
        outputs = [generator_type(rng).make_variable(), TensorType("int64", shape).make_variable()]
        return Apply(self, [rng, *sizes, *inputs[len(inputs) - rest :]], outputs)

    def draw(self, generator: np.random.Generator, inputs: Sequence[np.ndarray]) -> np.ndarray:
        rest = 1 + self.weighted
        sizes, (count, *weights) = inputs[: len(inputs) - rest], inputs[len(inputs) - rest :]
        p = weights[0] if weights else None
        return generator.choice(int(count), size=tuple(map(int, sizes)), replace=False, p=p)
