# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Variables of ``TensorType``: their operators and methods, which all call functions that
``graphc.tensor`` fills in.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn, Self, TypeVar

import numpy as np

from graphc import hooks
from graphc.errors import ArgumentError, AsTensorError, did_you_mean
from graphc.graph.basic import Constant, Key, Variable
from graphc.graph.shared import SharedVariable
from graphc.graph.type import transfer
from graphc_runtime.marshal import is_on_device

if TYPE_CHECKING:
    import numpy.typing as npt

    from graphc.graph.tensor import AnyFunction, AxisLike, DTypeLike, IndexLike, SizeLike, TensorLike
    from graphc.graph.tensor.type import TensorType


_Number = TypeVar("_Number", bound=complex)


def _binary(name: str, reflected: bool = False) -> Callable[[TensorOperators, TensorLike], TensorVariable]:
    def method(self: TensorOperators, other: TensorLike) -> TensorVariable:
        function = self._functions[name]
        try:
            return function(other, self) if reflected else function(self, other)
        except AsTensorError:
            return NotImplemented

    method.__doc__ = f"``graphc.tensor.{name}``{' with the operands exchanged' if reflected else ''}."
    return method


def _method(name: str) -> Callable[..., TensorVariable]:
    """A method that passes itself as the first argument of the namespace's function of that name."""

    def method(self: TensorOperators, *args: TensorLike, **kwargs: Any) -> TensorVariable:
        return self._functions[name](self, *args, **kwargs)

    method.__doc__ = f"``graphc.tensor.{name}`` of this variable."
    method.__name__ = name
    return method


class _NotLoaded(dict[str, "AnyFunction"]):
    """Functions of `graphc.tensor` before it has loaded, as for variables from a pickle: loads it."""

    def __missing__(self, name: str) -> AnyFunction:
        import_module("graphc.tensor")
        return TensorVariable._functions[name]


def check_device(device: str | None) -> None:
    """Refuse devices other than the one there is.

    Raises:
        ValueError: another device.
    """
    if device not in (None, "cpu"):
        raise ValueError(
            f"graphs are placed on a device when they are compiled; device= must be 'cpu', got {device!r}"
        )


class NumpyProtocols:
    """Protocols that symbolic tensors offer to NumPy and to array-API consumers."""

    _functions: ClassVar[Mapping[str, AnyFunction]]

    __array_priority__ = 1000

    def __array_ufunc__(
        self, ufunc: np.ufunc, method: str, *inputs: TensorLike, **kwargs: object
    ) -> TensorVariable:
        """Let ``np.exp(x)``, ``array + x`` and ``np.add.reduce(x)`` build graphs."""
        return self._functions["__array_ufunc__"](ufunc, method, inputs, kwargs)

    def __array_function__(
        self,
        func: Callable[..., object],
        types: Sequence[type],
        args: Sequence[object],
        kwargs: Mapping[str, object],
    ) -> TensorVariable | int:
        """Let ``np.concatenate([x, y])`` and the like build graphs."""
        return self._functions["__array_function__"](func, args, kwargs)

    def __array__(self, dtype: np.dtype | None = None, copy: bool | None = None) -> np.ndarray:
        if dtype is not None and np.dtype(dtype) == object:
            # Collections of variables are arrays of objects.
            holder = np.empty((), object)
            holder[()] = self
            return holder
        raise TypeError(
            f"{self} has no value before it is run, so it cannot become a NumPy array; compile it with "
            "graphc.function([inputs], outputs), or use its eval({input: value}); a shared variable "
            "has get_value()"
        )

    def __array_namespace__(self, *, api_version: str | None = None) -> ModuleType:
        """The namespace of the array API standard: `graphc.array_api`."""
        return hooks.namespace()(api_version)

    @property
    def device(self) -> str:
        """The device, as the array API standard asks for it."""
        return "cpu"

    def to_device(self, device: str, /, *, stream: object = None) -> Self:
        """The variable itself, on the one device there is.

        Raises:
            ValueError: another device.
        """
        check_device(device)
        return self


