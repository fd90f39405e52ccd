# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The three kinds of node of a graph: ``Variable``, ``Constant`` and ``Apply``.

Source location of a node in the user's code.
"""

from __future__ import annotations

import itertools
import os
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from types import FrameType, SimpleNamespace, TracebackType
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, SupportsIndex, TypeAlias, TypeVar

from graphc import hooks
from graphc.config import config
from graphc.errors import TestValueError, keyword_hint, unexpected_keyword

if TYPE_CHECKING:
    from types import EllipsisType

    import numpy.typing as npt

    from graphc.graph.op import Op
    from graphc.graph.type import Type


_PACKAGE_NAMES = ("graphc", "graphc_dialects", "graphc_runtime", "graphc_tools")
_INTERNAL: dict[str, bool] = {"<frozen importlib._bootstrap>": True}


class SourceLocation(NamedTuple):
    """A line of the user's code.

    Attributes:
        file: path as Python reports it.
        line: 1-based line number.
        function: name of the function the line is in, ``<module>`` at the top level.
    """

    file: str
    line: int
    function: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line} in {self.function}"

    @property
    def short(self) -> str:
        """File and line; of a file below the current folder, its path from there."""
        file = os.path.relpath(self.file) if os.path.isabs(self.file) else self.file
        return f"{self.file if file.startswith('..') else file}:{self.line}"


def _is_internal(frame: FrameType) -> bool:
    """True if the code of ``frame`` belongs to graphc, by its module's top-level package."""
    module = frame.f_globals.get("__name__") or ""
    return module.partition(".")[0] in _PACKAGE_NAMES or frame.f_code.co_filename.startswith(
        "<frozen importlib"
    )


# What `located` says.
_GIVEN: ContextVar[SourceLocation | None] = ContextVar("_GIVEN", default=None)


@contextmanager
def located(file: str, line: int, function: str = "<module>") -> Iterator[None]:
    """Gives the variables and nodes made meanwhile a place of their own, which errors name.

    For programs that write graphs from another description: a model in another language, or a graph of
    another library, whose users' lines are not those of the program. With an empty name of a file they have
    no place.

    Examples:
        >>> with graphc.located("model.py", 7):
        ...     y = pt.exp(pt.vector("x"))
        >>> y.owner.location.file, y.owner.location.line
        ('model.py', 7)
    """
    token = _GIVEN.set(SourceLocation(file, line, function))
    try:
        yield
    finally:
        _GIVEN.reset(token)


@contextmanager
def of_node(place: SourceLocation | None) -> Iterator[None]:
    """Gives what is made meanwhile the place of a node, where it has one.

    Derivatives have the line of the operation that they are of, in profiles and errors: the one line of
    `grad` would be that of a thousand operations. Rules of users' ops keep the lines of the rules.
    """
    token = None if place is None else _GIVEN.set(place)
    try:
        yield
    finally:
        if token is not None:
            _GIVEN.reset(token)


def capture() -> SourceLocation | None:
    """The innermost frame outside graphc's own packages, or None when there is none; or what `located` says.

    Every node asks for its location, so whether a file is internal is looked up once for each file name.
    """
    given = _GIVEN.get()
    if given is not None:
        return given if given.file else None
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        name = frame.f_code.co_filename
        internal = _INTERNAL.get(name)
        if internal is None:
            internal = _is_internal(frame)
            # Names such as <string> or <stdin> are shared by unrelated code, so they are judged each time.
            if not name.startswith("<"):
                _INTERNAL[name] = internal
        if not internal:
            return SourceLocation(name, frame.f_lineno, frame.f_code.co_name)
        frame = frame.f_back
    return None


def _without_own(trace: TracebackType | None) -> TracebackType | None:
    """A traceback without the frames of graphc; None where it has no others."""
    kept = []
    while trace is not None:
        if not _is_internal(trace.tb_frame):
            kept.append(trace)
        trace = trace.tb_next
    shorter: TracebackType | None = None
    for each in reversed(kept):
        shorter = TracebackType(shorter, each.tb_frame, each.tb_lasti, each.tb_lineno)
    return shorter


