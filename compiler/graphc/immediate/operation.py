# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Calling functions in an environment.

`OpWrapper` is a function of the namespace: it takes whatever the function takes. `OpFactory` finds the
executable of a call, or makes it. `Operation` is the strict form, with inputs by position and attributes
fixed beforehand.

Tracing: a call of a function of ``graphc.tensor`` with symbolic inputs, which gives the graph to
compile.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar, Token
from typing import TYPE_CHECKING, Any

import numpy as np

from graphc.compile.fingerprint import fingerprint
from graphc.config import config
from graphc.emit.emitter import MAX_LITERAL
from graphc.function.io import OutputForm
from graphc.graph.basic import Constant, SourceLocation, Variable
from graphc.graph.function_graph import FunctionGraph
from graphc.graph.op import in_float32, is_rounded
from graphc.graph.replace import rebuild
from graphc.graph.shared import SharedVariable
from graphc.graph.tensor.convert import constant
from graphc.graph.tensor.type import TensorType
from graphc.graph.traversal import ancestors, toposort
from graphc.immediate.arguments import DATA, INDEX, SIZE, STATIC, WEAK, Split, Weak, hashable
from graphc.immediate.executable import Executable, Owner
from graphc.immediate.tensor import Tensor, make_tensor
from graphc.ops.elementwise import Elementwise

_active: ContextVar[Trace | None] = ContextVar("graphc_immediate_trace", default=None)


class Trace:
    """A function is being traced: tensors that it reads become inputs of the graph.

    Args:
        env: the environment that will run the graph.
    """

    _token: Token[Trace | None]

    def __init__(self, env: Owner) -> None:
        self.env = env
        self._lifted: dict[int, tuple[Tensor, Variable]] = {}

    def lift(self, tensor: Tensor) -> Variable:
        """The input that stands for a tensor.

        Raises:
            TypeError: the tensor belongs to another environment.
        """
        self.env._check_owner(tensor)
        found = self._lifted.get(id(tensor))
        if found is None:
            ones = tuple(size == 1 for size in tensor._held().shape)
            variable = tensor._kind.type(ones).make_variable(tensor.name)
            found = self._lifted[id(tensor)] = (tensor, variable)
        return found[1]

    @property
    def captured(self) -> list[tuple[Tensor, Variable]]:
        """The tensors that were lifted, and their inputs."""
        return list(self._lifted.values())

    def __enter__(self) -> Trace:
        self._token = _active.set(self)
        return self

    def __exit__(self, *exception: object) -> None:
        _active.reset(self._token)


def active_trace() -> Trace | None:
    """The innermost trace of this thread or task."""
    return _active.get()


def lift(tensor: Tensor) -> Variable:
    """A tensor as a variable: an input of the function that is being traced, else a constant."""
    trace = _active.get()
    return constant(tensor._array(), tensor.name) if trace is None else trace.lift(tensor)


class NoVariables(Exception):
    """A function returned something that is no graph; ``value`` is what it returned."""

    def __init__(self, value: Any) -> None:
        super().__init__(value)
        self.value = value


def trace_call(
    wrapper: OpWrapper, split: Split, types: Sequence[TensorType | None]
) -> tuple[Executable, list[Tensor]]:
    """The executable of a call, and the tensors that functions among its arguments read: its last inputs.

    Args:
        wrapper: the operation, whose function builds the graph from the arguments.
        split: of the actual arguments.
        types: for each input its type; None for Python numbers.

    Raises:
        NoVariables: the function returns no variable.
    """
    env, function = wrapper.env, wrapper.function
    symbols: list[Any] = [
        t.make_variable() if t is not None else x.value if isinstance(x, Weak) else x
        for x, t in zip(split.inputs, types, strict=True)
    ]
    weaks: list[np.dtype | None] = [None] * len(symbols)
    with Trace(env) as trace:
        if None in types and isinstance(function, Elementwise):
            dtypes = _loop_dtypes(function, symbols, split.refilled(range(len(symbols))))
            for i, x in enumerate(split.inputs):
                if isinstance(x, Weak):
                    weaks[i], symbols[i] = dtypes[i], TensorType(dtypes[i], ()).make_variable()
        args, kwargs = split.refilled(symbols)
        result = function(*args, **kwargs)
        if None in types and is_rounded(types) and getattr(result, "dtype", None) == "float32":
            result = result.astype("bfloat16")
        if not _has_variables(result):
            raise NoVariables(result)
        form = OutputForm(result)
    if not split.functions:
        # Other lines will use the executable, too.
        locate(form.variables, symbols, None)
    kinds = [env._kind(v.type.dtype, v.type.ndim) for v in form.variables]
    captured = trace.captured
    inputs = [*symbols, *(variable for _, variable in captured)]
    weaks += [None] * len(captured)
    executable = Executable(wrapper.name, inputs, form, kinds, weaks=weaks, place=env._place)
    return executable, [tensor for tensor, _ in captured]


