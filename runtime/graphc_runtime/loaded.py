# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""``load``: the functions of a `.gcx` file, without a compiler."""

from __future__ import annotations

import hashlib
import inspect
import itertools
import keyword
import os
import weakref
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NoReturn

import numpy as np

from graphc_runtime import signing
from graphc_runtime.artifact import Artifact
from graphc_runtime.callable_type import NativeCallable, enable, install
from graphc_runtime.container import Container
from graphc_runtime.cpu import best_target
from graphc_runtime.cuda.code import TRIPLE
from graphc_runtime.cuda.executable import DeviceExecutable
from graphc_runtime.errors import ArtifactError, LoadError
from graphc_runtime.executable import Executable
from graphc_runtime.forms import build_form, flatten_form
from graphc_runtime.machine_code import MachineCode
from graphc_runtime.manifest import ArraySpec
from graphc_runtime.package import FunctionRecord, Package, Stored
from graphc_runtime.states import States
from graphc_runtime.symbols import DESCRIPTORS

_SOURCE = str | os.PathLike[str] | bytes | bytearray | memoryview


def load(
    source: _SOURCE,
    *,
    trusted_keys: Sequence[bytes] | None = None,
    target: str | None = None,
    check_all: bool = True,
) -> Module:
    """The functions of a file that ``graphc.export`` or ``graphc-compile`` wrote.

    Args:
        source: a path; the file is mapped into memory, and must not change while it is used. Or its content.
        trusted_keys: public Ed25519 keys of 32 bytes: refuse what none of them has signed.
        target: the name of the target whose code to use; by default the best for this machine's CPU, and if
            there is none, one for CUDA devices: its functions give arrays of the device
            (`graphc_runtime.cuda.array.DeviceArray`), and take these and NumPy's.
        check_all: compare the SHA-256 of all parts. Otherwise those of the manifest and of the machine code
            that is used, but not of constants and states, which then are not read before they are needed.

    Raises:
        OSError: the file cannot be read.
        ArtifactError: it is not such a file, damaged, of another version, or not signed by a trusted key.
        LoadError: it has no code for this machine.

    Examples:
        >>> import graphc_runtime, os, tempfile
        >>> x = pt.vector("x")
        >>> f = graphc.function([x], x * 2, mode="fast_run")
        >>> path = os.path.join(tempfile.mkdtemp(), "double.gcx")
        >>> written = graphc.export({"double": f}, path)
        >>> graphc_runtime.load(path).double(np.array([1.0, 2.0]))
        array([2., 4.])
    """
    in_memory = isinstance(source, bytes | bytearray | memoryview)
    container = Container(memoryview(source)) if in_memory else Container.open(source)  # type: ignore[arg-type]
    name = "the artifact" if in_memory else os.fspath(source)  # type: ignore[arg-type]
    if trusted_keys is not None:
        signing.require(container.signature, container.signed, trusted_keys, str(name))
    package = Package.from_json(container.manifest, str(name))
    if target is None:
        try:
            target = best_target(package.targets)
        except LoadError as error:
            raise LoadError(f"{name}: {error}") from None
    elif target not in package.targets:
        raise LoadError(f"{name}: no code for target {target!r}; it has {', '.join(package.targets)}")
    return Module(_Content(container, package, target, check_all))


class _Content:
    """State that instances of an artifact share: code and constants."""

    def __init__(self, container: Container, package: Package, target: str, check_all: bool) -> None:
        self.container, self.package, self.target = container, package, target
        self._check_all = check_all
        self._executables: dict[str, Executable] = {}
        for name, function in package.functions.items():
            if target not in function.code:
                raise LoadError(f"function {name!r} has no code for target {target!r}")
            container.blob(function.code[target].blob)
        for value in self._values():
            if container.blob(value.blob, check=check_all).nbytes != value.nbytes:
                raise ArtifactError(f"blob {value.blob} does not have the {value.nbytes} bytes of its array")
        for number in range(len(container)) if check_all else package.texts.values():
            container.blob(number)
        self.constants = {
            (name, i): self.array(what)
            for name, function in package.functions.items()
            for i, (kind, what) in enumerate(function.cells)
            if kind == "constant"
        }

    def _values(self) -> Iterator[Stored]:
        """All arrays of the file."""
        for function in self.package.functions.values():
            yield from function.defaults.values()
            yield from (what for kind, what in function.cells if kind == "constant")
        yield from (state.value for state in self.package.states)

    def array(self, stored: Stored) -> np.ndarray:
        """An array in the file's memory."""
        if not stored.nbytes:
            return np.empty(stored.shape, DESCRIPTORS[stored.dtype])
        content = self.container.blob(stored.blob, check=self._check_all)
        return np.frombuffer(content, DESCRIPTORS[stored.dtype]).reshape(stored.shape)

    def executable(self, name: str) -> Executable:
        """The code of a function, loaded when it is first asked for."""
        if name not in self._executables:
            function = self.package.functions[name]
            code = self.container.blob(function.code[self.target].blob)
            manifest = function.manifest(self.target, self.package.targets[self.target])
            made = DeviceExecutable if manifest.target["triple"] == TRIPLE else MachineCode
            self._executables[name] = made(Artifact(manifest, bytes(code)))
        return self._executables[name]

    def __reduce__(self) -> tuple[object, ...]:
        return _content, (bytes(self.container.whole), self.target, self._check_all)


