# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""``graphc.jit``: Python functions of arrays, compiled for the arguments that they are called with.

A function is traced: called once with variables in the place of arrays, for each combination of dtypes,
numbers of dimensions, sizes of 1 (which broadcast) and static arguments. What it returns is a graph, which
`graphc.function` compiles. Sizes are not part of the key, so other sizes compile nothing. What is read from
elsewhere, globals for one, counts as it was while the function was traced, but for shared variables.
"""

from __future__ import annotations

import functools
import inspect
import operator
import sys
import threading
from collections.abc import Callable, Hashable, Iterable, Sequence
from types import MethodType
from typing import TYPE_CHECKING, Generic, ParamSpec, TypeAlias, TypeVar, overload

import numpy as np

from graphc.config import config
from graphc.function.function import function
from graphc.graph.basic import Variable
from graphc.graph.pytree import LEAF, Structure, flatten
from graphc.graph.tensor.type import TensorType
from graphc.immediate.arguments import hashable
from graphc.immediate.tensor import Tensor
from graphc_runtime.marshal import demand_numbers
from graphc_runtime.symbols import kind_letter
from graphc_runtime.worker import renew_in_children

if TYPE_CHECKING:
    from graphc.function.types import Function

P = ParamSpec("P")
R = TypeVar("R")
# What an argument is part of the key by: dtype, and for each axis the size that the graph knows.
LeafKey: TypeAlias = tuple[np.dtype, tuple[int | None, ...]]
_NUMBERS = (bool, int, float, complex)
_SIZES = "expected a sequence of integers or a single integer"
_OF_VARIABLES = (
    "NumPy cannot make an array of a size that is not known before the call; write graphc.tensor.zeros(n) or "
    "np.zeros_like(x), or static_shapes=True"
)
# Combinations of sizes for which a call is not taken apart; where there are more, they begin anew.
_MOST_SIZES = 1000


class Jitted(Generic[P, R]):
    """A function that compiles itself; `graphc.jit` makes it.

    Attributes:
        functions: the `graphc.Function` for each kind of arguments, in the order in which they came.
    """

    def __init__(
        self,
        fn: Callable[P, R],
        static_argnums: Sequence[int],
        static_argnames: Sequence[str],
        static_shapes: bool,
        mode: str | None,
    ) -> None:
        functools.update_wrapper(self, fn)
        self._fn = fn
        self._name = getattr(fn, "__name__", type(fn).__name__)
        self._signature = inspect.signature(fn)
        self.static = _static_names(self._name, self._signature, static_argnums, static_argnames)
        # Names of the parameters, if a call by position has one argument for each.
        kinds = {each.kind for each in self._signature.parameters.values()}
        plain = kinds <= {inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD}
        self._positional = tuple(self._signature.parameters) if plain else ()
        self._static_shapes, self._mode = static_shapes, mode
        self._found: dict[Hashable, Function] = {}
        self._exact: dict[Hashable, Function] = {}
        self.lock = threading.RLock()
        renew_in_children(self)

    @property
    def functions(self) -> list[Function]:
        return list(self._found.values())

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """The results of the function, arrays in the place of variables, in the containers that it returns.

        Raises:
            TypeError: an argument is no array or number, and not static; or as the function does.
        """
        # Arrays alone are the call that is made a million times: what it runs is found by dtypes and sizes.
        exact: list[object] = [config.floatX]
        if not kwargs and not self.static and len(args) == len(self._positional):
            for each in args:
                if type(each) is not np.ndarray:
                    break
                exact += (each.dtype, each.shape)
            known = self._exact.get(tuple(exact))
            if known is not None and len(exact) == 1 + 2 * len(args):
                at_once: R = known(*args)
                return at_once
        call = _Call(self, args, kwargs)
        if call.symbolic:
            return self._fn(*args, **kwargs)
        compiled = self._compiled(call)
        if len(exact) == 1 + 2 * len(args) and args and all(map(operator.is_, call.values, args)):
            if len(self._exact) >= _MOST_SIZES:
                self._exact.clear()
            self._exact[tuple(exact)] = compiled
        found: R = compiled(*call.values)
        return found

    def arguments(self, args: tuple[object, ...], kwargs: dict[str, object]) -> Iterable[tuple[str, object]]:
        """The value of each parameter by name, with defaults."""
        if not kwargs and args and len(args) == len(self._positional):
            return zip(self._positional, args, strict=True)
        try:
            bound = self._signature.bind(*args, **kwargs)
        except TypeError as error:
            raise TypeError(f"{self._name}{self._signature} of graphc.jit: {error}") from None
        bound.apply_defaults()
        return bound.arguments.items()

    def compiled(self, *args: P.args, **kwargs: P.kwargs) -> Function:
        """The compiled function that a call with these arguments runs; its inputs are the arrays in them."""
        return self._compiled(_Call(self, args, kwargs))

    def _compiled(self, call: _Call) -> Function:
        found = self._found.get(call.key)
        if found is None:
            with self.lock:
                found = self._found.get(call.key)
                if found is None:
                    found = self._found[call.key] = self._trace(call)
        return found

    def _trace(self, call: _Call) -> Function:
        """Calls the function with variables."""
        paths = [path for name, form in call.forms.items() for path in form.paths(name)]
        variables = [
            TensorType(dtype.name, shape).make_variable(path)
            for (dtype, shape), path in zip(call.leaf_keys, paths, strict=True)
        ]
        arguments, rest = dict(call.static), list(variables)
        for name, form in call.forms.items():
            count = form.n_leaves
            arguments[name], rest = form.build(rest[:count]), rest[count:]
        bound = inspect.BoundArguments(self._signature, arguments)
        bound.arguments = {name: arguments[name] for name in self._signature.parameters if name in arguments}
        try:
            outputs = self._fn(*bound.args, **bound.kwargs)
        except TypeError as error:
            if _SIZES in str(error):  # of np.zeros and the like, which ask no argument what it is
                raise TypeError(f"{error}. {_OF_VARIABLES}") from error
            raise
        return function(variables, outputs, mode=self._mode, name=self._name, on_unused_input="ignore")

    def __get__(self, instance: object, owner: type | None = None) -> Jitted[P, R] | MethodType:
        return self if instance is None else MethodType(self, instance)

    def __reduce__(self) -> str | tuple[type, tuple[object, ...]]:
        """By name where a module has it, which has the function under no name then; else by value."""
        name: str = getattr(self, "__qualname__", "")
        place: object = None if self.__module__ == "__main__" else sys.modules.get(self.__module__)
        for part in name.split("."):
            place = getattr(place, part, None)
        if place is self:
            return name
        return Jitted, (self._fn, (), sorted(self.static), self._static_shapes, self._mode)

    def __repr__(self) -> str:
        return f"<graphc.jit of {self._name}, compiled for {len(self._found)} kinds of arguments>"


class _Call:
    """The arguments of a call, taken apart.

    Attributes:
        values: the arrays in them, in order.
        leaf_keys: dtype and known sizes of each.
        forms: the container of each argument that is not static, by name.
        static: the static arguments.
        key: what compiled functions are found by.
        symbolic: variables are among the arguments: the call is part of a graph.
    """

    def __init__(self, jitted: Jitted[P, R], args: tuple[object, ...], kwargs: dict[str, object]) -> None:
        self.forms: dict[str, Structure] = {}
        self.static: dict[str, object] = {}
        leaves: list[object] = []
        for name, value in jitted.arguments(args, kwargs):
            if name in jitted.static:
                self.static[name] = value
            elif type(value) is np.ndarray:
                self.forms[name] = LEAF
                leaves.append(value)
            else:
                found, self.forms[name] = flatten(value)
                leaves += found
        self.symbolic = any(isinstance(leaf, Variable) for leaf in leaves)
        if self.symbolic:
            return
        self.values = [
            leaf if type(leaf) is np.ndarray and kind_letter(leaf.dtype) in "biufc" else self._value(leaf, i)
            for i, leaf in enumerate(leaves)
        ]
        _give_way(leaves, self.values)
        known = jitted._static_shapes
        self.leaf_keys: list[LeafKey] = [
            (value.dtype, value.shape if known else tuple([1 if n == 1 else None for n in value.shape]))
            for value in self.values
        ]
        forms = tuple(self.forms.items())
        static = tuple((name, hashable(value)) for name, value in self.static.items())
        self.key: Hashable = (forms, tuple(self.leaf_keys), static, config.floatX)

    def _value(self, leaf: object, place: int) -> np.ndarray:
        if isinstance(leaf, Tensor):
            return leaf._array()
        if isinstance(leaf, _NUMBERS):
            return np.asarray(leaf, config.floatX if type(leaf) is float else None)
        demand_numbers(leaf)
        found = (
            np.asarray(leaf) if hasattr(leaf, "__array__") or hasattr(leaf, "__array_interface__") else None
        )
        if found is None or kind_letter(found.dtype) not in "biufc":
            paths = [path for name, form in self.forms.items() for path in form.paths(name)]
            names = [name for name, form in self.forms.items() for _ in form.paths(name)]
            raise TypeError(
                f"the argument {paths[place]} is {leaf!r:.60} of type {type(leaf).__name__}, and arguments "
                "are arrays and numbers, or containers of these; give "
                f"static_argnames={[names[place]]} if it is a choice or a size"
            )
        return found if found.dtype.isnative else found.astype(found.dtype.newbyteorder("="))


def _give_way(leaves: Sequence[object], values: list[np.ndarray]) -> None:
    """Python's floats take the dtype of floating-point arrays beside them, as in NumPy's arithmetic."""
    floats = [i for i, leaf in enumerate(leaves) if type(leaf) is float]
    if not floats:
        return
    arrays = [value.dtype for i, value in enumerate(values) if i not in floats]
    beside = [dtype for dtype in arrays if kind_letter(dtype) == "f"]
    if beside:
        dtype = np.result_type(*beside)
        for i in floats:
            values[i] = values[i].astype(dtype)


def _static_names(
    name: str, signature: inspect.Signature, numbers: Sequence[int], names: Sequence[str]
) -> frozenset[str]:
    """Names of the static parameters.

    Raises:
        TypeError: there is no such parameter.
    """
    known = list(signature.parameters)
    for number in numbers:
        if not -len(known) <= number < len(known):
            raise TypeError(f"static_argnums has {number}, and {name}{signature} has {len(known)} parameters")
    for each in names:
        if each not in known:
            raise TypeError(
                f"static_argnames has {each!r}, and the parameters of {name} are {', '.join(known)}"
            )
    return frozenset([*names, *(known[number] for number in numbers)])


@overload
def jit(
    fn: Callable[P, R],
    *,
    static_argnums: int | Sequence[int] = (),
    static_argnames: str | Sequence[str] = (),
    static_shapes: bool = False,
    mode: str | None = None,
) -> Jitted[P, R]: ...


@overload
def jit(
    fn: None = None,
    *,
    static_argnums: int | Sequence[int] = (),
    static_argnames: str | Sequence[str] = (),
    static_shapes: bool = False,
    mode: str | None = None,
) -> Callable[[Callable[P, R]], Jitted[P, R]]: ...


def jit(
    fn: Callable[P, R] | None = None,
    *,
    static_argnums: int | Sequence[int] = (),
    static_argnames: str | Sequence[str] = (),
    static_shapes: bool = False,
    mode: str | None = None,
) -> Jitted[P, R] | Callable[[Callable[P, R]], Jitted[P, R]]:
    """Compiles a Python function of arrays, for the arguments that it is called with.

    The function is written with NumPy's functions or those of ``graphc.tensor``, and called with arrays,
    numbers, and dicts, lists, tuples and dataclasses of them. While it is traced its arguments are variables:
    ``grad``, ``value_and_grad``, ``scan`` and the like are used inside. The first call with other dtypes,
    numbers of dimensions, sizes of 1 or static arguments compiles; other sizes do not.

    Args:
        fn: the function. Without it the result is a decorator.
        static_argnums: positions of parameters that the function gets as they are, such as choices and
            numbers of steps of Python loops. They must be hashable, or arrays.
        static_argnames: names of such parameters.
        static_shapes: compile for the sizes of the arguments, which are known in the function then:
            ``len(x)`` and ``for row in x`` work. Other sizes compile again.
        mode: as in `graphc.function`.

    Returns:
        A function of the same parameters that returns NumPy arrays in the containers that ``fn`` returns.
        ``compiled(*args)`` is the `graphc.Function` that a call runs. Called with variables, inside another
        function that is traced for one, it returns what ``fn`` does.

    Raises:
        TypeError: there is no such parameter. Calls raise it for what is neither array nor static.

    Python floats take the dtype of floating-point arrays beside them, else ``config.floatX``; integers are
    int64. Values that the function reads from elsewhere are those at the time of tracing; shared variables
    are read, and updated, in each call.

    Examples:
        >>> @graphc.jit
        ... def step(params, x, y, rate=0.1):
        ...     loss = ((np.tanh(x @ params["w"]) - y) ** 2).mean()
        ...     value, slopes = graphc.value_and_grad(loss, params)
        ...     return value, {"w": params["w"] - rate * slopes["w"]}
        >>> value, params = step({"w": np.zeros(2)}, np.eye(2), np.ones(2))
        >>> float(value), params["w"]
        (1.0, array([0.1, 0.1]))
    """
    numbers = (static_argnums,) if isinstance(static_argnums, int) else static_argnums
    names = (static_argnames,) if isinstance(static_argnames, str) else static_argnames
    if fn is None:
        return lambda each: Jitted(each, numbers, names, static_shapes, mode)
    if not callable(fn) or isinstance(fn, Variable):
        raise TypeError(
            f"jit takes a function, got {fn!r:.80} of type {type(fn).__name__}; a graph is compiled by "
            "graphc.function(inputs, outputs)"
        )
    return Jitted(fn, numbers, names, static_shapes, mode)