def _loop_dtypes(
    function: Elementwise, operands: Sequence[Any], call: tuple[list[Any], dict[str, Any]]
) -> list[np.dtype]:
    """The dtypes that an elementwise function computes its operands in.

    Args:
        function: it.
        operands: as the call lists them, which by keyword may be in any order.
        call: the arguments, as positions among the operands; None for those left out.
    """
    (args, kwargs), names = call, getattr(function.__signature__, "parameters", {})
    order = [*args, *map(kwargs.get, [*names][len(args) : function.row.arity])]
    inputs = in_float32([None if i is None else operands[i] for i in order])
    if None in order or len(order) != function.row.arity:  # clip(x, None, 2), add(x, y, z)
        return [function(*inputs).type.numpy_dtype] * len(operands)
    found = function.make_node(*inputs).inputs
    return [found[order.index(i)].type.numpy_dtype for i in range(len(operands))]


def locate(outputs: Sequence[Variable], inputs: Sequence[Variable], location: SourceLocation | None) -> None:
    """Say where the nodes between two sets of variables were made."""
    for node in toposort(outputs, blockers=set(inputs)):
        node.location = location


def _has_variables(x: object) -> bool:
    if isinstance(x, list | tuple):
        return any(map(_has_variables, x))
    if isinstance(x, dict):
        return any(map(_has_variables, x.values()))
    return isinstance(x, Variable) or type(x) is Tensor


def with_inputs(executable: Executable) -> tuple[Executable, list[np.ndarray], str | None]:
    """An executable whose large constants are inputs, their values, and a key for its graph.

    The key is None where the graph cannot be identified: it has shared variables, or ops of a user without
    ``__props__``.
    """
    found = list(ancestors(executable.outputs, set(executable.inputs)))
    large = [
        v
        for v in found
        if isinstance(v, Constant) and isinstance(v.type, TensorType) and v.data.size > MAX_LITERAL
    ]
    if large:
        places: dict[Variable, Variable] = {v: v.type.make_variable() for v in large}
        outputs = rebuild(executable.outputs, dict(places), copy_nodes=False, strict=True)
        inputs = [*executable.inputs, *places.values()]
        executable = Executable(
            executable.name,
            inputs,
            executable.form.with_variables(outputs),
            executable.kinds,
            place=executable.place,
        )
    key = None
    if not any(isinstance(v, SharedVariable) for v in found):
        key = fingerprint(FunctionGraph(executable.inputs, executable.outputs), len(executable.inputs))
    return executable, [v.data for v in large], key


# By name of the function: how arguments are taken, by position and name. Sizes need not be known when a
# function is compiled, so that zeros(2) and zeros(3) share one.
_POLICIES: dict[str, dict[Any, str]] = {
    "array_api.clip": {1: DATA, 2: DATA, "min": DATA, "max": DATA},
    "array_api.linspace": {0: DATA, 1: DATA},
    "alloc": {0: DATA, **dict.fromkeys(range(1, 8), SIZE)},
    "arange": {0: SIZE, 1: SIZE, "start": SIZE, "stop": SIZE},
    "broadcast_to": {1: SIZE, "shape": SIZE},
    "empty": {0: SIZE, "shape": SIZE},
    "eye": {0: SIZE, 1: SIZE, "n": SIZE, "m": SIZE},
    "full": {0: SIZE, "shape": SIZE, 1: DATA, "fill_value": DATA},
    "full_like": {1: DATA, "fill_value": DATA},
    "getitem": {1: INDEX, "index": INDEX},
    "identity": {0: SIZE, "n": SIZE},
    "ones": {0: SIZE, "shape": SIZE},
    "pow": {1: STATIC},
    "power": {1: STATIC},
    "reshape": {1: SIZE, "newshape": SIZE, "shape": SIZE},
    **{f"{kind}_subtensor": {1: INDEX} for kind in ("set", "inc", "mul", "max", "min")},
    "take": {1: INDEX, "indices": INDEX},
    "tri": {0: SIZE, 1: SIZE, "N": SIZE, "M": SIZE},
    "zeros": {0: SIZE, "shape": SIZE},
}
# What a size of 1 changes in the graph itself, apart from broadcasting.
DEPENDS_ON_ONES = frozenset({"squeeze"})