class TensorOperators(NumpyProtocols):
    """Operators and methods of tensor variables; arguments follow NumPy.

    Attributes:
        _functions: those of `graphc.tensor` by name, which are made of what is defined below it: it says what
            they are when it loads.
    """

    if TYPE_CHECKING:
        type: TensorType

    __hash__ = object.__hash__

    __add__, __radd__ = _binary("add"), _binary("add", True)
    __sub__, __rsub__ = _binary("sub"), _binary("sub", True)
    __mul__, __rmul__ = _binary("mul"), _binary("mul", True)
    __truediv__, __rtruediv__ = _binary("true_div"), _binary("true_div", True)
    __floordiv__, __rfloordiv__ = _binary("int_div"), _binary("int_div", True)
    __mod__, __rmod__ = _binary("mod"), _binary("mod", True)
    __divmod__, __rdivmod__ = _binary("divmod"), _binary("divmod", True)
    __pow__, __rpow__ = _binary("pow"), _binary("pow", True)
    __and__, __rand__ = _binary("bitwise_and"), _binary("bitwise_and", True)
    __or__, __ror__ = _binary("bitwise_or"), _binary("bitwise_or", True)
    __xor__, __rxor__ = _binary("bitwise_xor"), _binary("bitwise_xor", True)
    __lshift__, __rlshift__ = _binary("left_shift"), _binary("left_shift", True)
    __rshift__, __rrshift__ = _binary("right_shift"), _binary("right_shift", True)
    __matmul__, __rmatmul__ = _binary("matmul"), _binary("matmul", True)
    __lt__, __le__, __gt__, __ge__ = _binary("lt"), _binary("le"), _binary("gt"), _binary("ge")
    __neg__, __abs__, __invert__ = _method("neg"), _method("abs"), _method("bitwise_not")
    __pos__ = _method("tensor_copy")
    __ceil__, __floor__, __trunc__, __round__ = (
        _method("ceil"),
        _method("floor"),
        _method("trunc"),
        _method("round"),
    )

    dot = __dot__ = _method("dot")
    all, any, sum, prod = _method("all"), _method("any"), _method("sum"), _method("prod")
    mean, var, std = _method("mean"), _method("var"), _method("std")
    min, max, argmin, argmax, ptp = (_method(n) for n in ("min", "max", "argmin", "argmax", "ptp"))
    eq, neq, ge, gt, le, lt = (_method(n) for n in ("eq", "neq", "ge", "gt", "le", "lt"))
    exp, exp2, expm1, log, log2, log10, log1p, sqrt = (
        _method(n) for n in ("exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sqrt")
    )
    sin, cos, tan, arcsin, arccos, arctan = (
        _method(n) for n in ("sin", "cos", "tan", "arcsin", "arccos", "arctan")
    )
    sinh, cosh, tanh, arcsinh, arccosh, arctanh = (
        _method(n) for n in ("sinh", "cosh", "tanh", "arcsinh", "arccosh", "arctanh")
    )
    ceil, floor, trunc, round = (_method(n) for n in ("ceil", "floor", "trunc", "round"))
    deg2rad, rad2deg, conj, clip, abs = (_method(n) for n in ("deg2rad", "rad2deg", "conj", "clip", "abs"))
    ravel, squeeze, swapaxes, take = (_method(n) for n in ("ravel", "squeeze", "swapaxes", "take"))
    cumsum, cumprod, sort, argsort, argtopk, topk = (
        _method(n) for n in ("cumsum", "cumprod", "sort", "argsort", "argtopk", "topk")
    )
    nonzero_values, choose, repeat, searchsorted = (
        _method(n) for n in ("nonzero_values", "choose", "repeat", "searchsorted")
    )
    nonzero: Callable[..., tuple[TensorVariable, ...] | TensorVariable] = _method("nonzero")
    zeros_like, ones_like = _method("zeros_like"), _method("ones_like")
    conjugate, diagonal, trace, fill = (_method(n) for n in ("conj", "diagonal", "trace", "fill"))
    set, inc, copy = _method("set_subtensor"), _method("inc_subtensor"), _method("tensor_copy")

    # Attributes --------------------------------------------------------------------------------------------

    @property
    def dtype(self) -> str:
        """Name of the dtype of the elements."""
        return self.type.dtype

    @property
    def ndim(self) -> int:
        """Number of dimensions."""
        return self.type.ndim

    @property
    def broadcastable(self) -> tuple[bool, ...]:
        """For each dimension, whether its size is statically 1."""
        return self.type.broadcastable

    @property
    def shape(self) -> TensorVariable:
        """The symbolic shape, an int64 vector; the static one is ``type.shape``."""
        return self._functions["shape"](self)

    @property
    def size(self) -> TensorVariable:
        """Symbolic number of elements."""
        return self._functions["size"](self)

    @property
    def real(self) -> TensorVariable:
        """Real part."""
        return self._functions["real"](self)

    @property
    def imag(self) -> TensorVariable:
        """Imaginary part."""
        return self._functions["imag"](self)

    @property
    def T(self) -> TensorVariable:
        """The variable with its axes reversed."""
        return self._functions["transpose"](self)

    @property
    def mT(self) -> TensorVariable:
        """The variable with its last two axes exchanged."""
        return self._functions["swapaxes"](self, -1, -2)

    # Shapes and types --------------------------------------------------------------------------------------

    def reshape(self, *sizes: SizeLike, shape: SizeLike = None, ndim: int | None = None) -> TensorVariable:
        """As ``graphc.tensor.reshape``; the sizes may be given one by one, or together as ``shape``."""
        if sizes and shape is not None:
            raise TypeError(f"reshape takes the sizes {sizes} or shape={shape}, not both")
        given = sizes if shape is None else (shape,)
        if len(given) == 1 and not (
            isinstance(given[0], int | np.integer) or getattr(given[0], "ndim", 1) == 0
        ):
            return self._functions["reshape"](self, given[0], ndim=ndim)
        return self._functions["reshape"](self, given, ndim=ndim)

    def dimshuffle(self, *pattern: int | str | Sequence[int | str]) -> TensorVariable:
        """Permute axes: each entry is an axis of this variable, or ``"x"`` for a new axis of size 1."""
        if len(pattern) == 1 and isinstance(pattern[0], list | tuple):
            return self._functions["dimshuffle"](self, tuple(pattern[0]))
        return self._functions["dimshuffle"](self, pattern)

    def transpose(self, *axes: AxisLike) -> TensorVariable:
        """As ``graphc.tensor.transpose``; the axes may be given one by one."""
        if len(axes) == 1 and (axes[0] is None or isinstance(axes[0], list | tuple | np.ndarray)):
            return self._functions["transpose"](self, axes[0])
        return self._functions["transpose"](self, axes or None)

    def flatten(self, ndim: int = 1) -> TensorVariable:
        """Join the last axes until ``ndim`` remain."""
        return self._functions["flatten"](self, ndim)

    def astype(self, dtype: DTypeLike) -> TensorVariable:
        """The elements converted to ``dtype``."""
        return self._functions["cast"](self, dtype)

    def transfer(self, target: str) -> Variable:
        """The variable on another target; see `graphc.graph.type.register_transfer`."""
        return transfer(self, target)  # type: ignore[arg-type]

    def norm(self, L: float, axis: AxisLike = None, keepdims: bool = False) -> TensorVariable:
        """Norm of order ``L``: ``sum(abs(x) ** L) ** (1 / L)``; 0 counts, inf takes the largest."""
        if L == 0:
            return self.neq(0).sum(axis=axis, keepdims=keepdims)
        magnitude = self.abs()
        if np.isposinf(L):
            return magnitude.max(axis=axis, keepdims=keepdims)
        return (magnitude**L).sum(axis=axis, keepdims=keepdims) ** (1.0 / L)

    def _where_sizes(self, sizes: Sequence[tuple[Variable, int, int]], message: str) -> TensorVariable:
        """This variable; it raises a ValueError unless each variable has that size along that axis."""
        return self._functions["where_sizes"](self, sizes, message)

    def compress(self, condition: TensorLike, axis: int | None = None) -> TensorVariable:
        """``graphc.tensor.compress(condition, self, axis)``."""
        return self._functions["compress"](condition, self, axis)

    # Indexing ----------------------------------------------------------------------------------------------

    def __getitem__(self, index: IndexLike) -> TensorVariable:
        return self._functions["getitem"](self, index)

    @property
    def at(self) -> At:
        """Changes at an index: ``x.at[index].max(y)``; also set, add, multiply and min."""
        return At(self)

    def __setitem__(self, index: IndexLike, value: TensorLike) -> None:
        raise TypeError(
            "symbolic variables do not change; use y = x[index].set(value) or x[index].inc(value)"
        )

    def __iter__(self) -> Iterator[TensorVariable]:
        if self.ndim == 0:
            raise TypeError(f"cannot iterate over the scalar {self}")
        length = self.type.shape[0]
        if length is None:
            raise TypeError(
                f"cannot iterate over {self}, whose length is not known before it is run; to loop over its "
                "rows, loop with `scan(step, sequences=[...])`; to unpack it, give its type a static shape"
            )
        return (self[i] for i in range(length))

    def __contains__(self, value: TensorLike) -> bool:
        # Code that has static shapes, too, asks whether None is in one.
        if value is None or isinstance(value, str | bytes):
            return False
        raise TypeError("`in` has no symbolic meaning; use graphc.tensor.any(graphc.tensor.eq(x, value))")

    def __bool__(self) -> bool:
        raise TypeError(
            f"{self} has no value before it is run, so it cannot be a condition; write "
            "switch(condition, a, b) or ifelse(condition, a, b) of graphc.tensor for `if`, &, | and "
            "~ for `and`, `or` and `not`, `while_loop` or `scan` for `while`"
        )