def shorten(error: BaseException) -> None:
    """Prepare an uncaught error for being shown: say which keyword may have been meant, and (unless
    ``config.traceback`` is ``"full"``) take out the frames of graphc, so that it ends at the user's line.

    Nothing is taken where no line of the user would be left. A note says that frames are hidden.
    """
    called = unexpected_keyword(error)
    tensor = sys.modules.get("graphc.tensor")
    if called is not None and tensor is not None:
        places = (vars(tensor), vars(tensor.TensorVariable.__mro__[1]))
        function = next((place[called[0]] for place in places if called[0] in place), print)
        if (function.__module__ or "").startswith("graphc."):
            error.add_note(f"{called[0]}() of graphc.tensor{keyword_hint(function, called[1])}")
    if config.traceback == "full":
        return
    taken, seen = False, set()
    each: BaseException | None = error
    while each is not None and id(each) not in seen:
        seen.add(id(each))
        shorter = _without_own(each.__traceback__)
        if shorter is not None and _length(shorter) < _length(each.__traceback__):
            each.__traceback__, taken = shorter, True
        each = each.__cause__ or each.__context__
    if taken and _HIDDEN not in getattr(error, "__notes__", ()):
        error.add_note(_HIDDEN)


_HIDDEN = '(frames of graphc are hidden; graphc.config.traceback = "full" shows them)'


def _length(trace: TracebackType | None) -> int:
    count = 0
    while trace is not None:
        trace, count = trace.tb_next, count + 1
    return count


def frames_inside() -> int:
    """Number of frames of graphc between the caller of this function and the user's code."""
    frame: FrameType | None = sys._getframe(1)
    depth = 0
    while frame is not None and _is_internal(frame):
        frame, depth = frame.f_back, depth + 1
    return depth


def describe(location: SourceLocation | None) -> str:
    """A clause for error messages, ``" (made at model.py:10 in loss)"``; empty when the place is unknown."""
    if location is None:
        return ""
    return f" (made at {location.short} in {location.function})"


# What `as_tensor_variable` takes: variables, whatever NumPy makes an array of, and sequences of these.
TensorLike: TypeAlias = "Variable | npt.ArrayLike | Sequence[TensorLike]"
# What stands in ``x[...]``.
IndexLike: TypeAlias = "TensorLike | slice | EllipsisType | tuple[IndexLike, ...] | None"

_auto_names = itertools.count()
AnyVariable = TypeVar("AnyVariable", bound="Variable")
Key = TypeVar("Key", bound="Variable | str")


def missing_test_value(error: TestValueError, kind: type[Exception]) -> None:
    """Says that there is no test value, as the setting `compute_test_value` has it."""
    if config.compute_test_value == "raise":
        raise kind(f"{error}, or graphc.config.compute_test_value to 'ignore'") from None
    if config.compute_test_value == "warn":
        warnings.warn(str(error), UserWarning, stacklevel=frames_inside() + 1)


class Tag(SimpleNamespace):
    """Attributes of a variable of the type ``of``, of which ``test_value`` is a value."""

    def __setattr__(self, name: str, value: object) -> None:
        super().__setattr__(name, self.of.filter(value) if name == "test_value" else value)