# What unpickled functions share. Content is told by its hashes, all of which have been compared.
_KNOWN: weakref.WeakValueDictionary[bytes, _Content] = weakref.WeakValueDictionary()


def _content(data: bytes, target: str, check_all: bool) -> _Content:
    """From a pickle; another machine may have to take other code."""
    container = Container(data)
    digest = hashlib.sha256(container.signed + target.encode()).digest()
    known = _KNOWN.get(digest) if check_all else None
    if known is not None:
        return known
    package = Package.from_json(container.manifest)
    try:
        target = best_target(package.targets)
    except LoadError:
        target = best_target({target: package.targets[target]})
    made = _Content(container, package, target, check_all)
    return _KNOWN.setdefault(digest, made) if check_all else made


class Module(Mapping[str, "LoadedFunction"]):
    """Functions by name, as items and as attributes, with the states that they share.

    Functions that are named as one of the attributes here (``state``, ``text``), or begin with two
    underscores, are items only: ``module["state"]``.

    Attributes:
        state: the values that functions keep between calls, by name.
        target: the name of the target whose code is used.
        package: what the file says of itself.

    Examples:
        >>> import graphc_runtime, os, tempfile
        >>> x = pt.vector("x")
        >>> f = graphc.function([x], 2 * x, mode="fast_run")
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = graphc.export({"double": f}, os.path.join(folder, "model.gcx"))
        ...     module = graphc_runtime.load(path)
        >>> list(module)
        ['double']
        >>> module.double(np.array([1.0, 2.0]))
        array([2., 4.])
    """

    def __init__(self, content: _Content) -> None:
        self._content = content
        self._functions: dict[str, LoadedFunction] = {}
        self.package, self.target = content.package, content.target
        self.state = States(content.package.states, content.array)

    def __getitem__(self, name: str) -> LoadedFunction:
        if name not in self._functions:
            record = self.package.functions.get(name)
            if record is None:
                raise KeyError(
                    f"{name!r}; the artifact has the functions {', '.join(self.package.functions)}"
                )
            self._functions[name] = LoadedFunction(self, name, record)
        return self._functions[name]

    def __getattr__(self, name: str) -> LoadedFunction:
        functions = self.__dict__.get("package", _NOTHING).functions
        if name.startswith("__") or name not in functions:
            raise AttributeError(f"the artifact has no function {name!r}; it has {', '.join(functions)}")
        return self[name]

    def __call__(self, *values: object, **named: object) -> NoReturn:
        names = [f"module.{name}" if name.isidentifier() else f"module[{name!r}]" for name in self]
        raise TypeError(f"an artifact is called by one of its functions: {', '.join(names)}")

    def __iter__(self) -> Iterator[str]:
        return iter(self.package.functions)

    def __len__(self) -> int:
        return len(self.package.functions)

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self.package.functions]

    def instance(self) -> Module:
        """The same functions with states of their own, which have the values of the file."""
        return Module(self._content)

    def save_state(self, path: str | os.PathLike[str]) -> None:
        """Writes the states as a NumPy archive (.npz)."""
        self.state.save(path)

    def load_state(self, path: str | os.PathLike[str]) -> None:
        """Sets the states to what `save_state` wrote; all of them or none.

        Raises:
            ValueError: the file has other states.
        """
        self.state.load(path)

    def text(self, name: str) -> str:
        """Other content of the file: `package.texts` lists it.

        Raises:
            KeyError: there is none of this name.
        """
        return bytes(self._content.container.blob(self.package.texts[name])).decode()

    def __repr__(self) -> str:
        return f"<graphc_runtime.Module of {', '.join(self)} for {self.target}>"

    def __reduce__(self) -> tuple[object, ...]:
        return _module, (self._content, dict(self.state))


class _Nothing:
    functions: Mapping[str, Any] = {}


_NOTHING = _Nothing()


def _module(content: _Content, states: dict[str, np.ndarray]) -> Module:
    module = Module(content)
    module.state.update(states)
    return module