class At:
    """``x.at[index]``: changes of an array at an index, by JAX's names.

    Args:
        x: the array.
        index: once it is known.

    Examples:
        >>> pt.zeros(3).at[1].set(5.0).eval()
        array([0., 5., 0.])
    """

    def __init__(self, x: TensorOperators, index: IndexLike = None) -> None:
        self._x = x
        self._index = index

    def __getitem__(self, index: IndexLike) -> At:
        return At(self._x, index)

    def _part(self) -> TensorVariable:
        return self._x[self._index]

    def get(self) -> TensorVariable:
        """The part itself."""
        return self._part()

    def set(self, y: TensorLike) -> TensorVariable:
        """`set_subtensor`."""
        return self._x._functions["set_subtensor"](self._part(), y)

    def add(self, y: TensorLike) -> TensorVariable:
        """`inc_subtensor`."""
        return self._x._functions["inc_subtensor"](self._part(), y)

    def multiply(self, y: TensorLike) -> TensorVariable:
        """`mul_subtensor`."""
        return self._x._functions["mul_subtensor"](self._part(), y)

    mul = multiply

    def max(self, y: TensorLike) -> TensorVariable:
        """`max_subtensor`."""
        return self._x._functions["max_subtensor"](self._part(), y)

    def min(self, y: TensorLike) -> TensorVariable:
        """`min_subtensor`."""
        return self._x._functions["min_subtensor"](self._part(), y)