class Variable:
    """A value in a graph, known only by its type until the graph is run.

    Args:
        type: what values it may take.
        owner: the ``Apply`` that computes it; None for an input, a constant or a shared variable.
        index: which output of ``owner`` it is.
        name: a name for people; it has no meaning to the compiler.

    Examples:
        >>> x = pt.vector("x")
        >>> x.name, x.owner, x.type
        ('x', None, TensorType(float64, (?,)))
    """

    # Reduced form of a computed variable: `graphc.graph.pickling` says what it is.
    _reduced: ClassVar[Callable[[Variable], tuple[object, ...]]]

    def __init__(
        self, type: Type, owner: Apply | None = None, index: int | None = None, name: str | None = None
    ) -> None:
        if name is not None and not isinstance(name, str):
            raise TypeError(f"the name of a variable must be a string, got {name!r}")
        self.type = type
        self.owner = owner
        self.index = index
        self.name = name
        self._location: SourceLocation | None = None
        self.auto_name = f"auto_{next(_auto_names)}"

    if TYPE_CHECKING:
        # What a variable can do beyond this depends on its type; tensors have these, and many more.
        @property
        def dtype(self) -> str: ...
        @property
        def shape(self) -> Variable: ...
        @property
        def sum(self) -> Callable[..., Variable]: ...
        @property
        def argsort(self) -> Callable[..., Variable]: ...
        @property
        def diagonal(self) -> Callable[..., Variable]: ...
        @property
        def dimshuffle(self) -> Callable[..., Variable]: ...
        @property
        def searchsorted(self) -> Callable[..., Variable]: ...
        @property
        def zeros_like(self) -> Callable[..., Variable]: ...

        def __neg__(self) -> Variable: ...
        def __add__(self, other: TensorLike) -> Variable: ...
        def __radd__(self, other: TensorLike) -> Variable: ...
        def __sub__(self, other: TensorLike) -> Variable: ...
        def __rsub__(self, other: TensorLike) -> Variable: ...
        def __mul__(self, other: TensorLike) -> Variable: ...
        def __rmul__(self, other: TensorLike) -> Variable: ...
        def __truediv__(self, other: TensorLike) -> Variable: ...
        def __rtruediv__(self, other: TensorLike) -> Variable: ...
        def __pow__(self, other: TensorLike) -> Variable: ...
        def __getitem__(self, index: IndexLike) -> Variable: ...

    @property
    def location(self) -> SourceLocation | None:
        """The user's line that made this variable, where known."""
        return self.owner.location if self.owner is not None else self._location

    @property
    def tag(self) -> Tag:
        """Attributes that a user or a tool attaches; the compiler ignores them."""
        tag = self.__dict__.get("_tag")
        if tag is None:
            tag = self.__dict__["_tag"] = Tag(of=self.type)
        return tag

    def get_test_value(self) -> Any:
        """``tag.test_value``, and of constants and shared variables their value.

        Raises:
            TestValueError: there is none.
        """
        if "test_value" not in vars(self.tag):
            raise TestValueError(
                f"{self}{describe(self.location)} has no test value; set {self}.tag.test_value"
            )
        return self.tag.test_value

    def take_test_value(self, source: Variable, *index: int) -> None:
        """In a graph within a graph, the test value of what this variable stands for, or a row of it."""
        if config.compute_test_value != "off":
            with suppress(TestValueError, IndexError):
                value = source.get_test_value()
                self.tag.test_value = value[index] if index else value

    def __str__(self) -> str:
        if self.name is not None:
            return self.name
        if self.owner is None:
            return f"<{self.type}>"
        if len(self.owner.outputs) == 1 and self.index == 0:
            return f"{self.owner.op}.out"
        return f"{self.owner.op}.{self.index}"

    __repr__ = __str__

    def _repr_svg_(self) -> str | None:
        """SVG of a variable that is computed, for notebooks."""
        return hooks.picture()(self)

    def clone(self, name: str | None = None) -> Variable:
        """A new root variable of the same type; ``name`` defaults to this one's."""
        copy = self.type.make_variable(name=self.name if name is None else name)
        copy._location = self.location
        if "_tag" in self.__dict__:
            copy.__dict__["_tag"] = Tag(**vars(self.tag))
        return copy

    def equals(self, other: object) -> bool:
        """True if both are the same node; constants compare by type and value instead."""
        return self is other

    def get_parents(self) -> list[Apply]:
        """The owner in a list, or an empty list for a root."""
        return [] if self.owner is None else [self.owner]

    def dprint(self, **kwargs: object) -> str:
        """Print the graph below this variable; arguments as in `graphc.dprint`."""
        return hooks.debugprint()(self, **kwargs)

    def eval(self, inputs_to_values: Mapping[Key, object] | None = None, **kwargs: object) -> Any:
        """Compile and run the graph that computes this variable.

        Args:
            inputs_to_values: values of the graph's inputs, keyed by the variables or by their names.
            kwargs: further arguments of `graphc.function`.

        Returns:
            The value; of a tensor a NumPy array, or one of the device for which the function is compiled.
            Compiled functions are kept, so a second call with the same inputs does not compile.
        """
        return hooks.evaluate()(self, inputs_to_values or {}, kwargs)

    def __getstate__(self) -> dict[str, object]:
        state = self.__dict__.copy()
        state.pop("_compiled", None)
        state.pop("_reads", None)
        return state

    def __reduce_ex__(self, protocol: SupportsIndex) -> str | tuple[object, ...]:
        if self.owner is None:
            return super().__reduce_ex__(protocol)
        return Variable._reduced(self)

    def __copy__(self) -> Variable:
        copy = type(self).__new__(type(self))
        copy.__dict__.update(self.__getstate__())
        return copy


