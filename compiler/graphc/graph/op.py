# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""``Op``: an operation, apart from what it is applied to."""

from __future__ import annotations

import copy
from collections.abc import Callable, Hashable, Sequence
from functools import reduce
from inspect import get_annotations
from operator import add
from typing import TYPE_CHECKING, Any, ClassVar, dataclass_transform

from graphc.config import config
from graphc.errors import TestValueError, UndefinedGradientError
from graphc.graph.basic import Apply, Maybe, Variable, Variables, capture, missing_test_value
from graphc.graph.thunks import Cells, perform_node, perform_thunk
from graphc.graph.type import Type, as_type
from graphc_runtime.record import record

if TYPE_CHECKING:
    from graphc_runtime.thunk import Flag, Register, Thunk


def in_float32(operands: Sequence[Any]) -> list[Any]:
    """Operands, those of bfloat16 in float32, which has all their values."""
    return [x.astype("float32") if getattr(x, "dtype", None) == "bfloat16" else x for x in operands]


def is_rounded(operands: Sequence[Any]) -> bool:
    """True if what is computed in float32 of these operands is rounded to bfloat16: none has more digits."""
    dtypes = {str(getattr(x, "dtype", None)) for x in operands}
    return "bfloat16" in dtypes and not dtypes & {"float16", "float32"}


