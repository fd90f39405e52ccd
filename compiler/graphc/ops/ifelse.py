# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""``IfElse``: one of two values, of which only the chosen one is computed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar, overload

import numpy as np

from graphc.emit.conditionals import emit_choice
from graphc.errors import VectorizeError
from graphc.graph.basic import Apply, Constant, Flags, Maybe, Variable, Variables, capture, describe
from graphc.graph.op import Op
from graphc.graph.pytree import flatten
from graphc.graph.tensor.convert import as_tensor_variable
from graphc.graph.tensor.type import TensorType
from graphc.graph.undefined import is_discrete as has_no_derivative
from graphc.ops.derivatives import match_dtype, zeros_like
from graphc.ops.elementwise import _resolve, to_dtype, weak_operands
from graphc.ops.math import ne, switch
from graphc.ops.shaping import dimshuffle, repeat
from graphc_runtime.conditional import ConditionalThunk

if TYPE_CHECKING:
    from graphc.emit.emitter import Emitter
    from graphc.graph.tensor import TensorLike
    from graphc.graph.tensor.variable import TensorVariable
    from graphc.graph.type import Type
    from graphc_runtime.thunk import Flag, Register

_V = TypeVar("_V", bound=Variable)


class IfElse(Op):
    """Chooses between two lists of values.

    Inputs are a 0-d bool, the values if it holds, and as many values otherwise; the outputs are the chosen
    ones. What only one side needs is its branch; `graphc.graph.demand` finds it.

    Args:
        n: number of values to choose.
        as_view: accepted for compatibility: results never share memory with values that somebody else reads.
        name: shown by `graphc.dprint`.

    Source: PyTensor's and Theano's ``IfElse``.
    """

    __props__ = ("n",)
    # The mark that `graphc.graph.demand` looks for.
    conditional = True

    def __init__(self, n: int = 1, as_view: bool = False, name: str | None = None) -> None:
        if n < 1:
            raise ValueError(f"IfElse chooses at least one value, got n = {n}")
        self.n = n
        self.name = name
        self.view_map = {k: [1 + k, 1 + n + k] for k in range(n)}

    def make_node(self, condition: TensorLike, *values: TensorLike) -> Apply:
        if len(values) != 2 * self.n:
            raise ValueError(
                f"{self} takes a condition and {self.n} values for each side, got {len(values)} values"
            )
        pairs = [_aligned(k, values[k], values[self.n + k]) for k in range(self.n)]
        inputs = [_condition(condition), *(a for a, _, _ in pairs), *(b for _, b, _ in pairs)]
        return Apply(self, inputs, [type_.make_variable() for _, _, type_ in pairs])

    def perform(self, node: Apply, inputs: Sequence[np.ndarray], output_storage: Sequence[Register]) -> None:
        start = 1 if inputs[0] else 1 + self.n
        for k, cell in enumerate(output_storage):
            cell[0] = inputs[start + k]

    def connection_pattern(self, node: Apply) -> list[list[bool]]:
        # As of all comparisons the derivative by a condition is zero, not undefined.
        return [[True] * self.n] + [[i == k for k in range(self.n)] for i in range(self.n)] * 2

    def make_thunk(
        self,
        node: Apply,
        input_computed: Sequence[Flag],
        output_computed: Sequence[Flag],
        input_registers: Sequence[Register],
        output_registers: Sequence[Register],
    ) -> ConditionalThunk:
        """A lazy thunk: asks for the condition, then for the values of the chosen side."""
        return ConditionalThunk(input_computed, output_computed, input_registers, output_registers)

    # -- derivatives -----------------------------------------------------------------------------------------

    def pullback(self, inputs: Variables, outputs: Variables, cotangents: Maybe) -> list[Variable | None]:
        """Both sides with zeros where the other one is chosen.

        Gradients of graphs do not call this: `graphc.gradient.branches` differentiates only what is chosen.
        """
        terms: list[Variable | None] = [None] * len(inputs)
        for k, (y, g) in enumerate(zip(outputs, cotangents, strict=True)):
            if g is not None and not has_no_derivative(y):
                i, j = 1 + k, 1 + self.n + k
                terms[i] = select(inputs[0], g, zeros_like(inputs[i]))
                terms[j] = select(inputs[0], zeros_like(inputs[j]), g)
        return terms

    def pushforward(self, inputs: Variables, outputs: Variables, tangents: Maybe) -> list[Variable | None]:
        result: list[Variable | None] = []
        for k in range(self.n):
            places = (1 + k, 1 + self.n + k)
            if all(tangents[i] is None for i in places):
                result.append(None)
                continue
            sides = (
                zeros_like(inputs[i]) if t is None else match_dtype(inputs[i], t)
                for i, t in ((i, tangents[i]) for i in places)
            )
            result.append(select(inputs[0], *sides))
        return result

    # -- batching and compilation ----------------------------------------------------------------------------

    def batch(self, node: Apply, inputs: Variables, batched: Flags, size: TensorVariable) -> list[Variable]:
        """With one condition, the choice between batches; with a batch of conditions, `switch`."""
        if not batched[0]:
            return self._batch_values(node, inputs, batched, size)
        result: list[Variable] = []
        for k in range(self.n):
            a, b = (node.inputs[i].type for i in (1 + k, 1 + self.n + k))
            if not isinstance(a, TensorType) or not isinstance(b, TensorType):
                raise VectorizeError(f"{self} cannot take a batch of conditions for values of type {a}")
            if any(m != n for m, n in zip(a.shape, b.shape, strict=True) if m is not None and n is not None):
                raise VectorizeError(
                    f"{self} cannot take a batch of conditions, as its sides have the shapes {a.shape} and "
                    f"{b.shape}"
                )
            condition = dimshuffle(inputs[0], (0, *("x",) * a.ndim))
            result.append(switch(condition, inputs[1 + k], inputs[1 + self.n + k]))
        return result

    def _batch_values(
        self, node: Apply, inputs: Variables, batched: Flags, size: TensorVariable
    ) -> list[Variable]:
        values = list(inputs[1:])
        for k in range(self.n):
            places = (k, self.n + k)
            if any(batched[1 + i] for i in places):
                for i in places:
                    values[i] = values[i] if batched[1 + i] else repeat(values[i], size)
        return IfElse(self.n, name=self.name).make_node(inputs[0], *values).outputs

    def emit(self, node: Apply, operands: Sequence[str], e: Emitter) -> list[str]:
        """The choice alone, between values that exist; `graphc.emit.conditionals` emits the branches, too."""
        return emit_choice(node, operands, e)

    def __str__(self) -> str:
        label = "IfElse" if self.n == 1 else f"IfElse{{{self.n}}}"
        return label if self.name is None else f"{label}[{self.name}]"


