# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Assignment to tensors, and which tensors it changes: those that share memory in NumPy.

``x[i] = y``, ``x += y`` and ``out=x`` give the handle x another value. Arrays that somebody else reads are
never written to: an array that is written in place has no second reader, otherwise it is copied first. So
recordings, queued operations, NumPy's views of a tensor and copies of handles keep the value that they saw.

The tensors that look at one array in NumPy (``x``, ``x[1:]``, ``x.T[0]``, ``x.reshape(-1)``) are a `Family`.
It holds the value of that array, ``whole``; each member is a chain of views of it. A write through any member
is a write to the whole. Members that overlap what is written lose their data, and have them computed from the
whole when they are next read. Nothing that reads a tensor gets by without its data, so no read sees an old
value, whichever way the member was made and whether the environment is eager, lazy or recording.

Which functions give views, and when a reshaped array is one, is what NumPy does with an array in C order.

Source: https://numpy.org/doc/stable/user/basics.copies.html.
"""

from __future__ import annotations

import sys
import warnings
import weakref
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias, cast

import numpy as np

from graphc.graph.basic import Variable
from graphc.immediate.operation import OpWrapper, active_trace
from graphc.immediate.record import token_of
from graphc.immediate.tensor import Tensor, _bare
from graphc_runtime.marshal import demand_numbers


class Event(NamedTuple):
    """One launch of an executable.

    Attributes:
        name: the operation.
        inputs: dtype and shape of each input.
        seconds: how long it ran, without compilation.
        bytes: bytes of the results.
        operations: operations in the launch; more than 1 when a queue was launched.
    """

    name: str
    inputs: tuple[str, ...]
    seconds: float
    bytes: int
    operations: int


class EventLog(deque[Event]):
    """The events in order, the newest 100,000 of them. It prints as a table."""

    def __init__(self) -> None:
        super().__init__(maxlen=100_000)

    @property
    def seconds(self) -> float:
        """Time of all events."""
        return sum(event.seconds for event in self)

    def __str__(self) -> str:
        rows = [("operation", "us", "bytes", "inputs")]
        rows += [(e.name, f"{e.seconds * 1e6:.1f}", str(e.bytes), ", ".join(e.inputs)) for e in self]
        widths = [max(len(row[column]) for row in rows) for column in range(3)]
        lines = [
            f"{name:<{widths[0]}}  {us:>{widths[1]}}  {size:>{widths[2]}}  {inputs}"
            for name, us, size, inputs in rows
        ]
        return "\n".join(lines)


if TYPE_CHECKING:
    from graphc.graph.tensor import IndexLike
    from graphc.immediate.executable import ExecutableCache, Owner
    from graphc.immediate.lazy import Queue
    from graphc.immediate.place import Host
    from graphc.immediate.record import Recorders
    from graphc_runtime.cuda.array import DeviceArray

Chain = tuple["Step", ...]
# What stands in a call or between brackets.
Argument: TypeAlias = Any


def _reshaped(
    a: np.ndarray, *sizes: Argument, shape: Argument = None, newshape: Argument = None, **options: Argument
) -> np.ndarray:
    given = shape if shape is not None else newshape if newshape is not None else sizes
    if isinstance(given, tuple) and given and isinstance(given[0], tuple | list | np.ndarray):
        given = given[0]
    return a.reshape(tuple(map(int, given)) if isinstance(given, tuple | list | np.ndarray) else int(given))


def _shuffled(a: np.ndarray, *pattern: Argument) -> np.ndarray:
    if len(pattern) == 1 and isinstance(pattern[0], tuple | list):
        pattern = tuple(pattern[0])
    kept = [axis for axis in pattern if axis != "x"]
    dropped = tuple(axis for axis in range(a.ndim) if axis not in kept)
    a = (
        a.transpose([*kept, *dropped]).reshape([a.shape[axis] for axis in kept])
        if dropped
        else a.transpose(kept)
    )
    return a[tuple(None if axis == "x" else slice(None) for axis in pattern)]


def _split(a: np.ndarray, sizes: Argument, n_splits: int | None = None, axis: int = 0) -> list[np.ndarray]:
    return np.split(a, np.cumsum(np.asarray(sizes))[:-1], axis)


def _transposed(a: np.ndarray, *axes: Argument, **named: Argument) -> np.ndarray:
    return a.transpose(*axes, *named.values())


# The functions whose results are views: those of that name in NumPy, and all as functions of its arrays.
_SAME_NAME = (
    "array_split atleast_1d atleast_2d atleast_3d broadcast_to diagonal dsplit expand_dims flip fliplr "
    "flipud hsplit imag moveaxis ravel real rollaxis rot90 squeeze swapaxes vsplit"
).split()
_VIEWS: dict[str, Callable[..., Argument]] = {
    **{name: getattr(np, name) for name in _SAME_NAME},
    **dict.fromkeys(("mT", "matrix_transpose", "linalg.matrix_transpose"), lambda a: a.swapaxes(-1, -2)),
    **dict.fromkeys(("permute_dims", "transpose"), _transposed),
    "T": lambda a: a.T,
    "diag": lambda v, k=0: np.diagonal(v, k),
    "dimshuffle": _shuffled,
    "getitem": lambda a, index: a[index],
    "linalg.diagonal": lambda a, offset=0, axis1=-2, axis2=-1: np.diagonal(a, offset, axis1, axis2),
    "reshape": _reshaped,
    "split": _split,
}
# These copy where memory does not allow a view.
_MAY_COPY = frozenset({"ravel", "reshape"})
# How much NumPy may search for an element that two views share; else they count as sharing.
_SEARCH = 1000


class Step:
    """One view of a chain: a function of the namespace and its arguments.

    Args:
        wrapper: the function.
        args, kwargs: its arguments after the tensor.
        item: which of several results; None for a function with one.
    """

    __slots__ = ("args", "item", "kwargs", "wrapper")

    def __init__(
        self,
        wrapper: OpWrapper,
        args: tuple[Argument, ...],
        kwargs: Mapping[str, Argument],
        item: int | None = None,
    ) -> None:
        self.wrapper = wrapper
        self.args = args
        self.kwargs = kwargs
        self.item = item

    def run(self, x: Tensor) -> Tensor:
        """The view of a tensor, computed by the environment: queued and recorded like anything else."""
        found = OpWrapper.__call__(self.wrapper, x, *self.args, **self.kwargs)
        return found if self.item is None else found[self.item]

    def view(self, array: np.ndarray) -> np.ndarray:
        """The view of an array."""
        kwargs = {key: plain(value) for key, value in self.kwargs.items() if key != "copy"}
        found = _VIEWS[self.name](array, *map(plain, self.args), **kwargs)
        return found if self.item is None else found[self.item]

    @property
    def name(self) -> str:
        """The function's name."""
        return self.wrapper.name.removeprefix("Tensor.").removeprefix("array_api.")

    @property
    def index(self) -> Argument:
        """The index between brackets, if the view is one; else None."""
        return self.args[0] if self.wrapper.name == "getitem" else None


