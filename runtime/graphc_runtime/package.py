# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The manifest of a `.gcx` file as records: functions, their code for each target, states, constants.

Whatever the JSON holds, reading it gives records that agree with each other, or an `ArtifactError`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, field, replace
from typing import Any, TypeVar

from graphc_runtime.container import Json
from graphc_runtime.cpu import TargetRecord
from graphc_runtime.errors import ArtifactError, Site
from graphc_runtime.manifest import ABI, Manifest, Signature, signature_from
from graphc_runtime.record import record
from graphc_runtime.symbols import DESCRIPTORS, DTYPES

MAX_NAME = 255
_NAME = re.compile(rf"[A-Za-z_][A-Za-z0-9_]{{0,{MAX_NAME - 1}}}")
_MAX_RANK = 64
_MAX_ELEMENTS = 1 << 48
_Item = TypeVar("_Item")


@record(frozen=True)
class Stored:
    """An array in a blob."""

    blob: int
    dtype: str
    shape: tuple[int, ...]

    @property
    def nbytes(self) -> int:
        """Bytes of the elements."""
        count = 1
        for size in self.shape:
            count *= size
        return count * DESCRIPTORS[self.dtype].itemsize


@record(frozen=True)
class StateRecord:
    """A value that functions keep between calls.

    Attributes:
        shape: static sizes, None where values may have any.
        value: at first.
        generator: the name of the bit generator whose state it is; empty for other arrays.
    """

    name: str
    shape: tuple[int | None, ...]
    value: Stored
    generator: str = ""


@record(frozen=True)
class Code:
    """Machine code of a function for a target."""

    blob: int
    symbols: tuple[str, ...]
    entries: tuple[str, ...]
    tuple_items: int


@record(frozen=True)
class FunctionRecord:
    """A function.

    Attributes:
        doc: for people.
        signature: arguments and results; names of inputs are keywords of calls.
        outputs: names of the outputs.
        form: how results are returned: the number of an output, or lists of forms: ``["list", ...]``,
            ``["tuple", ...]``, ``["dict", [key, form], ...]``; None returns None.
        cells: for each cell of the signature, ``("state", number)`` or ``("constant", array)``.
        defaults: values of inputs that calls may leave out, by position.
        sites: check sites, as in `graphc_runtime.manifest.Manifest`.
        code: by the name of the target.
        needs: libraries besides NumPy: "BLAS", "LAPACK", "libm", "libmvec", "SciPy's special functions",
            "NumPy's random draws".
    """

    doc: str
    signature: Signature
    outputs: tuple[str, ...]
    form: Any
    cells: tuple[tuple[str, Any], ...]
    defaults: Mapping[int, Stored]
    sites: tuple[Any, ...]
    code: Mapping[str, Code]
    needs: tuple[str, ...] = ()

    def manifest(self, target: str, record: TargetRecord) -> Manifest:
        """Properties of the code for a target, for `graphc_runtime.machine_code.MachineCode`."""
        code = self.code[target]
        return Manifest(
            self.signature,
            sites=self.sites,
            symbols=code.symbols,
            target=asdict(record),
            entries=code.entries,
            tuple_items=code.tuple_items,
        )


