# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Ops made from Python functions: ``as_op`` and ``wrap_py``.

Source: PyTensor's ``pytensor.compile.ops``.
"""

from __future__ import annotations

import importlib
import inspect
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

import graphc.tensor as pt
from graphc.errors import UndefinedGradientError
from graphc.graph.basic import Apply, Maybe, Variable, Variables, describe
from graphc.graph.op import Op
from graphc.graph.tensor.type import TensorType
from graphc.graph.thunks import CallThunk, Cells
from graphc.graph.type import Type, as_type
from graphc.graph.undefined import is_discrete
from graphc_runtime.marshal import demand_numbers

if TYPE_CHECKING:
    from graphc_runtime.thunk import Flag, Register, Thunk

Function = Callable[..., Any]


class PythonFunction(Op):
    """An op that calls a Python function with arrays.

    Args:
        function: takes one value for each input; returns one value, or a tuple or list of values, one for
            each output.
        itypes: types of the inputs; None takes tensors of any type.
        otypes: types of the outputs.
        gradient: builds the cotangents of the inputs: ``gradient(inputs, outputs, cotangents)`` takes lists
            of variables and returns a list of variables or None.
        vjp: computes them: ``vjp(*inputs, *cotangents)`` takes and returns arrays, one for each input of
            floating point.
        infer_shape: accepted for compatibility; it has no effect, as sizes are those of what was computed.
        name: shown in messages.
        destroy_map, view_map: inputs that the function overwrites, or returns views of, by output; see `Op`.
            It cannot write into other arguments, and views of these are copied.
    """

    __props__ = ("function", "itypes", "otypes", "gradient", "vjp", "_maps")
    # Another function says nothing about why the graph cannot be compiled.
    body_obstacle = "it calls a Python function"
    calls_user_code = True

    def __init__(
        self,
        function: Function,
        itypes: Sequence[Type] | None,
        otypes: Sequence[Type],
        *,
        gradient: Function | None = None,
        vjp: Function | None = None,
        infer_shape: Function | None = None,
        name: str | None = None,
        destroy_map: Mapping[int, Sequence[int]] | None = None,
        view_map: Mapping[int, Sequence[int]] | None = None,
    ) -> None:
        if gradient is not None and vjp is not None:
            raise TypeError("give either gradient= (which builds a graph) or vjp= (which computes arrays)")
        self.function = function
        self.itypes = None if itypes is None else _as_types(itypes, "itypes")
        self.otypes = _as_types(otypes, "otypes")
        self.gradient, self.vjp, self.infer_shape = gradient, vjp, infer_shape
        self.name = name or getattr(function, "__name__", type(function).__name__)
        self.__doc__ = getattr(function, "__doc__", None)
        self.__name__ = self.name
        self.destroy_map, self.view_map = (
            {k: list(positions) for k, positions in (given or {}).items()}
            for given in (destroy_map, view_map)
        )
        self._maps = repr((self.destroy_map, self.view_map))

    def make_node(self, *inputs: Any) -> Apply:
        if self.itypes is not None:
            return super().make_node(*inputs)
        variables = [x if isinstance(x, Variable) else pt.as_tensor_variable(x) for x in inputs]
        assert self.otypes is not None
        return Apply(self, variables, [as_type(t).make_variable() for t in self.otypes])

    def perform(self, node: Apply, inputs: Sequence[np.ndarray], output_storage: Sequence[Register]) -> None:
        self._store(node, self.function(*inputs), output_storage)

    def make_thunk(
        self,
        node: Apply,
        input_computed: Sequence[Flag],
        output_computed: Sequence[Flag],
        input_registers: Sequence[Register],
        output_registers: Sequence[Register],
    ) -> Thunk:
        cells = Cells(input_computed, output_computed, input_registers, output_registers)
        if len(node.outputs) == 1 and type(self).perform is PythonFunction.perform:
            # The usual case, without the cost of the others.
            return CallThunk(self.function, self._store, node, cells)
        return super().make_thunk(node, *cells)

    def _store(self, node: Apply, values: object, output_storage: Sequence[Register]) -> None:
        """Stores the results of the function as one value for each output."""
        if not isinstance(values, tuple | list) or (len(node.outputs) == 1 and isinstance(values, list)):
            values = (values,)
        if len(values) != len(node.outputs):
            raise ValueError(
                f"{self.name} must return {len(node.outputs)} values, one for each of its otypes, but "
                f"returned {len(values)}"
            )
        for i, (cell, value, output) in enumerate(zip(output_storage, values, node.outputs, strict=True)):
            cell[0] = self._converted(value, output.type, i)

    def _converted(self, value: object, wanted: object, i: int) -> object:
        """Python numbers and lists as arrays; arrays must have the declared dtype and rank."""
        if not isinstance(wanted, TensorType):
            return value
        given = value
        if value is None:  # NumPy makes NaN of it
            raise TypeError(
                f"{self.name} must return an array of {wanted} as output {i}, but returned None; is there a "
                "`return`?"
            )
        demand_numbers(value)
        if not isinstance(value, np.ndarray | np.generic):
            value = np.asarray(value, wanted.dtype)
        array = np.asarray(value)
        fits = array.ndim == wanted.ndim and all(
            want in (None, have) for have, want in zip(array.shape, wanted.shape, strict=True)
        )
        if array.dtype != wanted.numpy_dtype or not fits:
            raise TypeError(
                f"{self.name} must return an array of {wanted} as output {i}, but returned one of dtype "
                f"{array.dtype} and shape {array.shape}{_several(given)}"
            )
        return array

    def pullback(self, inputs: Variables, outputs: Variables, cotangents: Maybe) -> list[Variable | None]:
        if self.gradient is not None:
            return list(self.gradient(list(inputs), list(outputs), list(cotangents)))
        if self.vjp is None:
            raise UndefinedGradientError(
                f"the function {self.name}{describe(outputs[0].location)} has no gradient; give one where it "
                "is made an op: gradient= takes a function (inputs, outputs, cotangents) that builds graphs, "
                "vjp= one that computes arrays; disconnected_grad(x) stops gradients before it"
            )
        given = [
            y.zeros_like() if g is None else g
            for y, g in zip(outputs, cotangents, strict=True)
            if not is_discrete(y)
        ]
        wanted = [x for x in inputs if not is_discrete(x)]
        itypes = [x.type for x in (*inputs, *given)]
        op = PythonFunction(self.vjp, itypes, [x.type for x in wanted], name=f"gradient of {self.name}")
        found = dict(zip(wanted, op(*inputs, *given, return_list=True), strict=True))
        return [found.get(x) for x in inputs]

    def __reduce__(self) -> Any:
        # A decorated function is known to its module by the op that has taken its name. Whoever pickles by
        # value does so for a process that has another main module.
        module = getattr(self.function, "__module__", None)
        name = getattr(self.function, "__qualname__", None)
        if module is not None and name is not None and _find(module, name) is self:
            if module != "__main__" or not _pickles_by_value():
                return _find, (module, name)
        return super().__reduce__()

    def __str__(self) -> str:
        return f"{type(self).__name__}{{{self.name}}}"


def _find(module: str, name: str) -> Any:
    try:
        found: Any = importlib.import_module(module)
        for part in name.split("."):
            found = getattr(found, part)
    except (ImportError, AttributeError):
        return None
    return found


def _pickles_by_value() -> bool:
    """True if cloudpickle asks: it leaves the functions of the main module to nobody else."""
    frame = sys._getframe(1)
    while frame.f_back is not None and not frame.f_globals.get("__name__", "").startswith("cloudpickle."):
        frame = frame.f_back
    return frame.f_back is not None


def _several(value: object) -> str:
    """The advice for a list of arrays where one array is declared."""
    if isinstance(value, list) and any(isinstance(each, np.ndarray) for each in value):
        return f": a list of {len(value)} arrays; several outputs are as many otypes, and a tuple"
    return ""


def _as_types(types: Any, what: str) -> tuple[Type, ...]:
    listed = list(types) if isinstance(types, tuple | list) else [types]
    try:
        return tuple(as_type(item) for item in listed)
    except TypeError as error:
        raise TypeError(f"{what}: {error}") from None


def as_op(
    itypes: Type | Sequence[Type],
    otypes: Type | Sequence[Type] = (),
    infer_shape: Function | None = None,
    *,
    gradient: Function | None = None,
    vjp: Function | None = None,
    destroy_map: Mapping[int, Sequence[int]] | None = None,
    view_map: Mapping[int, Sequence[int]] | None = None,
) -> Callable[[Function], PythonFunction]:
    """Decorator that makes an op of a function on arrays.

    Args:
        itypes, otypes: types of arguments and results, such as ``graphc.tensor.dvector``.
        infer_shape: accepted for compatibility.
        gradient, vjp: its derivative, as in `PythonFunction`; without one the op cannot be differentiated.
        destroy_map, view_map: arguments that it overwrites, or returns views of, as in `PythonFunction`.

    Returns:
        What turns a function into an op, to be called with variables.

    Raises:
        TypeError: itypes or otypes are no types.

    Examples:
        >>> @graphc.as_op(itypes=[pt.dvector], otypes=[pt.dscalar])
        ... def largest(x):
        ...     return np.asarray(x.max())
        >>> float(largest([1.0, 3.0]).eval())
        3.0
    """
    if inspect.isfunction(itypes) and not otypes:
        raise TypeError(
            f"itypes must be types, got the function {itypes.__name__}; a decorator with them is written "
            "@graphc.as_op(itypes=[graphc.tensor.dvector], otypes=[graphc.tensor.dvector])"
        )
    inputs, outputs = _as_types(itypes, "itypes"), _as_types(otypes, "otypes")

    def make(function: Function) -> PythonFunction:
        return PythonFunction(
            function,
            inputs,
            outputs,
            gradient=gradient,
            vjp=vjp,
            infer_shape=infer_shape,
            destroy_map=destroy_map,
            view_map=view_map,
        )

    return make


def wrap_py(
    function: Function | Type | Sequence[Type] | None = None,
    itypes: Any = None,
    otypes: Any = None,
    *,
    infer_shape: Function | None = None,
    example_shapes: Sequence[Sequence[int]] | None = None,
    gradient: Function | None = None,
    vjp: Function | None = None,
    name: str | None = None,
    destroy_map: Mapping[int, Sequence[int]] | None = None,
    view_map: Mapping[int, Sequence[int]] | None = None,
) -> Any:
    """An op that calls a Python function with arrays: ``wrap_py(f, otypes=dvector)``, or, as PyTensor has it,
    the decorator ``@wrap_py([dmatrix, dvector], dvector)``.

    Args:
        function: takes and returns arrays. Types instead, or none, make a decorator: they are ``itypes``, and
            what follows them ``otypes`` and ``infer_shape``.
        itypes: types of its arguments; without them it takes tensors of any type.
        otypes: types of its results. Without them, the function is called once, now, with arrays of ones of
            the types in ``itypes``, and ranks and dtypes of its results are taken.
        example_shapes: shapes of these arrays, one for each argument.
        infer_shape: accepted for compatibility.
        gradient, vjp: its derivative, as in `PythonFunction`.
        name: shown in messages.
        destroy_map, view_map: arguments that it overwrites, or returns views of, as in `PythonFunction`.

    Raises:
        TypeError: the types are neither given nor can be found out.

    Examples:
        >>> @graphc.wrap_py(itypes=[pt.dvector], otypes=[pt.dvector])
        ... def doubled(x):
        ...     return 2 * x
        >>> doubled(pt.constant([1.0, 2.0])).eval()
        array([2., 4.])
    """
    if function is None or isinstance(function, Type | tuple | list):
        if function is not None and itypes is not None:
            itypes, otypes, infer_shape = function, itypes, otypes or infer_shape
        elif function is not None:
            itypes = function
        maps = {"destroy_map": destroy_map, "view_map": view_map}
        return as_op(itypes, otypes, infer_shape, gradient=gradient, vjp=vjp, **maps)
    assert not isinstance(function, Sequence)
    inputs = None if itypes is None else _as_types(itypes, "itypes")
    label: str = name or getattr(function, "__name__", None) or "the function"
    if otypes is None:
        if inputs is None or example_shapes is None:
            raise TypeError(
                f"the types of the results of {label} are not known: give otypes=, or itypes= and "
                "example_shapes= to find them out by a call"
            )
        otypes = _types_of_results(function, inputs, example_shapes, label)
    return PythonFunction(
        function,
        inputs,
        _as_types(otypes, "otypes"),
        gradient=gradient,
        vjp=vjp,
        name=name,
        destroy_map=destroy_map,
        view_map=view_map,
    )


def _types_of_results(
    function: Function, itypes: Sequence[Any], shapes: Sequence[Sequence[int]], label: str
) -> list[Type]:
    if len(shapes) != len(itypes):
        raise TypeError(f"{label} has {len(itypes)} itypes, but example_shapes has {len(shapes)} shapes")
    for i, (itype, shape) in enumerate(zip(itypes, shapes, strict=True)):
        if getattr(itype, "ndim", None) != len(shape):
            raise TypeError(f"example_shapes[{i}] of {label} must fit {itype}, got {tuple(shape)}")
    values = function(*(np.ones(shape, t.dtype) for shape, t in zip(shapes, itypes, strict=True)))
    listed = values if isinstance(values, tuple) else (values,)
    arrays = [np.asarray(value) for value in listed]
    return [TensorType(array.dtype.name, (None,) * array.ndim) for array in arrays]
