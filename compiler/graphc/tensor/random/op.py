# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""``RandomVariable``: draws from a distribution."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from graphc.config import config
from graphc.errors import VectorizeError
from graphc.graph.basic import Apply, Constant, Flags, Maybe, Variable, Variables, describe
from graphc.graph.op import Op
from graphc.graph.tensor.convert import as_tensor_variable, constant, operand
from graphc.graph.tensor.type import TensorType, parse_dtype
from graphc.ops.elementwise import broadcast_static, cast_to
from graphc.ops.shape import as_size, checked_size, size_of
from graphc.ops.shaping import as_sizes, dimshuffle
from graphc.tensor.random.distributions import DISTRIBUTIONS, MOST_PARAMETERS, Distribution
from graphc.tensor.random.expressions import Constraint, Traced
from graphc.tensor.random.native import draw_native
from graphc.tensor.random.pathwise import pullback, pushforward
from graphc.tensor.random.shared import drawn
from graphc.tensor.random.type import as_generator, generator_type
from graphc_runtime import npyrandom

if TYPE_CHECKING:
    from graphc.emit.emitter import Emitter
    from graphc.graph.tensor import DTypeLike, SizeLike, TensorLike
    from graphc.graph.tensor.variable import TensorVariable
    from graphc.tensor.random.distributions import Parameter
    from graphc_runtime.thunk import Register

_T = TypeVar("_T")

# Dtypes that integers are drawn in; all others are cast from the default.
_WIDTHS = {f"{kind}{bits}": bits for bits in (64, 32, 16, 8) for kind in ("int", "uint")}


@cache
def obstacle(name: str) -> str | None:
    """Reason for which a native distribution cannot be drawn by compiled code; None if it can.

    Args:
        name: a key of the tables of `graphc.library.random`.
    """
    from graphc.library.random import draws, registers, vectors

    draw = draws.DRAWS.get(name) or vectors.VECTORS[name]
    reason = npyrandom.obstacle(*draw.symbols, *registers.TABLES.get(name, ()))
    return None if reason is None else f"NumPy's C functions for random draws cannot be used: {reason}"


