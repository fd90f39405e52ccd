# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""graphc-run: calls a function of an artifact, without a compiler.

    graphc-run model.gcx --list
    graphc-run model.gcx --function f --input x=@x.npy --input y=4xf64=1.5 --output out.npy
    graphc-run model.gcx --input x=- --output - < x.npy > out.npy
    graphc-run model.gcx --function f --input 'x=[1, 2, 3]' --benchmark

An input is a name and a value: `@file.npy`, `-` (a NumPy file on the standard input), a number or nested
lists, or an array of equal elements: sizes and type as in MLIR, and a value (`2x3xf32=0.5`).
"""

from __future__ import annotations

import argparse
import ast
import io
import os
import re
import statistics
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import graphc_runtime
from graphc_runtime.errors import ArtifactError, LoadError
from graphc_runtime.loaded import LoadedFunction, Module
from graphc_runtime.manifest import ArraySpec

PROGRAM = "graphc-run"
_FILLED = re.compile(r"((?:\d+x)*)([a-z]+\d*(?:<f\d+>)?)=(.+)")
_TYPES = {"i1": "bool", "f16": "float16", "f32": "float32", "f64": "float64"}
_TYPES |= {"complex<f32>": "complex64", "complex<f64>": "complex128"}
_TYPES |= {
    f"{short}{bits}": f"{long}{bits}"
    for short, long in (("i", "int"), ("ui", "uint"))
    for bits in (8, 16, 32, 64)
}


def build_parser() -> argparse.ArgumentParser:
    """The options."""
    parser = argparse.ArgumentParser(
        prog=PROGRAM, description="Calls a function of an artifact.", allow_abbrev=False
    )
    add = parser.add_argument
    add("artifact", help="a .gcx file")
    add("--list", action="store_true", help="list functions, states and targets")
    add("--function", metavar="NAME", help="the function to call; may be left out if there is one")
    add("--input", action="append", default=[], metavar="NAME=VALUE", help="an argument; see above")
    add(
        "--output",
        action="append",
        default=[],
        metavar="FILE",
        help=".npy file for each result in order; - is the standard output",
    )
    add("--benchmark", action="store_true", help="time calls, and print microseconds")
    add("--target", metavar="NAME", help="use the code for this target")
    add(
        "--trusted-key",
        action="append",
        default=None,
        metavar="FILE",
        help="refuse what this public key has not signed",
    )
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command; returns the exit code."""
    options = build_parser().parse_args(arguments)
    try:
        keys = None if options.trusted_key is None else [Path(p).read_bytes() for p in options.trusted_key]
        module = graphc_runtime.load(options.artifact, trusted_keys=keys, target=options.target)
        if options.list:
            print("\n".join(listed(module)), flush=True)
            return 0
        function = _function(module, options.function)
        values = dict(_value(text, function) for text in options.input)
        results = _flat(function(**values))
        _store(results, options.output, function)
        if options.benchmark:
            print(_timed(function, values), file=sys.stderr)
        sys.stdout.flush()
    except BrokenPipeError:  # who reads has seen enough, as `head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except (
        ArtifactError,
        LoadError,
        OSError,
        TypeError,
        ValueError,
        IndexError,
        KeyError,
        ArithmeticError,
    ) as error:
        print(f"{PROGRAM}: {error.args[0] if isinstance(error, KeyError) else error}", file=sys.stderr)
        return 1
    return 0


def listed(module: Module) -> Iterator[str]:
    """Lines about an artifact."""
    for name, record in module.package.functions.items():
        inputs = ", ".join(_described(spec, f"input_{i}") for i, spec in enumerate(record.signature.inputs))
        outputs = ", ".join(
            _described(spec, label or f"output_{i}")
            for i, (spec, label) in enumerate(zip(record.signature.outputs, record.outputs, strict=True))
        )
        yield f"{name}({inputs}) -> {outputs or 'nothing'}"
        if record.doc:
            yield f"    {record.doc}"
        if record.needs:
            yield f"    needs {', '.join(record.needs)}"
    for state in module.package.states:
        yield f"state {_described(ArraySpec(state.value.dtype, state.shape, state.name), '')}"
    targets = (f"{name}{' (here)' if name == module.target else ''}" for name in module.package.targets)
    yield f"targets: {', '.join(targets)}"
    yield f"made by: {', '.join(f'{key} {value}' for key, value in module.package.producer.items())}"
    yield f"licences: {', '.join(module.package.licences) or 'not stated'}"


