# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""PyTensor's graphs as graphc's: one walk over the nodes, one function for each class of PyTensor's ops.

`converts` registers a function for the classes of a name, wherever the installed version of PyTensor keeps
them. An op without one runs its own ``perform`` in Python (`graphc.interop.pytensor.fallback`).

Errors name the user's line that made a node of PyTensor, instead of a line of the bridge.
"""

from __future__ import annotations

import functools
import hashlib
import operator
import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np
from pytensor.compile.sharedvalue import SharedVariable
from pytensor.graph.basic import Apply, Constant, Variable
from pytensor.graph.op import Op
from pytensor.graph.traversal import toposort
from pytensor.scalar.basic import ScalarType
from pytensor.tensor.basic import get_underlying_scalar_constant_value
from pytensor.tensor.exceptions import NotScalarConstantError

import graphc.tensor as pt
from graphc.graph import basic
from graphc.graph.basic import SourceLocation
from graphc.interop.pytensor.equal_rows import settled
from graphc.interop.pytensor.fallback import run_in_python
from graphc.interop.pytensor.types import constant_value, is_dense, is_tensor, new_input, share

if TYPE_CHECKING:
    from graphc.graph.basic import Variable as Converted


_LIBRARIES = ("pytensor", "pymc", "pymc_extras", "graphc", "nutpie", "bambi")
# Where Python's own modules are, of which `functools` calls what dispatches by type.
_PYTHON = os.path.dirname(os.__file__) + os.sep


def place_of(node: Apply) -> SourceLocation | None:
    """The innermost line outside of libraries in the trace that PyTensor keeps of the node's first output.

    A trace has few lines, in densities that PyMC makes often none of the user's. Then it is the innermost
    of the library that makes them: not of PyTensor, nor of Python's modules, which call what is dispatched.
    """
    nearest = None
    for output in node.outputs:
        for trace in getattr(output.tag, "trace", None) or ():
            for file, line, function, _ in reversed([tuple(frame)[:4] for frame in trace]):
                owner = _owner(file)
                if owner is None:
                    return SourceLocation(file, line, function)
                if nearest is None and owner not in ("python", "pytensor", "graphc"):
                    nearest = SourceLocation(file, line, function)
    return nearest


def _owner(file: str) -> str | None:
    """The library that a file is of; None for a user's file."""
    for name, folder in _folders(len(sys.modules)):
        if file.startswith(folder):
            return name
    return "python" if file.startswith(_PYTHON) and f"-packages{os.sep}" not in file else None


@functools.lru_cache(maxsize=1)
def _folders(modules: int) -> tuple[tuple[str, str], ...]:
    """Names and folders of the libraries that build graphs for users, as far as these are loaded.

    Args:
        modules: how many modules are loaded; the answer is kept as long as that does not change.
    """
    files = ((name, getattr(sys.modules.get(name), "__file__", None)) for name in _LIBRARIES)
    return tuple((name, os.path.dirname(file) + os.sep) for name, file in files if file)


Values = list[Any]
# What stands for the outputs of a node: for its only one, or for each of several.
Result: TypeAlias = "Converted | slice | Sequence[Converted | slice | None] | None"
Rule = Callable[[Op, Apply, Values, "Converter"], "Result"]


class NoConversion(NotImplementedError):
    """A converter does not cover this form of its op; the op runs in Python instead."""


Checks = Literal["raise", "switch", "remove"]