class Family:
    """The tensors that look at one array.

    Attributes:
        whole: the value of the array, a tensor that nobody else holds.
        members: references to the tensors; each has its chain of views.
    """

    __slots__ = ("__weakref__", "_forget", "members", "whole")

    def __init__(self, whole: Tensor) -> None:
        self.whole = whole
        self.members: list[weakref.ref[Tensor]] = []
        self._forget = _forgetting(weakref.ref(self))

    def add(self, tensor: Tensor, chain: Chain) -> None:
        """Let a tensor be a view of the whole."""
        self.members.append(weakref.ref(tensor, self._forget))
        tensor._family, tensor._chain = self, chain

    def alive(self) -> list[Tensor]:
        """The members that somebody holds."""
        found = [reference() for reference in list(self.members)]
        return [x for x in found if x is not None and getattr(x, "_family", None) is self]


def _forgetting(family: weakref.ref[Family]) -> Callable[[weakref.ref[Tensor]], None]:
    """Callback for a member that goes: a last one that has its value needs no whole any more."""

    def forget(reference: weakref.ref[Tensor]) -> None:
        found = family()
        if found is None:
            return
        if reference in found.members:
            found.members.remove(reference)
        if len(found.members) == 1:
            last = found.members[0]()
            if last is not None and not is_stale(last):
                _leave(last)

    return forget