class RandomVariable(Op):
    """Draws from a distribution, and the state of the generator after them.

    Inputs of a node: the generator, the sizes of the draws (0-d int64), the parameters, which have as many
    dimensions as the batch of draws. Outputs: the generator after the draws, the draws. They are made one
    after the other in row-major order, from the stream of numbers of NumPy's generator.

    Args:
        distribution: a key of `DISTRIBUTIONS`.
        dtype: of the draws; ``config.floatX`` or int64 by default.

    Source: PyTensor's ``RandomVariable``.

    Examples:
        >>> rng = pt.random.shared_rng(seed=3)
        >>> pt.random.RandomVariable("normal")(0.0, 1.0, size=2, rng=rng).eval().shape
        (2,)
    """

    takes_as_stored = False

    __props__ = ("distribution", "dtype")
    default_output = 1

    def __init__(self, distribution: str, dtype: DTypeLike | None = None) -> None:
        self.distribution = distribution
        base = DISTRIBUTIONS[distribution].dtype
        self.dtype = parse_dtype((config.floatX if base == "float64" else base) if dtype is None else dtype)
        if np.dtype(self.dtype).kind not in ("f" if base == "float64" else "fiu"):
            raise TypeError(f"draws of {distribution} cannot have dtype {self.dtype}")
        if distribution == "integers" and self.dtype not in _WIDTHS:
            raise TypeError(f"integers have one of the dtypes {', '.join(_WIDTHS)}, got {self.dtype}")

    @property
    def name(self) -> str:
        """The name of the distribution."""
        return self.distribution

    @property
    def row(self) -> Distribution:
        """Known properties of the distribution."""
        return DISTRIBUTIONS[self.distribution]

    @property
    def native(self) -> tuple[str, str]:
        """The distribution that is drawn, and the dtype of its parameters and draws."""
        if self.distribution == "integers":
            width = _WIDTHS[self.dtype]
            return f"integers_{width}", f"int{width}"
        if self.row.has_float32 and self.dtype == "float32":
            return f"{self.distribution}_f32", "float32"
        return self.distribution, self.row.dtype

    # -- building --------------------------------------------------------------------------------------------

    def __call__(  # type: ignore[override]
        self,
        *parameters: Any,
        size: Any = None,
        rng: Any = None,
        dtype: Any = None,
        name: str | None = None,
        return_next_rng: bool = False,
    ) -> Any:
        """Draws.

        Args:
            parameters: array-likes, which broadcast against each other.
            size: shape of the batch of draws, with which the parameters broadcast; that of the parameters by
                default.
            rng: the generator; by default a new one, seeded by the system and updated by each call.
            dtype: of the draws.
            name: of the draws.
            return_next_rng: return the generator after the draws, too.

        Returns:
            The draws, or ``(next_rng, draws)``.

        Raises:
            TypeError: ``rng`` is no generator, or a parameter is of the wrong kind.
            ValueError: the wrong number of parameters, or shapes that do not fit.
        """
        op = self if dtype is None else type(self)(self.distribution, dtype)
        sizes, inputs = op._prepare(parameters, size)
        if op.row.support:
            sizes.append(size_of(inputs[-1], inputs[-1].type.ndim - 1))
        return drawn(op, rng, [*sizes, *inputs], name, return_next_rng)

    def _prepare(
        self, parameters: Sequence[TensorLike], size: SizeLike
    ) -> tuple[list[TensorVariable], list[TensorVariable]]:
        """Sizes of the batch, and the parameters with as many dimensions."""
        row = self.row
        if len(parameters) != len(row.parameters):
            names = ", ".join(p.name for p in row.parameters) or "none"
            raise ValueError(f"{self.distribution} has the parameters {names}, got {len(parameters)} of them")
        inputs = [self._converted(p, x) for p, x in zip(row.parameters, parameters, strict=True)]
        ndims = [x.type.ndim - p.core for p, x in zip(row.parameters, inputs, strict=True)]
        sizes = None if size is None else as_sizes(size, self.distribution)
        batch = max(ndims, default=0) if sizes is None else len(sizes)
        for p, x, ndim in zip(row.parameters, inputs, ndims, strict=True):
            if ndim > batch:
                raise ValueError(
                    f"{self.distribution}: the parameter {p.name} is {x} of {x.type}, which has more "
                    f"dimensions than size={size} allows"
                )
        inputs = [_with_ndim(x, batch - ndim) for x, ndim in zip(inputs, ndims, strict=True)]
        if sizes is None:
            sizes = self._sizes_of(inputs, batch)
        return sizes, inputs

    def _converted(self, parameter: Parameter, x: TensorLike) -> TensorVariable:
        what = f"{self.distribution}: the parameter {parameter.name} must be"
        x = operand(x, f"{what} a vector, or have one in its last dimension", parameter.core)
        dtype = self.native[1] if self.row.has_float32 else parameter.dtype
        kinds = "biu" if np.dtype(dtype).kind == "i" else "biuf"
        noun = "an integer" if dtype == "int64" else "a real number"
        return cast_to(operand(x, f"{what} {noun}", kinds=kinds, error=TypeError), dtype)

    def _sizes_of(self, inputs: Sequence[TensorVariable], batch: int) -> list[TensorVariable]:
        """The sizes that the parameters have together: what is known, else that of the first to have it."""
        shapes = [x.type.shape[:batch] for x in inputs]
        static = broadcast_static(shapes, self.distribution, inputs) if inputs else ()
        sizes = []
        for axis, known in enumerate(static):
            wide = next((x for x in inputs if x.type.shape[axis] != 1), inputs[0])
            source = next((x for x in inputs if known is not None and x.type.shape[axis] == known), wide)
            sizes.append(size_of(source, axis))
        return sizes

    def make_node(self, rng: Variable, *inputs: Any) -> Apply:
        """The node on prepared inputs: the generator, the sizes, the parameters."""
        row = self.row
        rng = as_generator(rng)
        count = len(inputs) - len(row.parameters)
        sizes = [as_size(x, self.distribution) for x in inputs[:count]]
        parameters = [as_tensor_variable(x) for x in inputs[count:]]
        known = [checked_size(size) for size in sizes]
        if any(size is not None and size < 0 for size in known):
            raise ValueError(f"{self.distribution}: a size must be at least 0, got {known}")
        batch = known[: count - row.support]
        for p, x in zip(row.parameters, parameters, strict=True):
            if x.type.ndim != len(batch) + p.core:
                raise ValueError(
                    f"{self.distribution}: {p.name} has {x.type.ndim} dimensions, not {len(batch)}"
                )
            for axis, (have, want) in enumerate(zip(x.type.shape, batch, strict=False)):
                if have not in (1, None, want) and want is not None:
                    raise ValueError(
                        f"{self.distribution}: the parameter {p.name} is {x} of {x.type}, whose size in "
                        f"dimension {axis} is not that of the draws, {want}"
                    )
        outputs = [generator_type(rng).make_variable(), TensorType(self.dtype, known).make_variable()]
        return Apply(self, [rng, *sizes, *parameters], outputs)

    def split(self, inputs: Sequence[_T]) -> tuple[_T, list[_T], list[_T]]:
        """The generator, the sizes and the parameters among the inputs of a node."""
        count = len(inputs) - len(self.row.parameters)
        return inputs[0], list(inputs[1:count]), list(inputs[count:])

    # -- running ---------------------------------------------------------------------------------------------

    def perform(self, node: Apply, inputs: Sequence[np.ndarray], output_storage: Sequence[Register]) -> None:
        state, sizes, parameters = self.split(inputs)
        shape = [int(size) for size in sizes]
        if any(size < 0 for size in shape):
            raise ValueError(f"{self.distribution}: a size must be at least 0, got {shape}")
        _, _, variables = self.split(node.inputs)
        for p, x, v in zip(self.row.parameters, parameters, variables, strict=True):
            for axis in range(v.type.ndim - p.core):
                if v.type.shape[axis] != 1 and x.shape[axis] != shape[axis]:
                    raise ValueError(
                        f"{self.distribution}: the parameter {p.name} has size {x.shape[axis]} in dimension "
                        f"{axis}, the draws have {shape[axis]}{describe(node.location)}"
                    )
        for p, x in zip(self.row.parameters, parameters, strict=True):
            if p.core and not x.shape[-1]:
                raise ValueError(f"{self.distribution}: the parameter {p.name} has no elements")
        for constraint in self._constraints():
            if not constraint.holds(parameters):
                raise ValueError(f"{self.distribution}: {constraint.message}")
        # Without a sign, as NumPy refuses a negative zero.
        given = [x + 0 for x in self._arguments(parameters)]
        with np.errstate(all="ignore"):
            draws, after = draw_native(self.native[0], state, given, shape)
        output_storage[0][0] = after
        output_storage[1][0] = draws.astype(self.dtype)

    def _constraints(self) -> list[Constraint]:
        if self.distribution != "integers" or self.dtype in ("int64", "uint64"):
            return list(self.row.constraints)
        limits = np.iinfo(self.dtype)
        low, high = int(limits.min), int(limits.max) + 1
        return [
            *self.row.constraints,
            Constraint(f"low is out of bounds for {self.dtype}", bad=lambda a, b: a < low),
            Constraint(f"high is out of bounds for {self.dtype}", bad=lambda a, b: b > high),
        ]

    def _arguments(self, parameters: Sequence[Any]) -> list[Any]:
        """Arguments of the native draw."""
        given = self.row.arguments(*parameters) if self.row.arguments else parameters
        if self.distribution != "integers":
            return list(given)
        dtype = self.native[1]
        return [x.astype(dtype) for x in given]

    @property
    def body_obstacle(self) -> str | None:
        """Reason for which draws cannot be compiled here: NumPy's library is missing, or is none for
        this process.
        """
        return obstacle(self.native[0])

    def emit(self, node: Apply, operands: Sequence[str], e: Emitter) -> list[str]:
        row = self.row
        rng, sizes, parameters = self.split(operands)
        _, size_variables, variables = self.split(node.inputs)
        indices = [e.index(v, x) for v, x in zip(size_variables, sizes, strict=True)]
        self._check_sizes(indices, parameters, variables, e)
        traced = [
            Traced(e, x, v.type.dtype, v.type.shape) for x, v in zip(parameters, variables, strict=True)
        ]
        literals = [v.data for v in variables if isinstance(v, Constant)]
        is_known = len(literals) == len(variables)
        for constraint in self._constraints():
            if not (is_known and constraint.holds(literals)):
                constraint.emit(traced, e, self.distribution)
        given = self._arguments(traced)
        name, dtype = self.native
        draws = e.tensor_type(dtype, node.outputs[1].type.shape)
        state = e.type_of(node.inputs[0])
        cores = ", ".join(str(p.core) for p in row.parameters)
        present = [int(i < len(given)) for i in range(MOST_PARAMETERS)]
        segments = ", ".join(map(str, [1, *present, len(indices)]))
        attributes = (
            f'distribution = "{name}", cores = array<i64{": " + cores if cores else ""}>, '
            f"support = {row.support} : i64, operandSegmentSizes = array<i32: {segments}>"
        )
        types = [state, *(x.type for x in given), *["index"] * len(indices)]
        names = [rng, *(x.name for x in given), *indices]
        found, after = e.ops("graphc.random", names, types, [draws, state], attributes)
        wanted = e.type_of(node.outputs[1])
        if wanted != draws:
            found = e.op("graphc.cast", [found], [draws], wanted)
        return [after, found]

    def _check_sizes(
        self, indices: Sequence[str], parameters: Sequence[str], variables: Sequence[Variable], e: Emitter
    ) -> None:
        zero = e.const_index(0)
        for index in indices:
            message = f"{self.distribution}: a size must be at least 0, but is {{given}}"
            e.check(e.compare("sge", index, zero), index, zero, message)
        for p, x, v in zip(self.row.parameters, parameters, variables, strict=True):
            if p.core:
                length = e.dim_of(v, x, v.type.ndim - 1)
                message = f"{self.distribution}: the parameter {p.name} has no elements"
                e.check(e.compare("sgt", length, zero), length, zero, message)
                if self.row.support and length != indices[-1]:
                    message = (
                        f"{self.distribution}: {p.name} has {{given}} elements, the draws have {{expected}}"
                    )
                    e.check(e.compare("eq", length, indices[-1]), length, indices[-1], message)
            for axis in range(v.type.ndim - p.core):
                if v.type.shape[axis] == 1:
                    continue
                have = e.dim_of(v, x, axis)
                if have != indices[axis]:
                    message = (
                        f"{self.distribution}: the parameter {p.name} has size {{given}} in dimension "
                        f"{axis}, the draws have {{expected}}"
                    )
                    e.check(e.compare("eq", have, indices[axis]), have, indices[axis], message)

    # -- derivatives and batches -----------------------------------------------------------------------------

    def connection_pattern(self, node: Apply) -> list[list[bool]]:
        count = len(node.inputs) - len(self.row.parameters)
        is_smooth = np.dtype(self.dtype).kind == "f" and self.row.dtype == "float64"
        return [[i == 0, i >= count and is_smooth] for i in range(len(node.inputs))]

    def pullback(self, inputs: Variables, outputs: Variables, cotangents: Maybe) -> list[Variable | None]:
        return pullback(self, inputs, outputs, cotangents)

    def pushforward(self, inputs: Variables, outputs: Variables, tangents: Maybe) -> list[Variable | None]:
        return pushforward(self, inputs, outputs, tangents)

    def batch(self, node: Apply, inputs: Variables, batched: Flags, size: SizeLike) -> list[Variable]:
        """One draw for each element of the batch, all from one generator, in order."""
        rng, sizes, parameters = self.split(inputs)
        _, sized, flags = self.split(batched)
        if batched[0] or any(sized):
            raise VectorizeError(f"{self} cannot take a batch of generators or of sizes")
        wide = [
            x if b else dimshuffle(x, ("x", *range(x.type.ndim)))
            for x, b in zip(parameters, flags, strict=True)
        ]
        return list(self.make_node(rng, size, *sizes, *wide).outputs)


def _with_ndim(x: TensorVariable, missing: int) -> TensorVariable:
    """A parameter with leading axes of size 1."""
    if isinstance(x, Constant) and missing:
        return constant(x.data.reshape((1,) * missing + x.data.shape))
    return dimshuffle(x, (*("x",) * missing, *range(x.type.ndim))) if missing else x


__all__ = ["RandomVariable"]