def select(condition: Variable, a: Variable, b: Variable) -> Variable:
    """``a`` if the 0-d bool holds, else ``b``; no node where they are the same."""
    return a if a is b else IfElse(1).make_node(condition, a, b).outputs[0]


@overload
def ifelse(condition: TensorLike, then_branch: _V, else_branch: _V, name: str | None = None) -> _V: ...
@overload
def ifelse(condition: TensorLike, then_branch: Any, else_branch: Any, name: str | None = None) -> Any: ...
def ifelse(condition: TensorLike, then_branch: Any, else_branch: Any, name: str | None = None) -> Any:
    """``then_branch`` if the condition is nonzero, else ``else_branch``; only the chosen one is computed.

    The two may differ in shape, but not in the number of dimensions. Dtypes are promoted as those of `switch`
    are, which, in contrast, chooses element by element and computes both.

    Args:
        condition: a scalar (0-d) of any dtype. A Python number, or another constant, chooses now.
        then_branch: a variable or array-like, or lists, tuples and dicts of them, nested as you like; or a
            function without arguments that returns one of these.
        else_branch: the same, of the same form.
        name: a name for the results.

    Returns:
        A variable, or variables in the containers of ``then_branch``.

    Raises:
        TypeError: the condition is no scalar; the branches differ in form, number of dimensions, or kind.

    Source: PyTensor's ``ifelse``.

    Examples:
        >>> c, x = pt.scalar("c"), pt.vector("x")
        >>> f = graphc.function([c, x], graphc.ifelse(c > 0, x.sum(), x.max()))
        >>> float(f(1.0, [1.0, 4.0])), float(f(-1.0, [1.0, 4.0]))
        (5.0, 4.0)
    """
    chosen = _known(condition)
    if chosen is not None:
        value, other = (then_branch, else_branch) if chosen else (else_branch, then_branch)
        if _is_function(other):
            # A function that is not called may be one that would never end, of a recursion.
            return _map(as_variable, _built(value))
    a, b = _built(then_branch), _built(else_branch)
    if isinstance(a, list | tuple) and isinstance(b, list | tuple) and not hasattr(a, "_fields"):
        b = type(a)(b)
    (thens, form), (elses, other_form) = flatten(a), flatten(b)
    if form != other_form:
        raise TypeError(
            f"the branches of ifelse{describe(capture())} must have the same form, got {form} and "
            f"{other_form}, where * is a value"
        )
    if not thens:
        return a
    node = IfElse(len(thens), name=name).make_node(
        np.bool_(True) if chosen is not None else condition, *thens, *elses
    )
    outputs = node.outputs
    if chosen is not None:
        start = 1 if chosen else 1 + len(thens)
        outputs = node.inputs[start : start + len(thens)]
    elif name is not None:
        for k, output in enumerate(outputs):
            output.name = name if len(outputs) == 1 else f"{name}_{k}"
    return form.build(outputs)