def _leave(x: Tensor) -> None:
    if hasattr(x, "_family"):
        del x._family, x._chain


def is_stale(x: Tensor) -> bool:
    """The tensor is a view of something that was written to since it was computed."""
    return not (hasattr(x, "_data") or hasattr(x, "_token"))


def plain(x: Argument) -> Argument:
    """An index or another argument as NumPy takes it: tensors are arrays, those of one element numbers."""
    if isinstance(x, Tensor):
        return x._array()[()] if not x.ndim else x.__array__()
    if isinstance(x, tuple | list):
        return type(x)(map(plain, x)) if type(x) in (tuple, list) else tuple(map(plain, x))
    if isinstance(x, slice):
        return slice(plain(x.start), plain(x.stop), plain(x.step))
    if isinstance(x, np.ndarray):
        demand_numbers(x)
    return x


def is_basic(index: Argument) -> bool:
    """The index is one of those that give views in NumPy: integers, slices, ``...`` and None."""
    if isinstance(index, tuple):
        return all(map(is_basic, index))
    if isinstance(index, Tensor):
        return not index.ndim and index._kind.numpy_dtype.kind in "iu"
    is_integer = isinstance(index, int | np.integer) and not isinstance(index, bool)
    return is_integer or index is None or index is Ellipsis or isinstance(index, slice)


def _has_ellipsis(index: Argument) -> bool:
    return index is Ellipsis or (isinstance(index, tuple) and any(item is Ellipsis for item in index))


def _frozen(x: Argument) -> Argument:
    """An argument that stays as it is when tensors in it are written to."""
    if isinstance(x, Tensor):
        return _bare(x)
    if type(x) in (tuple, list):
        return type(x)(map(_frozen, x))
    if type(x) is slice and not all(end is None or type(end) is int for end in (x.start, x.stop, x.step)):
        return slice(_frozen(x.start), _frozen(x.stop), _frozen(x.step))
    return x


def _through(chain: Chain, array: np.ndarray) -> np.ndarray:
    for step in chain:
        array = step.view(array)
    return array


class ViewWrapper(OpWrapper):
    """A function whose result is a view of its first argument."""

    def __call__(self, *args: Argument, **kwargs: Argument) -> Argument:
        """Results of the function, as tensors that change with the one they are views of."""
        result = OpWrapper.__call__(self, *args, **kwargs)
        x = args[0] if args else None
        if type(x) is Tensor and not kwargs.get("copy"):
            if type(result) is Tensor:
                self.env._link(result, x, Step(self, _frozen(args[1:]), kwargs))
            elif isinstance(result, list | tuple):
                for item, each in enumerate(result):
                    if type(each) is Tensor:
                        self.env._link(each, x, Step(self, _frozen(args[1:]), kwargs, item))
        return result


def wrapper_of(
    env: Owner, name: str, function: Callable[..., Argument], signature: Callable[..., object] | None = None
) -> OpWrapper:
    """A function in an environment; one that gives views in NumPy does so here."""
    known = name.removeprefix("Tensor.").removeprefix("array_api.") in _VIEWS
    return (ViewWrapper if known else OpWrapper)(env, name, function, signature)