def _described(spec: ArraySpec, name: str) -> str:
    sizes = ", ".join("?" if size is None else str(size) for size in spec.shape)
    return f"{spec.name or name}: {spec.dtype}[{sizes}]"


def _function(module: Module, name: str | None) -> LoadedFunction:
    if name is None:
        if len(module) > 1:
            raise ValueError(f"--function says which to call: {', '.join(module)}")
        name = next(iter(module))
    return module[name]


def _value(text: str, function: LoadedFunction) -> tuple[str, Any]:
    """Name and value of an input."""
    name, equals, value = text.partition("=")
    specs = {spec.name: spec for spec in function.inputs}
    if not equals or name not in specs:
        raise ValueError(
            f"--input {text!r}: expected NAME=VALUE with a name of {', '.join(specs) or '(no inputs)'}"
        )
    if value == "-":
        return name, np.load(io.BytesIO(sys.stdin.buffer.read()), allow_pickle=False)
    if value.startswith("@"):
        return name, np.load(value[1:], allow_pickle=False)
    filled = _FILLED.fullmatch(value)
    if filled is not None:
        if filled[2] not in _TYPES:
            raise ValueError(f"--input {text!r}: the type {filled[2]} is none of {', '.join(_TYPES)}")
        shape = tuple(int(size) for size in filled[1].split("x")[:-1])
        return name, np.full(shape, _literal(filled[3], text), _TYPES[filled[2]])
    return name, np.asarray(_literal(value, text), specs[name].dtype)


def _literal(value: str, text: str) -> Any:
    if value.strip().lstrip("+-") in ("inf", "nan"):
        return float(value)
    try:
        return ast.literal_eval(value)
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        raise ValueError(f"--input {text!r}: {value!r} is neither a number nor lists of numbers") from None


def _flat(results: np.ndarray) -> list[np.ndarray]:
    if isinstance(results, np.ndarray):
        return [results]
    items = results.values() if isinstance(results, dict) else results or ()
    return [array for item in items for array in _flat(item)]


def _store(results: Sequence[np.ndarray], files: Sequence[str], function: LoadedFunction) -> None:
    """Writes results to files; prints them if there are no files."""
    if not files:
        for i, (result, spec) in enumerate(zip(results, function.outputs, strict=True)):
            print(f"{spec.name or f'output_{i}'} =")
            print(result)
        return
    if len(files) > len(results):
        raise ValueError(f"--output names {len(files)} files, the function gives {len(results)} results")
    for file, result in zip(files, results, strict=False):
        if file == "-":
            np.save(sys.stdout.buffer, result)
        else:
            np.save(file, result)


def _timed(function: LoadedFunction, values: dict[str, np.ndarray]) -> str:
    """The time of calls by position, in rounds of about 10 ms."""
    given = [np.asarray(values[spec.name]) for spec in function.inputs if spec.name in values]
    start = time.perf_counter()
    function(*given)
    count = max(1, int(0.01 / max(time.perf_counter() - start, 1e-7)))
    rounds = []
    for _ in range(20):
        start = time.perf_counter()
        for _ in range(count):
            function(*given)
        rounds.append((time.perf_counter() - start) / count * 1e6)
    best, median = min(rounds), statistics.median(rounds)
    return f"{best:.3g} us a call at best, {median:.3g} us in the median of 20 rounds of {count} calls"


if __name__ == "__main__":
    sys.exit(main())