def remember(v: AnyVariable, *sources: Variable) -> AnyVariable:
    """Note that ``v`` was written as something computed from ``sources``, of which nothing is left in it: a
    size that is known, or a derivative that does not depend on the point.

    The note keeps an input that only such an expression reads from counting as unused, and lets replacements
    of ``sources`` check the sizes that ``v`` relies on. It is not part of pickles.
    """
    if sources:
        v.__dict__["_reads"] = sources
    return v


def reads_of(v: Variable) -> tuple[Variable, ...]:
    """The reads that `remember` noted."""
    found: tuple[Variable, ...] = v.__dict__.get("_reads", ())
    return found


class Constant(Variable):
    """A variable whose value is known.

    Args:
        type: its type.
        data: the value; passed through ``type.filter``.
        name: a name for people.

    Examples:
        >>> two = pt.constant(2.0)
        >>> isinstance(two, graphc.Constant), float(two.data)
        (True, 2.0)
    """

    def __init__(self, type: Type, data: object, name: str | None = None) -> None:
        super().__init__(type, None, None, name)
        self.data = type.filter(data)

    @property
    def value(self) -> Any:
        """The value; the same as ``data``."""
        return self.data

    def get_test_value(self) -> Any:
        return self.data

    def equals(self, other: object) -> bool:
        return self is other or (
            isinstance(other, Constant)
            and self.type == other.type
            and bool(self.type.values_eq(self.data, other.data))
        )

    def clone(self, name: str | None = None) -> Constant:
        copy = type(self)(self.type, self.data, self.name if name is None else name)
        copy._location = self._location
        return copy

    def __str__(self) -> str:
        if self.name is not None:
            return self.name
        text = str(self.data)
        return text if len(text) <= 40 and "\n" not in text else f"Constant{{{self.type}}}"

    __repr__ = __str__