@record(frozen=True)
class Package:
    """All of a manifest but its blobs.

    Attributes:
        functions: by name.
        states: of all functions; they may share them.
        targets: by name.
        producer: versions of what made the file.
        licences: of the code in it.
        texts: other content by name, such as "header" or "mlir": numbers of blobs.
    """

    functions: Mapping[str, FunctionRecord]
    states: tuple[StateRecord, ...]
    targets: Mapping[str, TargetRecord]
    producer: Mapping[str, str] = field(default_factory=dict)
    licences: tuple[str, ...] = ()
    texts: Mapping[str, int] = field(default_factory=dict)

    def to_json(self) -> Json:
        """The manifest."""
        return {"abi": ABI, **asdict(self)}

    @classmethod
    def from_json(cls, raw: Json, name: str = "the artifact") -> Package:
        """Reads what `to_json` wrote.

        Raises:
            ArtifactError: something is missing, of another type, or refers to what is not there.
        """
        with _errors_of(name):
            if raw["abi"] != ABI:
                raise ArtifactError(f"it has kernel ABI {raw['abi']!r}, this runtime {ABI}; export it again")
            package = cls(
                _by_name(raw["functions"], _function),
                tuple(_state(item) for item in _list(raw["states"])),
                {_text(key): _target(item) for key, item in _dict(raw["targets"]).items()},
                {_text(key): _text(item) for key, item in _dict(raw["producer"]).items()},
                tuple(map(_text, _list(raw["licences"]))),
                {_text(key): _count(item) for key, item in _dict(raw["texts"]).items()},
            )
            package._check()
        return package

    def _check(self) -> None:
        """Checks that the records agree."""
        names = [state.name for state in self.states]
        if len(set(names)) < len(names):
            raise ArtifactError("two states have one name")
        if not self.functions:
            raise ArtifactError("it has no functions")
        for name, function in self.functions.items():
            signature = function.signature
            if len(function.cells) != len(signature.cells) or len(function.outputs) != len(signature.outputs):
                raise ArtifactError(f"the lists of function {name!r} have other lengths than its signature")
            updated = {update.cell for update in signature.updates}
            for number, ((kind, what), spec) in enumerate(zip(function.cells, signature.cells, strict=True)):
                value = self._state(what).value if kind == "state" else what
                if not _fits(value, spec) or (kind == "constant" and number in updated):
                    raise ArtifactError(f"cell {number} of function {name!r} is not of its type")
            for position, value in function.defaults.items():
                if position >= len(signature.inputs) or not _fits(value, signature.inputs[position]):
                    raise ArtifactError(f"default {position} of function {name!r} is not of its input's type")
            if not function.code or set(function.code) - set(self.targets):
                raise ArtifactError(f"function {name!r} has code for {sorted(function.code)}")
            _check_form(function.form, len(signature.outputs))

    def _state(self, number: int) -> StateRecord:
        if number >= len(self.states):
            raise ArtifactError(f"state {number} of {len(self.states)}")
        return self.states[number]


@contextmanager
def _errors_of(name: str) -> Iterator[None]:
    """Makes whatever a wrong manifest leads to one error."""
    try:
        yield
    except ArtifactError as error:
        raise ArtifactError(f"{name}: {error!s:.400}") from None
    except (
        KeyError,
        TypeError,
        ValueError,
        IndexError,
        AttributeError,
        OverflowError,
        RecursionError,
    ) as error:
        raise ArtifactError(
            f"{name}: not a manifest that graphc wrote ({type(error).__name__}: {error!s:.400})"
        ) from None


def _function(raw: object) -> FunctionRecord:
    item = dict(_dict(raw))
    signature = _dict(item.pop("signature"))
    updates = [update["value"] for update in signature["updates"]]
    for spec in [*signature["inputs"], *signature["cells"], *signature["outputs"], *updates]:
        _sizes(spec["shape"], partial=True)
    made = signature_from(json.loads(json.dumps(signature)))
    _check_signature(made)
    return FunctionRecord(
        _text(item["doc"]),
        replace(made, name=_name(made.name)),
        tuple(map(_text, _list(item["outputs"]))),
        item["form"],
        tuple(_cell(cell) for cell in _list(item["cells"])),
        {int(key): _stored(value) for key, value in _dict(item["defaults"]).items()},
        tuple(
            Site(*(_text(site[key]) for key in ("message", "error", "node"))) for site in _list(item["sites"])
        ),
        {_text(key): _code(value) for key, value in _dict(item["code"]).items()},
        tuple(map(_text, _list(item["needs"]))),
    )