class Assigning:
    """The part of an environment that changes what tensors stand for."""

    lazy: bool
    numpy_to_tensor: Callable[..., Tensor]
    _cache: ExecutableCache
    _check_owner: Callable[[Tensor], None]
    _log: EventLog | None
    _place: Host
    _queue: Queue
    _recorders: Recorders

    def _named(self, name: str) -> OpWrapper:
        """A function of the namespace."""
        return getattr(self, name)

    # Families ----------------------------------------------------------------------------------------------

    def _link(self, result: Tensor, x: Tensor, step: Step) -> None:
        """Let a result be a view of x."""
        if result is x or hasattr(result, "_family"):
            return
        if not x._kind.ndim and not isinstance(step.view(np.empty((), x.dtype)), np.ndarray):
            return  # some functions give numbers, which are no views
        with self._cache.lock:
            family, chain = self._place_of(x)
            if family is None:
                token_of(x)  # x and the whole are one value
                family = Family(_bare(x))
                family.add(x, ())
            family.add(result, (*chain, step))
            # Another member may have gone in between, and x been the last.
            x._family, x._chain = family, chain

    def _place_of(self, x: Tensor) -> tuple[Family | None, Chain]:
        """The family of a tensor and the view that it is, where it turns out to be one."""
        family, chain = getattr(x, "_family", None), getattr(x, "_chain", ())
        if family is not None and not self._is_view(family.whole, chain):
            _leave(x)
            return None, ()
        return family, chain

    def _refresh(self, x: Tensor) -> None:
        """Compute a view of something that was written to; it may be queued after that."""
        with self._cache.lock:
            if not is_stale(x):
                return
            whole, chain = x._family.whole, x._chain
            if not chain:
                token_of(whole)
                self._adopt(x, whole)
            elif self._writes_arrays():
                x._data = np.array(_through(chain, whole._array()), order="C")
            else:
                for step in chain:
                    whole = step.run(whole)
                self._adopt(x, whole)

    def _settle(self, x: Tensor) -> np.ndarray | DeviceArray:
        """The data of a tensor that has none yet."""
        with self._cache.lock:
            if is_stale(x):
                self._refresh(x)
            if not hasattr(x, "_data"):
                self._queue.force(x)
            return x._data

    def _adopt(self, x: Tensor, value: Tensor) -> None:
        """Let a handle stand for another tensor's value."""
        with self._cache.lock:
            self._queue.release(x)
            if hasattr(x, "_host"):
                del x._host
            if hasattr(value, "_token"):
                x._token = value._token
            elif hasattr(x, "_token"):
                del x._token
            if hasattr(value, "_data"):
                x._data = value._data
            else:
                if hasattr(x, "_data"):
                    del x._data
                self._queue.share(x)

    def _parent(self, x: Tensor) -> Tensor:
        """The present tensor of which a member of a family is an index."""
        whole = x._family.whole
        for step in x._chain[:-1]:
            whole = step.run(whole)
        return whole

    # Writing -----------------------------------------------------------------------------------------------

    def _writes_arrays(self) -> bool:
        """True if nobody has to hear of an operation, so that NumPy may do it."""
        return self._place.may_connect and not (self.lazy or self._recorders.count or self._log is not None)

    def _assign(self, x: Tensor, index: IndexLike, y: Argument) -> None:
        """``x[index] = y``.

        Raises:
            TypeError: y is symbolic, or a function is being traced.
            IndexError: the index does not fit.
            ValueError: y does not fit what is indexed.
        """
        self._check_assignable(x, y)
        with self._cache.lock:
            family, chain = self._place_of(x)
            if type(y) is Tensor and _is_part(y, family, chain, index):
                return
            holder = x if family is None else family.whole
            if self._writes_arrays():
                value, place = _as_numpy(y), plain(index)
                stale = [] if family is None else _touched(family, chain, place)
                _forget_values(stale)
                _written_in_place(holder, chain, place, value)
            else:
                new = self._written(holder, chain, index, self._castable(y, x._kind.dtype))
                stale = [] if family is None else self._touched_by(family, chain, index)
                self._adopt(holder, new)
                _forget_values(stale)
            if family is not None:
                x._family, x._chain = family, chain

    def _put(self, x: Tensor, value: Tensor, what: str) -> Tensor:
        """Store a result in x: ``x += y`` and ``out=x``; returns x.

        Raises:
            TypeError: the dtypes are not of one kind.
            ValueError: the shapes differ.
        """
        self._check_assignable(x, value)
        if value.dtype != x.dtype:
            if not np.can_cast(value.dtype, x.dtype, "same_kind"):
                raise TypeError(
                    f"{what} gives {value.dtype}, which cannot be stored in a tensor of {x.dtype} (casting "
                    f"rule 'same_kind'); make a new tensor, x = x + y, or convert the operand with astype"
                )
            value = self._named("cast")(value, x.dtype)
        with self._cache.lock:
            if value.ndim != x.ndim or self._queue.ones(value) != self._queue.ones(x) or not self.lazy:
                found, wanted = tuple(value._held().shape), tuple(x._held().shape)
                if found != wanted:
                    raise ValueError(
                        f"{what} gives shape {found}, which cannot be stored in a tensor of shape {wanted}; "
                        "make a new tensor, x = x + y"
                    )
            if hasattr(x, "_family"):
                self._assign(x, Ellipsis, value)
            else:
                self._adopt(x, value)
        return x

    def _store(self, out: Argument, value: Tensor, what: str) -> Argument:
        """Put a result into a tensor or an array of NumPy; returns that.

        Raises:
            TypeError: neither of them, or the dtypes are not of one kind.
        """
        if isinstance(out, tuple) and len(out) == 1:
            out = out[0]
        if isinstance(out, np.ndarray):
            array = np.asarray(value)
            if array.shape != out.shape:
                raise ValueError(f"{what} gives shape {array.shape}, out= has {out.shape}")
            np.copyto(out, array, casting="same_kind")
            return out
        if not isinstance(out, Tensor):
            raise TypeError(f"out= of {what} must be a tensor or an array, got {out!r:.60}")
        out._kind.env._check_owner(value)
        return out._kind.env._put(out, value, what)

    def _check_assignable(self, x: Tensor, y: Argument) -> None:
        if isinstance(y, Variable):
            raise TypeError(
                f"{y!r:.60} is symbolic and has no value that a tensor could hold; in a graph, and in a "
                "function that is traced (the body of scan, map, ...), write x = set_subtensor(x[index], y)"
            )
        if active_trace() is not None:
            raise TypeError(
                f"{x!r:.60} would change while a function is traced, that is once and not in each step; make "
                "a new value, x = x + y or x = set_subtensor(x[index], y), and return it"
            )
        if isinstance(y, Tensor):
            self._check_owner(y)
        else:
            demand_numbers(y)

    def _castable(self, y: Argument, dtype: str) -> Tensor:
        """The assigned value in the dtype of the tensor; as NumPy, whatever can be converted is."""
        if not isinstance(y, Tensor):
            y = _as_numpy(y)
            array = np.empty(np.shape(y), dtype)
            array[...] = y
            return self.numpy_to_tensor(array, copy=False)
        if y.dtype == dtype:
            return y
        if y._kind.numpy_dtype.kind == "c" and np.dtype(dtype).kind != "c":
            warnings.warn(
                f"assigning {y.dtype} to a tensor of {dtype} discards the imaginary part; take real(y) first",
                np.exceptions.ComplexWarning,
                stacklevel=4,
            )
            y = OpWrapper.__call__(self._named("real"), y)
        return self._named("cast")(y, dtype)

    def _written(self, whole: Tensor, chain: Chain, index: Argument, y: Tensor) -> Tensor:
        """The whole with part of a view of it replaced, computed by the environment."""
        if not chain:
            return self._set(whole, index, y)
        if len(chain) == 1 and chain[0].index is not None and index is Ellipsis:
            return self._set(whole, chain[0].index, y)
        parts = [n for n, step in enumerate(chain) if step.name in ("real", "imag")]
        if parts and whole._kind.numpy_dtype.kind == "c":
            cut = parts[-1]
            parent = whole
            for step in chain[:cut]:
                parent = step.run(parent)
            real, imag = (
                OpWrapper.__call__(part, parent) for part in (self._named("real"), self._named("imag"))
            )
            part = self._written(real if chain[cut].name == "real" else imag, chain[cut + 1 :], index, y)
            both = (part, imag) if chain[cut].name == "real" else (real, part)
            return self._written(
                whole, chain[:cut], Ellipsis, self._named("cast")(self._named("complex")(*both), whole.dtype)
            )
        shape = tuple(map(int, whole._held().shape))
        numbers = _through(chain, np.arange(int(np.prod(shape))).reshape(shape))
        if not numbers.flags.writeable:
            raise ValueError(
                "assignment destination is read-only: it is a view that has elements several times"
            )
        flat = OpWrapper.__call__(self._named("ravel"), whole)
        return OpWrapper.__call__(self._named("reshape"), self._set(flat, numbers[plain(index)], y), shape)

    def _set(self, whole: Tensor, index: Argument, y: Tensor) -> Tensor:
        raise NotImplementedError

    def _is_view(self, whole: Tensor, chain: Chain) -> bool:
        """True if NumPy's result of the chain shares memory."""
        if not any(step.name in _MAY_COPY for step in chain[1:]):
            return True
        layout = np.empty(whole._held().shape, whole.dtype)
        return np.may_share_memory(layout, _through(chain, layout)) or not layout.size

    def _touched_by(self, family: Family, chain: Chain, index: Argument) -> list[Tensor]:
        """The members that a write changes, or may change where their sizes are not known yet."""
        if self.lazy:
            return [x for x in family.alive() if self._is_view(family.whole, x._chain)]
        return _touched(family, chain, plain(index))