class Op:
    """Base of all operations.

    A subclass defines `make_node` (or ``itypes`` and ``otypes``) and `perform`. If it also has
    ``emit(node, operands, e)`` it compiles to native code, otherwise compiled functions call `perform`.

    Attributes:
        __props__: names of the attributes that identify an instance. Two ops of one class with equal props
            are equal and interchangeable; without ``__props__`` an op equals only itself.
        default_output: index of the output that a call returns when the node has several; None returns all.
        view_map: output index to list of inputs it may alias. destroy_map: the same for inputs that `perform`
            overwrites; `graphc.graph.function_graph` says what graphs such ops make.
        itypes, otypes: types of inputs and outputs, for ops whose `make_node` has nothing to compute.

    Examples:
        >>> isinstance(pt.exp(pt.vector("x")).owner.op, graphc.Op)
        True
    """

    __props__: ClassVar[tuple[str, ...] | None] = None
    default_output: int | None = None
    view_map: dict[int, list[int]] = {}
    destroy_map: dict[int, list[int]] = {}
    # Whether `perform` calls code of users, though it is one of graphc's: see `graphc.graph.contract`.
    calls_user_code = False
    itypes: Sequence[Type | Variable | Callable[[], Variable]] | None = None
    otypes: Sequence[Type | Variable | Callable[[], Variable]] | None = None

    # Whether bfloat16 is taken as it is: by what only moves elements, and by users' ops. Others compute in
    # float32.
    takes_as_stored: bool = True
    # Whether the result has the dtype of the first operand, which the others are put into.
    is_update: ClassVar[bool] = False

    # Positions of the inputs on whose elements outputs depend, None for all of them.
    depends_on: ClassVar[tuple[int, ...] | None] = None

    # Whether derivatives exist of functions of all outputs together: tangents of one are not computed alone.
    together: ClassVar[bool] = False

    # How many of the first inputs the output takes its elements from, wherever they lie in it; other inputs
    # only say which. What does so commutes with functions of elements.
    selects: int = 0

    # What an operation may do besides, None where it does not: `emit(node, operands, e)` compiles it,
    # `batch(node, inputs, batched, size)` applies it to a batch, `inline_on(inputs)` says what it stands for.
    emit: Callable[..., list[str]] | None = None
    batch: Callable[..., list[Variable]] | None = None
    inline_on: Callable[..., list[Variable]] | None = None

    if TYPE_CHECKING:
        # Operations with a graph inside have these (and `isinstance` or `hasattr` says which ops do).
        inner_inputs: list[Variable]
        inner_outputs: list[Variable]

    def known(self, node: Apply) -> str:
        """Facts about the data of large constants that code depends on, as attributes of the operation."""
        return ""

    def make_node(self, *inputs: Any) -> Apply:
        """Check the inputs and build the node; the default uses ``itypes`` and ``otypes``."""
        if self.itypes is None or self.otypes is None:
            raise NotImplementedError(f"{type(self).__name__} must define make_node, or itypes and otypes")
        if len(inputs) != len(self.itypes):
            raise ValueError(f"{self} takes {len(self.itypes)} inputs, got {len(inputs)}")
        variables = [as_type(t).filter_variable(x) for t, x in zip(self.itypes, inputs, strict=True)]
        return Apply(self, variables, [as_type(otype).make_variable() for otype in self.otypes])

    def __call__(
        self, *inputs: Any, name: str | None = None, return_list: bool = False, **kwargs: Any
    ) -> Any:
        """Apply the op.

        Args:
            inputs: what `make_node` takes.
            name: name of the output that is returned, or first part of the names of several.
            return_list: return a list even for a single output.
            kwargs: passed to `make_node`.

        Returns:
            The output variable, or a list of them when there are several and no ``default_output``.
        """
        if not self.takes_as_stored and any(getattr(x, "dtype", None) == "bfloat16" for x in inputs):
            return self._in_float32(inputs, name=name, return_list=return_list, **kwargs)
        node = self.make_node(*inputs, **kwargs)
        if not isinstance(node, Apply):
            raise TypeError(
                f"make_node of {self} must return Apply(self, inputs, outputs), got {node!r} of type "
                f"{type(node).__name__}"
            )
        if not self.takes_as_stored and any(getattr(v, "dtype", None) == "bfloat16" for v in node.outputs):
            raise TypeError(f"{self} computes in float32: cast its result to bfloat16")
        if not type(self).__module__.startswith("graphc."):
            # The line that applies a user's op, rather than one of its make_node.
            node.location = capture()
        outputs = node.outputs
        if name is not None:
            if len(outputs) == 1 or self.default_output is not None:
                outputs[self.default_output or 0].name = name
            else:
                for i, output in enumerate(outputs):
                    output.name = f"{name}_{i}"
        if self.default_output is not None:
            chosen = outputs[self.default_output]
            return [chosen] if return_list else chosen
        return outputs[0] if len(outputs) == 1 and not return_list else list(outputs)

    def _in_float32(self, inputs: Sequence[Any], **kwargs: Any) -> Any:
        """The op of operands of which some are bfloat16: computed in float32, and rounded unless another
        operand has more digits.
        """
        found = self(*in_float32(inputs), **kwargs)
        if not is_rounded(inputs[:1] if self.is_update else inputs):
            return found

        def rounded(y: Any) -> Any:
            return y.astype("bfloat16") if getattr(y, "dtype", None) == "float32" else y

        return [rounded(y) for y in found] if isinstance(found, list) else rounded(found)

    def perform(self, node: Apply, inputs: Sequence[Any], output_storage: Sequence[Register]) -> None:
        """Compute the outputs in Python.

        Args:
            node: the application that is run.
            inputs: values of ``node.inputs``. Those in ``destroy_map`` may be changed, others refuse it:
                arrays are views that cannot be written.
            output_storage: one cell for each output, a list of length one to put the value into. A value
                that shares memory with an input that neither ``view_map`` nor ``destroy_map`` names is
                copied.
        """
        raise NotImplementedError(
            f"{type(self).__name__} has no perform; define perform(node, inputs, output_storage)"
        )

    def is_foreign(self) -> bool:
        """True if running this op runs code of users: see `graphc.graph.contract`."""
        methods = (type(self).perform, type(self).make_thunk)
        return self.calls_user_code or any(
            f is not None and not f.__module__.startswith("graphc.") for f in methods
        )

    def only_makes_thunks(self) -> bool:
        """True if it has a `make_thunk` of its own and no `perform`."""
        return type(self).perform in (None, Op.perform) and type(self).make_thunk is not Op.make_thunk

    @property
    def overwritten(self) -> tuple[int, ...]:
        """Positions of the inputs whose memory it overwrites."""
        return tuple(dict.fromkeys(i for positions in self.destroy_map.values() for i in positions))

    def make_thunk(
        self,
        node: Apply,
        input_computed: Sequence[Flag],
        output_computed: Sequence[Flag],
        input_registers: Sequence[Register],
        output_registers: Sequence[Register],
    ) -> Thunk:
        """The thunk that runs the node in a graph that is not wholly compiled; by default a call of
        `perform`.

        It is called when a function is made, and again for each further call that runs at the same time.
        Whatever is to be compiled or looked up for the node belongs here rather than into calls. Which
        implementation an op with concrete inputs has is decided by its constructor.

        Args:
            node: the application that is to be run.
            input_computed: for each input a list with one bool: whether it has been computed.
            output_computed: the same for outputs; the thunk sets those of what it has computed.
            input_registers: for each input a list with one element: its value, if it has been computed.
            output_registers: the same for outputs; the thunk stores them there.

        Returns:
            A `graphc_runtime.Thunk`. A lazy one may ask for inputs as it needs them; those that no lazy
            thunk asks for are not computed.
        """
        return perform_thunk(node, Cells(input_computed, output_computed, input_registers, output_registers))

    def compute_test_value(self, node: Apply) -> None:
        """Gives outputs of a new node the test values that follow from those of its inputs.

        Inputs of graphs within graphs, which are not the user's own, may have none.

        Raises:
            ValueError: an input has none, and the setting `compute_test_value` is "raise".
            Exception: of the op, if it cannot be computed from these values.
        """
        values = []
        for x in node.inputs:
            try:
                values.append(x.get_test_value())
            except TestValueError as error:
                if x.owner is None and x.location:
                    missing_test_value(error, ValueError)
                return
        given = [copy.deepcopy(x) if i in self.overwritten else x for i, x in enumerate(values)]
        for v, value in zip(node.outputs, perform_node(node, given), strict=True):
            v.tag.test_value = value

    def pullback(self, inputs: Variables, outputs: Variables, cotangents: Maybe) -> list[Variable | None]:
        """Cotangents of the inputs from those of the outputs (vector-Jacobian product); None is zero."""
        raise UndefinedGradientError(f"{self} has no gradient; define pullback(inputs, outputs, cotangents)")

    def pushforward(self, inputs: Variables, outputs: Variables, tangents: Maybe) -> list[Variable | None]:
        """Tangents of the outputs from those of the inputs (Jacobian-vector product); None is zero.

        An op that defines only `pullback` needs no rule of its own, and a rule may return ``NotImplemented``:
            then the gradient module transposes the pullback.
        """
        raise UndefinedGradientError(
            f"{self} has no pushforward; define pushforward(inputs, outputs, tangents)"
        )

    def element(self, node: Apply, position: int) -> Variable | None:
        """The 0-d variable that is an element (from 0) of the vector that a node computes, None if there is
        none. It tells what is known of the element, and is read in its place in code. Graphs read the vector,
        which users may differentiate by, replace, or make an input.
        """
        return None

    def connection_pattern(self, node: Apply) -> list[list[bool]]:
        """``pattern[i][j]``: whether output j depends on the elements of input i; by default all do, on those
        of all inputs or of ``depends_on``.
        """
        inputs = range(len(node.inputs))
        return [[self.depends_on is None or i in self.depends_on] * len(node.outputs) for i in inputs]

    def clone(self) -> Op:
        """A copy of the op."""
        return copy.copy(self)

    def _props(self) -> tuple[Hashable, ...]:
        return tuple(getattr(self, prop) for prop in self.__props__ or ())

    def _props_dict(self) -> dict[str, int]:
        return {prop: getattr(self, prop) for prop in self.__props__ or ()}

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if self.__props__ is None or type(self) is not type(other):
            return False
        return self._props() == other._props()

    def __hash__(self) -> int:
        return object.__hash__(self) if self.__props__ is None else hash((type(self), self._props()))

    def __str__(self) -> str:
        name = getattr(self, "name", None) or type(self).__name__
        if not self.__props__:
            return name
        return f"{name}{{{', '.join(f'{prop}={getattr(self, prop)!r}' for prop in self.__props__)}}}"

    def __repr__(self) -> str:
        return str(self)