@enable
class LoadedFunction(NativeCallable):
    """A function of an artifact: ``f(*args, out=None, **keywords)``.

    Results are new arrays in the form that the exported function has, or written to ``out`` (arrays in that
    form). An input named "out" takes that keyword. Arguments are converted where that loses nothing.

    Attributes:
        inputs: name, dtype and shape of each argument.
        outputs: name, dtype and shape of each result.
        donated: names of the inputs that a call may overwrite.
        updates: names of the states that a call changes.
        generators: names of the states that it uses and that are generators.
        needs: libraries that it calls, besides NumPy.
    """

    # The name and place of the first slot are known to machine code; see NativeCallable.
    __slots__ = ("__dict__", "__weakref__", "_native_self")

    def __init__(self, module: Module, name: str, record: FunctionRecord) -> None:
        self._module, self._record = module, record
        self.__name__ = self.__qualname__ = name
        self.__doc__ = record.doc or f"The function {name} of an artifact."
        signature, content = record.signature, module._content
        self.inputs = signature.inputs
        self.outputs = tuple(
            ArraySpec(spec.dtype, spec.shape, label)
            for spec, label in zip(signature.outputs, record.outputs, strict=True)
        )
        lent = {argument for argument, _ in (*signature.donated, *signature.spares)}
        self.donated = tuple(self._label(i) for i in sorted(lent) if i < len(signature.inputs))
        self.needs = record.needs
        states = {
            i: content.package.states[what] for i, (kind, what) in enumerate(record.cells) if kind == "state"
        }
        self.updates = tuple(states[update.cell].name for update in signature.updates)
        self.generators = tuple(state.name for state in states.values() if state.generator)
        self._positions = {spec.name: i for i, spec in enumerate(signature.inputs) if spec.name}
        self._defaults = {i: content.array(value) for i, value in record.defaults.items()}
        cells = [
            module.state.cell(what) if kind == "state" else [content.constants[name, i]]
            for i, (kind, what) in enumerate(record.cells)
        ]
        executable = content.executable(name)
        self._bound = executable.bind(cells, name=name, doc=self.__doc__)
        # Takes calls by position that are like one before, and gives None for others.
        self._ready = executable.ready_call(cells)
        flat = ["list", *range(len(signature.outputs))]
        self._is_plain = record.form == (0 if signature.returns == "single" else flat)
        address = executable.vectorcall_address()
        # An entry takes what is named "out" for buffers.
        takes_calls = self._is_plain and not self._defaults and "out" not in self._positions
        if takes_calls and address is not None:
            install(self, address, executable.native_self(cells, self._call))

    # Keywords are names of inputs, which may be "self" and "out".
    def _call(self, /, *args: Any, **keywords: Any) -> np.ndarray:
        ready = self._ready
        if ready is not None and not keywords and (found := ready(args)) is not None:
            return build_form(self._record.form, found)
        out = None if "out" in self._positions else keywords.pop("out", None)
        values = self._values(args, keywords)
        if self._is_plain:
            return self._bound(*values) if out is None else self._bound(*values, out=out)
        form, single = self._record.form, self._record.signature.returns == "single"
        if out is None:
            found = self._bound(*values)
        else:
            given = flatten_form(form, out, len(self.outputs), self.__name__)
            found = self._bound(*values, out=given[0] if single else given)
        return build_form(form, [found] if single else found)

    __call__ = _call

    def _values(self, args: tuple[Any, ...], keywords: dict[str, np.ndarray]) -> list[np.ndarray]:
        """One value for each input."""
        inputs, name = self.inputs, self.__name__
        if not keywords and len(args) == len(inputs):
            return list(args)
        if len(args) > len(inputs):
            raise TypeError(f"{name}() takes {len(inputs)} arguments, given {len(args)}")
        values = dict(enumerate(args))
        for key, value in keywords.items():
            position = self._positions.get(key)
            if position is None:
                raise TypeError(f"{name}() got an unexpected keyword argument {key!r}")
            if sum(spec.name == key for spec in inputs) > 1:
                raise TypeError(f"{name}() has several inputs named {key!r}; give them by position")
            if position in values:
                raise TypeError(f"{name}() got two values for the argument {key!r}")
            values[position] = value
        missing = [i for i in range(len(inputs)) if i not in values and i not in self._defaults]
        if missing:
            raise TypeError(f"{name}() misses the arguments {', '.join(map(self._label, missing))}")
        return [values[i] if i in values else self._defaults[i].copy() for i in range(len(inputs))]

    @property
    def state(self) -> States:
        """The states of the instance that it is a function of, by name."""
        return self._module.state

    def _label(self, position: int) -> str:
        return self._record.signature.inputs[position].name or f"input {position}"

    @property
    def __signature__(self) -> inspect.Signature:
        kind, empty = inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.empty
        names = [spec.name or f"input_{i}" for i, spec in enumerate(self.inputs)]
        unique = len(set(names)) == len(names) and all(
            label.isidentifier() and not keyword.iskeyword(label) for label in names
        )
        parameters = [
            inspect.Parameter(label if unique else f"input_{i}", kind, default=self._defaults.get(i, empty))
            for i, label in enumerate(names)
        ]
        # One with a default may stand before one without.
        if any(a.default is not empty and b.default is empty for a, b in itertools.pairwise(parameters)):
            parameters = [parameter.replace(default=empty) for parameter in parameters]
        if "out" not in self._positions:
            parameters.append(inspect.Parameter("out", inspect.Parameter.KEYWORD_ONLY, default=None))
        return inspect.Signature(parameters)

    def __repr__(self) -> str:
        return f"<graphc_runtime function {self.__name__}{self.__signature__}>"

    def __reduce__(self) -> tuple[object, ...]:
        return _function, (self._module, self.__name__)


def _function(module: Module, name: str) -> LoadedFunction:
    return module[name]