def _refuse(call: str, advice: str) -> Callable[[TensorVariable], Any]:
    def method(self: TensorVariable, *args: object, **kwargs: object) -> NoReturn:
        raise TypeError(f"{call} of {self}, which has no value before it is run; {advice}")

    return method


# What other libraries' arrays have, and what is written instead.
_ELSEWHERE = {
    **dict.fromkeys(
        ("item", "numpy", "tolist", "data", "tobytes", "block_until_ready"),
        "its eval(), or a function that returns it",
    ),
    **dict.fromkeys(("backward", "grad", "requires_grad", "requires_grad_"), "graphc.grad(cost, x)"),
    "detach": "graphc.disconnected_grad(x)",
    **dict.fromkeys(("to", "cuda", "cpu", "device"), 'graphc.function(..., mode="cuda")'),
    **dict.fromkeys(("view", "resize"), "its reshape(...)"),
    **dict.fromkeys(("float", "double", "int", "long", "type_as"), "its astype(dtype)"),
    **dict.fromkeys(("add_", "mul_", "fill_", "copy_", "zero_"), "a new variable: variables do not change"),
    "unsqueeze": "x[None] or graphc.tensor.expand_dims(x, axis)",
    "permute": "its transpose(...)",
    "append": "graphc.tensor.concatenate([x, y])",
}