def _check_signature(signature: Signature) -> None:
    """Types and references that a `Signature` takes on trust."""
    for spec in (*signature.arguments, *signature.results):
        _text(spec.name)
        _text(spec.dtype)
    for argument, result in (*signature.donated, *signature.spares):
        if _count(argument) >= len(signature.arguments) or _count(result) >= len(signature.results):
            raise ArtifactError(f"argument {argument} lends its memory to result {result}")
    _count(signature.gil_threshold)
    if type(signature.needs_shapes) is not bool:
        raise ArtifactError("needs_shapes is no truth value")


def _cell(raw: object) -> tuple[str, Any]:
    kind, what = _list(raw)
    if kind not in ("state", "constant"):
        raise ArtifactError(f"a cell of kind {kind!r}")
    return kind, _count(what) if kind == "state" else _stored(what)


def _state(raw: Any) -> StateRecord:
    state = StateRecord(
        _name(raw["name"]),
        _sizes(raw["shape"], partial=True),
        _stored(raw["value"]),
        _text(raw["generator"]),
    )
    if not _fits(state.value, state):
        raise ArtifactError(f"the value of state {state.name!r} has another shape than the state")
    return state


def _stored(raw: Any) -> Stored:
    if raw["dtype"] not in DTYPES:
        raise ArtifactError(f"dtype {raw['dtype']!r:.50}")
    return Stored(_count(raw["blob"]), raw["dtype"], _sizes(raw["shape"]))


def _code(raw: Any) -> Code:
    symbols, entries = (tuple(map(_text, _list(raw[key]))) for key in ("symbols", "entries"))
    return Code(_count(raw["blob"]), symbols, entries, _count(raw["tuple_items"]))


def _target(raw: Any) -> TargetRecord:
    return TargetRecord(*(_text(raw[key]) for key in ("triple", "cpu", "features")))


def _fits(value: Stored, spec: Any) -> bool:
    """True if an array has the partial shape of a state or an argument, and its dtype if it has one."""
    shapes = zip(value.shape, spec.shape, strict=False)
    same = len(value.shape) == len(spec.shape) and all(want in (None, have) for have, want in shapes)
    return same and getattr(spec, "dtype", value.dtype) == value.dtype


def _check_form(form: object, count: int) -> None:
    if form is None or (type(form) is int and 0 <= form < count):
        return
    kind, *parts = _list(form)
    if kind not in ("list", "tuple", "dict"):
        raise ArtifactError(f"results in the form {kind!r:.50}")
    for part in parts:
        if kind == "dict":
            key, part = _list(part)
            if not isinstance(key, str | int):
                raise ArtifactError(f"results under the key {key!r:.50}")
        _check_form(part, count)


def _by_name(raw: object, read: Callable[[object], _Item]) -> dict[str, _Item]:
    return {_name(key): read(item) for key, item in _dict(raw).items()}


def _sizes(raw: Sequence[int | None], *, partial: bool = False) -> tuple[Any, ...]:
    total = 1
    for size in _list(raw):
        if size is None and partial:
            continue
        total *= _count(size)
    if len(raw) > _MAX_RANK or total > _MAX_ELEMENTS:
        raise ArtifactError(f"an array of shape {raw!r:.100}")
    return tuple(raw)


def _name(raw: str) -> str:
    if not isinstance(raw, str) or not _NAME.fullmatch(raw):
        raise ArtifactError(f"{raw!r:.100} is not a name")
    return raw


def _text(raw: str) -> str:
    if not isinstance(raw, str):
        raise ArtifactError(f"expected a text, found {raw!r:.100}")
    return raw


def _count(raw: int) -> int:
    if type(raw) is not int or not 0 <= raw < 1 << 62:
        raise ArtifactError(f"expected a number, found {raw!r:.100}")
    return raw


def _list(raw: object) -> Sequence[Any]:
    if not isinstance(raw, list):
        raise ArtifactError(f"expected a list, found {raw!r:.100}")
    return raw


def _dict(raw: object) -> Mapping[Any, Any]:
    if not isinstance(raw, dict):
        raise ArtifactError(f"expected an object, found {raw!r:.100}")
    return raw