class Converter:
    """The variables of graphc that stand for those of PyTensor.

    Args:
        parent: the converter of the graph around this one; both have the same shared variables and constants.
        checks: what becomes of PyMC's checks of parameters: they raise, they choose minus infinity as the log
            density (those that may), or they are removed. Graphs inside of others do as these.
    """

    def __init__(self, parent: Converter | None = None, checks: Checks = "switch") -> None:
        self.checks: Checks = checks if parent is None else parent.checks
        self._known: dict[Variable, Variable] = {}
        self._nodes: dict[Variable, Values] = {}
        self._shared: dict[Variable, Converted] = {} if parent is None else parent._shared
        self._constants: dict[Variable, Variable] = {} if parent is None else parent._constants

    def __getitem__(self, variable: Variable) -> Any:
        """Counterpart of a variable: a variable of graphc, a slice, or None."""
        if variable not in self._known:
            self._known[variable] = self._leaf(variable)
        return self._known[variable]

    def new_input(self, variable: Variable) -> Any:
        """A new variable of graphc that stands for an input."""
        self._known[variable] = made = new_input(variable)
        return made

    def bind(self, variables: Iterable[Variable], values: Iterable[Variable]) -> None:
        """Says what stands for variables, before a graph that reads them is converted."""
        self._known.update(zip(variables, values, strict=True))

    def _leaf(self, variable: Variable) -> Any:
        if isinstance(variable, Constant):
            return self._constant(variable)
        if not isinstance(variable, SharedVariable):
            raise TypeError(
                f"the graph needs the variable {variable} of type {variable.type}, which is not among the "
                "inputs given to graphc's bridge; add it to the inputs"
            )
        if variable not in self._shared:
            self._shared[variable] = share(variable)
        return _refined(variable, self._shared[variable])

    def _constant(self, variable: Constant) -> Any:
        """Equal constants are one: nothing later finds out that two arguments of code are equal."""
        made = constant_value(variable)
        data = getattr(made, "data", None)
        if not isinstance(data, np.ndarray):
            return made
        digest = hashlib.blake2b(np.ascontiguousarray(data).data, digest_size=20).digest()
        return self._constants.setdefault((data.dtype.str, data.shape, digest), made)

    def convert(self, outputs: Sequence[Variable]) -> Values:
        """Counterparts of outputs of PyTensor's graph, whose nodes are converted as they are needed.

        Raises:
            TypeError: an output depends on a variable that no input stands for.
        """
        for node in toposort(list(outputs), blockers=list(self._known)):
            if not all(output in self._known for output in node.outputs):
                with basic.of_node(place_of(node)):
                    self._apply(node)
        return [self[output] for output in outputs]

    def inner(
        self, inputs: Sequence[Variable], outputs: Sequence[Variable], values: Iterable[object]
    ) -> Values:
        """The outputs of an inner graph, for the given values of its inputs."""
        converter = Converter(self)
        converter.bind(inputs, values)
        return converter.convert(outputs)

    def _apply(self, node: Apply) -> None:
        inputs = [self[value] for value in node.inputs]
        # Equal nodes are one, too.
        key = (node.op, *(variable.type for variable in node.outputs), *map(id, inputs))
        made = self._nodes.get(key)
        if made is not None:
            self._known.update(zip(node.outputs, made, strict=True))
            return
        try:
            results = convert(node.op, node, inputs, self)
        except NoConversion as error:
            results = run_in_python(node, inputs, str(error))
        except Exception as error:
            types = ", ".join(str(value.type) for value in node.inputs)
            error.add_note(f"graphc's bridge converted PyTensor's {node.op} of {types}")
            raise
        if not isinstance(results, (list, tuple)):
            results = [results]
        for output, result in zip(node.outputs, results, strict=True):
            refined = _refined(output, result)
            # Sizes, and what is computed of them: types of what has these sizes are static then. Also numbers
            # that are computed of numbers, whose zeros the stable forms look for.
            known = (
                is_dense(output.type)
                and output.type.ndim < 2
                and (
                    output.type.dtype == "int64"
                    or all(isinstance(x, basic.Constant) and x.data.size == 1 for x in inputs)
                )
            )
            self._known[output] = settled(refined) if known else refined
        self._nodes[key] = [self._known[output] for output in node.outputs]


def _refined(variable: Variable, result: Any) -> Any:
    """The result with the dtype that PyTensor says, and with all that it knows of the shape: sizes that are
    known to be 1 broadcast.
    """
    if not is_tensor(variable.type) or result is None or isinstance(result, slice):
        return result
    result = pt.as_tensor_variable(result)
    if result.type.dtype != variable.type.dtype:
        result = pt.cast(result, variable.type.dtype)
    if isinstance(variable.type, ScalarType):  # in an elementwise graph it stands for all elements
        return result
    shape = variable.type.shape
    if result.type.ndim != len(shape):
        raise TypeError(f"{variable} has the type {variable.type}, its conversion {result.type}")
    if any(known is not None and have is None for known, have in zip(shape, result.type.shape, strict=True)):
        return pt.specify_shape(result, shape)
    return result