class _NoAttribute(AttributeError):
    """There is no such attribute; what may have been meant is found when somebody reads the message."""

    def __init__(self, owner: TensorVariable, name: str) -> None:
        # Python would add a suggestion of its own if it were told of both.
        super().__init__(f"{type(owner).__name__!r} object has no attribute {name!r}")
        self._owner, self._missing = owner, name

    def __str__(self) -> str:
        name = self._missing
        if name.startswith("_"):
            return str(self.args[0])
        if name in _ELSEWHERE:
            return f"{self.args[0]}; use {_ELSEWHERE[name]}"
        if name in dir(import_module("graphc.tensor")):
            return f"{self.args[0]}; it is a function, graphc.tensor.{name}(x)"
        return f"{self.args[0]}{did_you_mean(name, dir(self._owner))}"

    def __reduce__(self) -> tuple[object, ...]:
        return AttributeError, (str(self),)


# As it is shown.
_NoAttribute.__name__ = _NoAttribute.__qualname__ = "AttributeError"
_NoAttribute.__module__ = "builtins"


class TensorVariable(TensorOperators, Variable):
    """A variable whose values are NumPy arrays.

    ``x == y`` asks whether both are the same variable, as in PyTensor, so that variables are keys of dicts;
    ``x.eq(y)`` and ``graphc.tensor.eq(x, y)`` compare elements. All other operators are NumPy's.

    Examples:
        >>> pt.vector("x").dtype, pt.vector("x").ndim
        ('float64', 1)
    """

    type: TensorType
    _functions: ClassVar[Mapping[str, AnyFunction]] = _NotLoaded()

    # Also what functions of `math` ask for.
    __call__ = _refuse(
        "a call", "compile a function, graphc.function([x], y)(value), or use eval({x: value})"
    )
    __float__ = _refuse("float()", "use its astype('float64'), functions of graphc.tensor, or eval()")
    __int__ = _refuse("int()", "use its astype('int64'), or eval()")
    __complex__ = _refuse("complex()", "use its astype('complex128'), or eval()")
    __len__ = _refuse("len()", "use its shape[0]")

    def __format__(self, spec: str) -> str:
        if spec:
            raise TypeError(
                f"the format {spec!r} of {self}, which has no value before it is run; format its eval(), "
                "or a result of a function"
            )
        return str(self)

    if TYPE_CHECKING:

        def eval(
            self, inputs_to_values: Mapping[Key, object] | None = None, **kwargs: object
        ) -> np.ndarray: ...

    else:  # for a type checker only constants are integers, and it knows the attributes

        def __getattr__(self, name: str) -> NoReturn:
            raise _NoAttribute(self, name)

        __index__ = _refuse(
            "an integer", "use graphc.tensor.arange, or `scan(step, n_steps=...)` for range(), or eval()"
        )