def _is_part(y: Tensor, family: Family | None, chain: Chain, index: Argument) -> bool:
    """True if y is ``x[index]``, as the end of ``x[index] += 1`` assigns it."""
    if family is None or getattr(y, "_family", None) is not family or len(y._chain) != len(chain) + 1:
        return False
    same = all(a is b for a, b in zip(y._chain, chain, strict=False))
    return same and y._chain[-1].index is index


def _as_numpy(y: Argument) -> Argument:
    if isinstance(y, Tensor):
        return y._array()
    return np.asarray(plain(y)) if isinstance(y, list | tuple) else y


def _touched(family: Family, chain: Chain, place: Argument) -> list[Tensor]:
    """The members that have elements of what is written."""
    array = np.empty(family.whole._held().shape, family.whole.dtype)
    written = _through(chain, array)
    if is_basic(place):
        written = written[
            place if isinstance(place, tuple) and _has_ellipsis(place) else (*_tupled(place), ...)
        ]
    return [x for x in family.alive() if _share(written, _through(x._chain, array))]


def _tupled(place: Argument) -> tuple[Argument, ...]:
    return place if isinstance(place, tuple) else (place,) if place is not Ellipsis else ()


def _share(a: np.ndarray, b: np.ndarray) -> bool:
    try:
        return np.shares_memory(a, b, max_work=cast("Literal[-1]", _SEARCH))
    except np.exceptions.TooHardError:
        return True


def _forget_values(stale: Sequence[Tensor]) -> None:
    for x in stale:
        x._kind.env._queue.release(x)
        for name in ("_data", "_host", "_token"):
            if hasattr(x, name):
                delattr(x, name)


def _written_in_place(holder: Tensor, chain: Chain, place: Argument, value: Argument) -> None:
    """Write to the array of a tensor, or to a copy that takes its place."""
    if not _is_own(holder):
        holder._data = np.array(holder._array(), order="C")
    for name in ("_host", "_token"):
        if hasattr(holder, name):
            delattr(holder, name)
    _through(chain, holder._array())[place] = value


def _is_own(x: Tensor) -> bool:
    """True if nobody but the tensor refers to its array."""
    data = x._held()
    if not isinstance(data, np.ndarray) or not (data.flags.owndata and data.flags.writeable):
        return False
    del data
    return sys.getrefcount(x._data) <= 2