@dataclass_transform(eq_default=False)
class FieldOp(Op):
    """An op that declares its attributes, as in ``axis: int = 0``: its constructor takes them, and they are
    its ``__props__``. A class with a constructor of its own names these itself.
    """

    def __init_subclass__(cls) -> None:
        kinds = get_annotations(cls)
        own = [name for name, kind in kinds.items() if not str(kind).startswith("ClassVar")]
        if own and "__init__" not in cls.__dict__:
            record(eq=False, repr=False)(cls)
            cls.__props__ = (*(cls.__props__ or ()), *own)


def get_test_value(v: Any) -> Any:
    """The test value of a variable, or the value of anything else; see `Variable.get_test_value`."""
    return v.get_test_value() if isinstance(v, Variable) else v


def get_test_values(*variables: Any) -> list[Any]:
    """A list with the test value of a variable, or a tuple of those of several; an empty list where one has
    none, or where none are computed.

    Raises:
        TestValueError: one has none, and the setting `compute_test_value` is "raise".
    """
    if config.compute_test_value == "off":
        return []
    try:
        values = [get_test_value(v) for v in variables]
    except TestValueError as error:
        missing_test_value(error, TestValueError)
        return []
    return values if len(values) == 1 else [tuple(values)]


def multilinear(op: Op, inputs: Variables, outputs: Variables, tangents: Maybe) -> list[Variable | None]:
    """`Op.pushforward` of what is linear in each input that can have a tangent: the sum over these of the op
    with the tangent in the place of the input.
    """
    moved = [(i, t) for i, t in enumerate(tangents) if t is not None]
    return [reduce(add, [op(*inputs[:i], t, *inputs[i + 1 :]) for i, t in moved])]


def linear(op: Op, inputs: Variables, outputs: Variables, tangents: Maybe) -> list[Variable | None]:
    """`Op.pushforward` of what is linear in all inputs that outputs depend on: the op, on tangents alone."""
    moving = range(len(inputs)) if op.depends_on is None else op.depends_on
    filled = [x.zeros_like() if t is None else t for x, t in zip(inputs, tangents, strict=True)]
    return [op(*(filled[i] if i in moving else x for i, x in enumerate(inputs)))]


def no_cotangents(op: Op, inputs: Variables, outputs: Variables, cotangents: Maybe) -> list[Variable | None]:
    """`Op.pullback` of what does not depend on the elements of its inputs, or not smoothly."""
    return [None] * len(inputs)


def no_tangents(op: Op, inputs: Variables, outputs: Variables, tangents: Maybe) -> list[Variable | None]:
    """`Op.pushforward` of such an op."""
    return [None] * len(outputs)


def same_tangent(op: Op, inputs: Variables, outputs: Variables, tangents: Maybe) -> list[Variable | None]:
    """`Op.pushforward` of an op whose one output is its first input."""
    return [tangents[0]]