class Apply:
    """The application of an op to inputs.

    Each output must be free (no owner yet); it becomes owned by this node.

    Args:
        op: the operation.
        inputs: variables it reads.
        outputs: fresh variables it computes.

    Attributes:
        location: the user's line that made the node, where known.

    Examples:
        >>> y = pt.exp(pt.vector("x"))
        >>> type(y.owner).__name__, y.owner.inputs[0].name
        ('Apply', 'x')
    """

    def __init__(self, op: Op, inputs: Sequence[Variable], outputs: Sequence[Variable]) -> None:
        self.op = op
        self.inputs = list(inputs)
        self.outputs = list(outputs)
        for x in self.inputs:
            if not isinstance(x, Variable):
                raise TypeError(
                    f"the inputs of an Apply of {op} must be Variables, got {x!r} of type {type(x).__name__}"
                )
        for i, output in enumerate(self.outputs):
            if not isinstance(output, Variable):
                raise TypeError(f"output {i} of an Apply of {op} must be a Variable, got {output!r}")
            if output.owner is not None and output.owner is not self:
                raise ValueError(
                    f"output {i} of an Apply of {op} already belongs to {output.owner}; give a new variable"
                )
            output.owner = self
            output.index = i
        self.location = capture()
        if config.compute_test_value != "off":
            op.compute_test_value(self)

    nin = property(lambda self: len(self.inputs), doc="Number of inputs.")
    nout = property(lambda self: len(self.outputs), doc="Number of outputs.")

    @property
    def out(self) -> Variable:
        """The only output, or the op's default one."""
        return self.default_output()

    def default_output(self) -> Variable:
        """The output that stands for the node when one variable is wanted.

        Raises:
            ValueError: the node has several outputs and its op names none of them.
        """
        index = self.op.default_output
        if index is None:
            if len(self.outputs) != 1:
                raise ValueError(f"{self.op} has {len(self.outputs)} outputs and no default_output")
            index = 0
        return self.outputs[index]

    def get_parents(self) -> list[Variable]:
        """The inputs, as a new list."""
        return list(self.inputs)

    def dprint(self, **kwargs: object) -> str:
        """Print the graph below this node; arguments as in `graphc.dprint`."""
        return hooks.debugprint()(self, **kwargs)

    def clone(self, clone_inner_graph: bool = False) -> Apply:
        """A node of the same op and inputs with fresh outputs."""
        return self.clone_with_new_inputs(self.inputs, strict=False, clone_inner_graph=clone_inner_graph)

    def clone_with_new_inputs(
        self, inputs: Sequence[Variable], strict: bool = True, clone_inner_graph: bool = False
    ) -> Apply:
        """A node of the same op on other inputs.

        Args:
            inputs: as many variables as this node has inputs.
            strict: demand that every new input can be seen as the old one's type (``filter_variable``), which
                keeps the output types; otherwise ``make_node`` runs again where the types differ.
            clone_inner_graph: also copy the inner graph of ops that hold one.

        Raises:
            TypeError: a new input does not fit, with ``strict``.
        """
        if len(inputs) != len(self.inputs):
            raise ValueError(f"{self.op} takes {len(self.inputs)} inputs, got {len(inputs)}")
        new_inputs, remake = list(inputs), False
        for i, (old, new) in enumerate(zip(self.inputs, inputs, strict=True)):
            if old.type == new.type:
                continue
            if strict:
                new_inputs[i] = old.type.filter_variable(new)
            remake = remake or new_inputs[i].type != old.type
        op = self.op.clone() if clone_inner_graph and hasattr(self.op, "fgraph") else self.op
        if remake:
            node = op.make_node(*new_inputs)
        else:
            node = Apply(op, new_inputs, [output.type.make_variable() for output in self.outputs])
        for old_output, new_output in zip(self.outputs, node.outputs, strict=True):
            new_output.name = old_output.name
        node.location = self.location
        return node

    def __reduce_ex__(self, protocol: SupportsIndex) -> str | tuple[object, ...]:
        if not self.outputs:
            return super().__reduce_ex__(protocol)
        return _node_of, (self.outputs[0],)

    def __copy__(self) -> Apply:
        copy = type(self).__new__(type(self))
        copy.__dict__.update(self.__dict__)
        return copy

    def __str__(self) -> str:
        return f"{self.op}({', '.join(map(str, self.inputs))})"

    __repr__ = __str__


def _node_of(v: Variable) -> Apply | None:
    """The node that computes a variable."""
    return v.owner


# What rules of gradients are given: variables, and their cotangents or tangents, of which None is zero.
Variables = Sequence[Variable]
Maybe = Sequence[Variable | None]
# One for each input: whether it is a batch.
Flags = Sequence[bool]


def only(derivatives: Maybe) -> Variable:
    """The derivative of an op's one output, or of its first input alone.

    It is not None: rules are asked for nothing where there is none, see `graphc.gradient.rules`.
    """
    found = derivatives[0]
    assert found is not None
    return found