def real_cast(x: Converted, dtype: str) -> Converted:
    """A cast that drops imaginary parts without a word, as PyTensor's does."""
    if x.type.dtype.startswith("complex") and not dtype.startswith("complex"):
        x = pt.real(x)
    return pt.cast(x, dtype)


def convert(op: Op, node: Apply, inputs: Values, c: Converter) -> Any:
    """The results of one node, from what stands for its inputs.

    Args:
        op: the node's op, by whose class the function is chosen.
        node: PyTensor's node.
        inputs: what stands for its inputs.
        c: for inner graphs.

    Returns:
        What stands for the output, or a list for several.

    Raises:
        NoConversion: the op, or this form of it, has no conversion.
    """
    rule = rule_of(op.__class__)
    if rule is None:
        raise NoConversion("no conversion is registered for its class")
    return rule(op, node, inputs, c)


# By the name of a class: how its module's name begins, and the function.
_RULES: dict[str, list[tuple[str, Rule]]] = {}


def converts(*names: str, module: str = "pytensor.") -> Callable[[Rule], Rule]:
    """Registers a function for op classes and what inherits from them.

    Classes go by their names, since other libraries that define some may be imported later, and since their
    modules differ between versions of PyTensor.

    Args:
        names: of classes, as ``Cholesky``.
        module: how the name of the module begins that defines them.
    """

    def register(rule: Rule) -> Rule:
        for name in names:
            _RULES.setdefault(name, []).append((module, rule))
        return rule

    return register


def of_inputs(function: Callable[[Op, Values], Result]) -> Rule:
    """The rule that only an op and its inputs matter for."""
    return lambda op, node, inputs, c: function(op, inputs)


# A function of an op and of what stands for its inputs; or the name of a function of `graphc.tensor`, and of
# those of the op's attributes that are its keywords.
Row: TypeAlias = str | Callable[..., Any]


def of_row(row: Row) -> Callable[[Op, Values], Result]:
    """The function of a row of a table; several results are a list."""
    name, *options = row.split() if isinstance(row, str) else ("__name__",)
    find = operator.attrgetter(name)

    def apply(op: Op, inputs: Values) -> Result:
        if isinstance(row, str):
            found = find(pt)(*inputs, **{option: getattr(op, option) for option in options})
        else:
            found = row(op, *inputs)
        return list(found) if isinstance(found, tuple) else found

    return apply


def calls(table: Mapping[str, Row], module: str = "pytensor.") -> None:
    """Registers rows for op classes, of which several of one meaning stand in one name."""
    for names, row in table.items():
        converts(*names.split(), module=module)(of_inputs(of_row(row)))


@functools.cache
def rule_of(cls: type) -> Rule | None:
    """The function for a class of ops, or for the nearest class that it inherits from.

    A distribution that is a graph of draws is that graph, also where one of its name had a sampler before.
    """
    bases = list(cls.__mro__)
    graphs = [i for i, base in enumerate(bases) if base.__name__ == "SymbolicRandomVariable"]
    for base in bases[graphs[0] if graphs else 0 :]:
        for module, rule in _RULES.get(base.__name__, ()):
            if base.__module__.startswith(module):
                return rule
    return None


def static_int(variable: Variable) -> int | None:
    """The value of a scalar that is known when the graph is built, None for anything else."""
    try:
        return int(get_underlying_scalar_constant_value(variable))
    except (NotScalarConstantError, TypeError, ValueError):
        return None


def known_int(variable: Variable, what: str) -> int:
    """The value of a scalar that the conversion needs to know.

    Raises:
        NoConversion: it is computed; ``what`` names it.
    """
    found = static_int(variable)
    if found is None:
        raise NoConversion(f"{what} is computed")
    return found


def sizes(x: Converted) -> list[Converted]:
    """The sizes of a tensor, one variable each."""
    return [x.shape[axis] for axis in range(x.type.ndim)]