def as_variable(x: TensorLike) -> Variable:
    """``x`` as a variable of any type."""
    return x if isinstance(x, Variable) else as_tensor_variable(x)


def _is_function(x: object) -> bool:
    return callable(x) and not isinstance(x, Variable)


def _built(branch: Any) -> Any:
    return branch() if _is_function(branch) else branch


def _map(function: Callable[[Any], Any], tree: TensorVariable) -> TensorVariable:
    leaves, form = flatten(tree)
    return form.build([function(leaf) for leaf in leaves])


def _known(condition: Any) -> bool | None:
    """The truth of a condition that is known when the graph is built."""
    if isinstance(condition, Constant):
        condition = condition.data
    if (
        isinstance(condition, Variable | Apply)
        or np.ndim(condition)
        or np.asarray(condition).dtype.kind == "O"
    ):
        return None
    return bool(condition)


def _condition(condition: TensorLike) -> Variable:
    """A condition as a 0-d bool."""
    found = as_tensor_variable(condition)
    if found.type.ndim:
        raise TypeError(
            f"the condition of ifelse{describe(capture())} must be a scalar (0-d), got {found} of type "
            f"{found.type}{describe(found.location)}; reduce it with .all() or .any(), or use switch to "
            "choose element by element"
        )
    return found if found.type.dtype == "bool" else ne(found, 0)


def _aligned(k: int, a: Any, b: Any) -> tuple[Variable, Variable, Type]:
    """The values of the two sides, and the type of the result."""
    if isinstance(a, Variable) and isinstance(b, Variable) and a.type == b.type:
        return a, b, a.type
    if any(isinstance(x, Variable) and not isinstance(x.type, TensorType) for x in (a, b)):
        return _aligned_values(k, a, b)
    operands = weak_operands([a, b])
    types = [x.type.numpy_dtype if isinstance(x, Variable) else type(x) for x in operands]
    dtypes = _resolve("switch", (np.dtype("bool"), *types))
    a, b = (to_dtype(x, dtype) for x, dtype in zip(operands, dtypes[1:], strict=False))
    if a.type.ndim != b.type.ndim:
        which = next((x for x in (a, b) if x.type.ndim == 0), None)
        hint = (
            "; make the scalar as large as the other one, for example with full_like"
            if which is not None
            else ""
        )
        raise TypeError(
            f"the branches of ifelse{describe(capture())} must have equal numbers of dimensions; value {k} "
            f"is {a} of type {a.type} and {b} of type {b.type}{hint}"
        )
    shape = [m if m == n else None for m, n in zip(a.type.shape, b.type.shape, strict=True)]
    return a, b, TensorType(dtypes[-1], shape)


def _aligned_values(k: int, a: Any, b: Any) -> tuple[Variable, Variable, Type]:
    """As `_aligned`, where one is of another kind than a tensor."""
    wanted = a.type if isinstance(a, Variable) else b.type
    try:
        if isinstance(b, Variable) and b.type.is_super(wanted):
            wanted = b.type
        return wanted.filter_variable(a), wanted.filter_variable(b), wanted
    except TypeError as error:
        raise TypeError(
            f"the branches of ifelse{describe(capture())} must be of one type; value {k} is {a} of type "
            f"{getattr(a, 'type', type(a).__name__)} and {b} of type {getattr(b, 'type', type(b).__name__)}: "
            f"{error}"
        ) from None


__all__ = ["IfElse", "ifelse", "select"]