def policies_of(name: str, function: Callable[..., Any]) -> tuple[Mapping[int | str, str], str]:
    """Policies for the arguments of a function: those with one of their own, and the others."""
    found = _POLICIES.get(name) or _POLICIES.get(name.rpartition(".")[2], {})
    if name.startswith("random."):
        found = {"size": SIZE}
    return found, WEAK if isinstance(function, Elementwise) else STATIC


if TYPE_CHECKING:
    from graphc.graph.tensor.variable import TensorVariable
    from graphc.immediate.arguments import Operand
    from graphc.immediate.executable import Kind

    # For each input which of its dimensions have size 1, None for numbers.
    Ones = Sequence[tuple[bool, ...] | None]


class OpFactory:
    """Finds or makes the executables of an environment.

    The key of an executable is the name of the function, the dtypes and numbers of dimensions of its inputs,
    and its attributes. Sizes do not matter, but where a dimension of size 1 broadcasts: calls for which that
    turns out to be so have keys with the places of 1s from then on.

    The class called with the name of a function runs it in the environment of the first tensor among its
    inputs: ``OpFactory("matmul", a, b)`` is ``env.op_factory("matmul", a, b)``.

    Args:
        env: the environment.

    Raises:
        TypeError: a name is given, and none of its inputs is a tensor of an environment.

    Examples:
        >>> env = graphc.immediate.Environment()
        >>> x = env.as_tensor([1.0, 3.0])
        >>> float(env.operation("sum", axis=0)(x)), float(graphc.immediate.OpFactory("sum", x))
        (4.0, 4.0)
    """

    def __new__(cls, env: Owner | str, *inputs: object, **attributes: object) -> Any:
        if not isinstance(env, str):
            return super().__new__(cls)
        tensor = next((x for x in inputs if isinstance(x, Tensor)), None)
        if tensor is None:
            raise TypeError(
                f"OpFactory({env!r}, ...) runs in the environment of its inputs, but none of them is a "
                f"tensor of one; write env.op_factory({env!r}, ...), or make a tensor with env.as_tensor(...)"
            )
        return tensor._kind.env.op_factory(env, *inputs, **attributes)

    def __init__(self, env: Owner) -> None:
        self.env = env
        self._by_ones: set[tuple[object, ...]] = set()

    def __call__(self, name: str, *inputs: object, **attributes: object) -> Tensor:
        """Runs a function by its name: ``env.op_factory("matmul", a, b)`` is ``env.matmul(a, b)``.

        Raises:
            AttributeError: the environment has no function of that name.
        """
        wrapper = self.env._find(name)
        if wrapper is None:
            raise AttributeError(f"there is no function {name!r} in {self.env!r}")
        result: Tensor = wrapper(*inputs, **attributes)
        return result

    def call(
        self, wrapper: OpWrapper, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[Any, Executable | None]:
        """Run a call.

        Returns:
            What the function returns, and the executable if it can be used again for inputs of the same
            kinds.
        """
        env, split = self.env, Split()
        split.visit_call(args, kwargs, wrapper.policies, wrapper.default)
        if split.symbolic or (split.functions and active_trace() is not None):
            return wrapper.build_graph(args, kwargs), None
        operands = self._operands(split)
        try:
            if split.functions:
                return self._call_traced(wrapper, split, operands), None
            key = (wrapper.name, tuple(split.key), _kinds(operands), config.floatX)
            by_ones = env.lazy or wrapper.depends_on_ones or key in self._by_ones
            if wrapper.depends_on_ones:
                for x in operands:
                    if isinstance(x, Tensor):
                        x._held()
            ones = env._ones(operands) if by_ones else None
            executable = self._find(wrapper, split, operands, key, ones)
            try:
                return env._run(executable, operands), None if by_ones else executable
            except (ValueError, IndexError):  # index arrays broadcast too
                ones = env._ones(operands)
                if by_ones or not any(any(each) for each in ones if each is not None):
                    raise
            executable = self._find(wrapper, split, operands, key, ones)
            result = env._run(executable, operands)
            self._remember_ones(key)
            return result, None
        except NoVariables as found:
            return found.value, None

    def _remember_ones(self, key: tuple[object, ...]) -> None:
        if len(self._by_ones) > 4 * self.env._cache.maxsize:
            self._by_ones.clear()
        self._by_ones.add(key)

    def _operands(self, split: Split) -> list[Operand]:
        """The inputs as tensors of this environment, and Python numbers that meet them."""
        env = self.env
        operands: list[Operand] = [x if isinstance(x, Weak) else env._as_operand(x) for x in split.inputs]
        marks = [x for x in operands if isinstance(x, Weak)]
        if operands and len(marks) == len(operands):
            # Numbers among themselves have the dtypes of constants.
            numbers = [np.asarray(x.value, config.floatX if type(x.value) is float else None) for x in marks]
            split.inputs, operands = [*numbers], [env._as_operand(x) for x in numbers]
        return operands

    def _find(
        self,
        wrapper: OpWrapper,
        split: Split,
        operands: Sequence[Operand],
        key: tuple[object, ...],
        ones: Ones | None,
    ) -> Executable:
        full = key if ones is None else (*key, tuple(ones))
        found = self.env._cache.find(full)
        if found is not None:
            return found
        executable, _ = trace_call(wrapper, split, _types(operands, ones))
        return self.env._cache.add(full, executable)

    def _call_traced(self, wrapper: OpWrapper, split: Split, operands: Sequence[Operand]) -> Any:
        """A call with functions among its arguments. These are traced each time, since what they read may
        have changed; the executable is found by the graph.
        """
        ones = self.env._ones(operands)
        executable, captured = trace_call(wrapper, split, _types(operands, ones))
        executable, constants, key = with_inputs(executable)
        operands = [*operands, *captured, *(self.env._as_operand(x) for x in constants)]
        if key is not None:
            full = (wrapper.name, key, executable.form.structure)
            executable = self.env._cache.find(full) or self.env._cache.add(full, executable)
        return self.env._run(executable, operands)


def _kinds(operands: Sequence[Operand]) -> tuple[Kind | None, ...]:
    return tuple([None if isinstance(x, Weak) else x._kind for x in operands])


def _types(operands: Sequence[Operand], ones: Ones | None) -> list[TensorType | None]:
    places: Ones = [None] * len(operands) if ones is None else ones
    return [
        None if isinstance(x, Weak) else x._kind.type(each) for x, each in zip(operands, places, strict=True)
    ]


class OpWrapper:
    """A function of ``graphc.tensor`` in an environment.

    Given tensors, arrays and numbers it computes; given symbolic variables it builds a graph, as in
    ``graphc.tensor``. Tensors and arrays are inputs of the executable. Python numbers are, too, where they
    are operands, indices or sizes; everything else is an attribute, and part of the executable's key.

    Args:
        env: the environment.
        name: name of the function, with that of its namespace (``"linalg.det"``).
        function: the function of graphs.
        signature: what has the signature and documentation, where it is not the function.

    Examples:
        >>> env = graphc.immediate.Environment()
        >>> type(env.exp).__name__
        'OpWrapper'
        >>> env.exp(env.as_tensor([0.0])).numpy()
        array([1.])
    """

    def __init__(
        self,
        env: Owner,
        name: str,
        function: Callable[..., Any],
        signature: Callable[..., object] | None = None,
    ) -> None:
        self.env = env
        self.name = name
        self.function = function
        self.__name__ = name.rpartition(".")[2]
        self.__wrapped__ = signature or function
        self.__doc__ = getattr(self.__wrapped__, "__doc__", None)
        self.policies, self.default = policies_of(name, function)
        self.depends_on_ones = self.__name__ in DEPENDS_ON_ONES
        self._table: dict[Kind | tuple[Kind, Kind], Executable] = {}

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Results of the function, as tensors."""
        if "out" in kwargs:
            out = kwargs.pop("out")
            return self(*args, **kwargs) if out is None else self._stored(out, args, kwargs)
        if "where" in kwargs and isinstance(self.function, Elementwise):
            return self._stored(None, args, kwargs)
        if kwargs or not 1 <= len(args) <= 2:
            return self.env._factory.call(self, args, kwargs)[0]
        x, y = args[0], args[-1]
        if type(x) is not Tensor or type(y) is not Tensor:
            return self.env._factory.call(self, args, kwargs)[0]
        key = x._kind if len(args) == 1 else (x._kind, y._kind)
        found = self._table.get(key)
        if found is not None:
            try:
                data = found.run(x._data) if len(args) == 1 else found.run(x._data, y._data)
            except Exception:
                return self.env._factory.call(self, args, kwargs)[0]
            found.hits += 1
            return make_tensor(data, found.kind)
        result, executable = self.env._factory.call(self, args, kwargs)
        if executable is not None and executable.is_single:
            self.env._connect(executable, self._table, key)
        return result

    def _stored(self, out: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """A call whose result goes into a tensor, or is computed in some places only, as NumPy's ufuncs do:
        elsewhere it is what was there, or 0.
        """
        mask = kwargs.pop("where", True) if isinstance(self.function, Elementwise) else True
        result = self(*args, **kwargs)
        if mask is not True:
            other = self.env.zeros_like(result) if out is None else out
            result = self.env.where(mask, result, other)
        return result if out is None else self.env._store(out, result, self.__name__)

    def build_graph(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> TensorVariable:
        """The function of symbolic variables; tensors become inputs of what is being traced, or constants."""
        split = Split()
        split.visit_call(args, kwargs, {}, STATIC)
        values = [lift(x) if isinstance(x, Tensor) else x for x in split.inputs]
        new_args, new_kwargs = split.refilled(values)
        return self.function(*new_args, **new_kwargs)

    def __repr__(self) -> str:
        return f"<{self.name} of {self.env!r}>"


class Operation:
    """A function with its attributes, to be called with inputs.

    ``env.operation("sum", axis=0)`` gives one. Inputs are tensors, arrays or numbers, by position; attributes
    are Python values that can be hashed, by keyword, and are given when the operation is made.

    Attributes:
        wrapper: the function.
        attributes: the attributes by name.

    Examples:
        >>> env = graphc.immediate.Environment()
        >>> total = env.operation("sum", axis=0)
        >>> float(total(env.as_tensor([1.0, 3.0])))
        4.0
    """

    def __init__(self, wrapper: OpWrapper, attributes: dict[str, Any]) -> None:
        self.wrapper = wrapper
        for name, value in attributes.items():
            self._check_attribute(name, value)
        self.attributes = dict(attributes)

    @property
    def name(self) -> str:
        """Name of the function."""
        return self.wrapper.name

    def _check_attribute(self, name: str, value: object) -> None:
        if isinstance(value, Tensor | Variable | np.ndarray):
            raise TypeError(
                f"the attribute {name} of the operation {self.name} is {_described(value)}, but attributes "
                f"are Python values that are part of the cache's key; give data by position when calling "
                f"it, or convert it (int(x), x.tolist())"
            )
        try:
            hashable(value)
        except TypeError as error:
            raise TypeError(f"{name} of the operation {self.name}: {error}") from None

    def __call__(self, *inputs: Any, **attributes: Any) -> Tensor:
        """Run the operation on inputs.

        Raises:
            TypeError: an input is no array, or attributes are given here.
        """
        if attributes:
            given = ", ".join(f"{name}={value!r:.40}" for name, value in attributes.items())
            fixed = ", ".join(f"{name}={value!r}" for name, value in self.attributes.items()) or "none"
            raise TypeError(
                f"the operation {self.name} takes inputs by position, got {given} by keyword; its attributes "
                f"were fixed when it was made ({fixed}): make another with env.operation({self.name!r}, ...)"
            )
        for position, x in enumerate(inputs):
            if not isinstance(x, Tensor | Variable | np.ndarray | np.generic | bool | int | float | complex):
                raise TypeError(
                    f"input {position} of the operation {self.name} must be a tensor, an array or a number, "
                    f"got {_described(x)}; attributes are given by keyword when the operation is made"
                )
        return self.wrapper(*inputs, **self.attributes)

    def __repr__(self) -> str:
        listed = "".join(f", {name}={value!r}" for name, value in self.attributes.items())
        return f"<operation {self.name}{listed} of {self.wrapper.env!r}>"


def _described(x: object) -> str:
    return f"{x!r:.60} of type {type(x).__name__}"