class TensorConstant(TensorVariable, Constant):
    """A tensor whose value is known, so that its type knows all sizes. The array is copied, and read-only.

    Raises:
        ArgumentError: the value has another shape or rank than the type; a TypeError and a ValueError.

    Examples:
        >>> type(pt.constant([1, 2])).__name__
        'TensorConstant'
    """

    def __init__(self, type: TensorType, data: npt.ArrayLike, name: str | None = None) -> None:
        sizes = np.shape(data)
        if type.shape != sizes:
            if len(sizes) != type.ndim or any(
                m not in (None, n) for m, n in zip(type.shape, sizes, strict=True)
            ):
                raise ArgumentError(f"a constant of type {type} cannot have a value of shape {sizes}")
            type = type.clone(shape=sizes)
        super().__init__(type, data, name)
        array = self.data
        # A view of the caller's array, even a read-only one, could still change through another view.
        if array.base is not None or array.flags.writeable or not array.flags.c_contiguous:
            array = np.array(array, order="C", copy=True)
            array.flags.writeable = False
            self.data = array

    def __array__(self, dtype: np.dtype | None = None, copy: bool | None = None) -> np.ndarray:
        """The value: read-only, unless another dtype or ``copy`` makes a copy of it."""
        if copy or (dtype is not None and np.dtype(dtype) != self.data.dtype):
            if copy is False:
                raise ValueError(
                    f"a constant of {self.type} cannot become an array of {dtype} without a copy"
                )
            return np.array(self.data, dtype=dtype, copy=True)
        return self.data

    @property
    def unique_value(self) -> np.generic | None:
        """The value that all elements share; None when they differ or there are none."""
        data = self.data
        if data.size == 0:
            return None
        first = data.flat[0]
        return first if data.size == 1 or bool((data == first).all()) else None

    def signature(self) -> tuple[TensorType, bytes]:
        """Equal for constants of one type and value; NaN is equal to NaN here."""
        return self.type, self.data.tobytes()

    def _scalar(self, convert: Callable[[Any], _Number]) -> _Number:
        if self.data.ndim:
            raise TypeError(
                f"only a constant of 0 dimensions converts to a Python number, got one of {self.type}"
            )
        return convert(self.data.item())

    def __index__(self) -> int:
        if self.data.dtype.kind not in "biu":
            raise TypeError(f"only an integer constant can be an index, got one of {self.type}")
        return self._scalar(int)

    def __int__(self) -> int:
        return self._scalar(int)

    def __float__(self) -> float:
        return self._scalar(float)

    def __complex__(self) -> complex:
        return self._scalar(complex)

    def __bool__(self) -> bool:
        return self._scalar(bool)

    def __copy__(self) -> TensorConstant:
        return self

    def __deepcopy__(self, memo: dict[int, object]) -> TensorConstant:
        return self


class TensorSharedVariable(TensorVariable, SharedVariable):
    """A shared tensor; its value is always a C-contiguous, aligned array, which compiled code can read."""

    def _canonical(self, value: object, borrow: bool) -> np.ndarray:
        array = self.type.filter(value, strict=self._strict, allow_downcast=self._allow_downcast)
        if borrow and type(array) is np.ndarray and array.flags.carray:
            return array
        return np.array(array, order="C", copy=True, subok=False)

    def _replacement(self, value: object, borrow: bool) -> np.ndarray:
        """An array of its own: functions that run may still read the old one."""
        return self._canonical(value, borrow)

    def get_value(self, borrow: bool = False, return_internal_type: bool = False) -> np.ndarray:
        """The value: a copy, or with ``borrow`` the array itself.

        Functions for a device keep it there: then it is a copy on the host, and an array of the device
        (``graphc_runtime.cuda.array.DeviceArray``) with ``return_internal_type``.
        """
        array = self.container[0]
        if is_on_device(array):
            return array if return_internal_type else np.asarray(array)
        return array if borrow else array.copy()

    def zero(self, borrow: bool = False) -> None:
        """Set all elements to 0; with ``borrow`` in place, also in a caller's array that was borrowed."""
        array = self.container[0]
        if borrow and isinstance(array, np.ndarray) and array.flags.writeable:
            array.fill(0)
        else:
            self.container[0] = np.zeros(array.shape, array.dtype)
