# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Mutants of the modules in tests/lit, and what graphc-opt makes of them.

Whatever the input, graphc-opt gives a result or diagnostics: a Python exception from inside a pass, a failure
without a message, a crash or a hang is a bug. A mutant is a module of the tests with a few changes to its
text. Types, sizes and numbers are often changed everywhere at once, so that operations still fit each other.
"""

from __future__ import annotations

import io
import random
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from graphc.backends.cpu.pipeline import PIPELINES, pipeline
from graphc.passes import discover
from graphc_tools._driver import split_source
from graphc_tools._usage import UsageError
from graphc_tools.lit_format import parse_command
from graphc_tools.opt import parse_arguments, process_isolated

LIT = Path(__file__).resolve().parents[1] / "lit"
TYPES = "i1 i8 i16 i32 i64 ui8 ui16 ui32 ui64 f16 f32 f64 complex<f32> complex<f64>".split()
ODD_TYPES = (
    "i128 si32 bf16 f80 f128 f8E4M3FN f8E5M2 index none complex<f16> complex<i32> !graphc.token !graphc.loop "
    "i3 ui128 vector<2xf64>"
).split()
NUMBERS = (
    "0 1 2 3 -1 -2 7 8 255 256 65536 1000003 2147483648 4294967296 -9223372036854775808 "
    "9223372036854775807 18446744073709551615 170141183460469231731687303715884105727"
).split()
SIZES = "? ? ? 0 1 2 3 5 17 4096".split()
ODD_SIZES = "1073741824 4611686018427387904 9223372036854775807".split()
ATTRIBUTES = (
    'unit, "", "all", "h", true, 0 : i1, 1 : i128, 2.5 : f32, array<i64>, array<i64: 0>, array<i64: -1>, '
    "array<i64: 0, 0>, array<i128: 0>, array<i32: 0, 1>, array<f64: 1.0>, array<i1: true>, [], [0], "
    "[[0, 1]], {}, f64, dense<0> : tensor<2xi64>, dense<1.0> : tensor<3xf64>, @main, "
    "affine_map<(i) -> (i)>, 4 : index"
).split(", ")
_ELEMENT = re.compile(
    r"(?<![\w.%@!#])(?:u?i\d+|b?f\d+|index|complex<f\d+>)(?!\w)|(?<=\dx|\?x)(?:u?i\d+|b?f\d+|complex<f\d+>)"
)
_SIZE = re.compile(r"(?<=[<x])(?:\d+|\?)(?=x)")
_NUMBER = re.compile(r"(?<![\w.%@#^x<])-?\d+(?![\w.x])")
_VALUE = re.compile(r"%[\w#]+")
_OP = re.compile(r"\"?\b[a-z_]+\.[a-z_.0-9]+\"?(?=[ (<])")
_ATTRIBUTE = re.compile(
    r"(?<=[{,<] )?\b[a-z_.]+ = (?:array<[^>]*>|\"[^\"]*\"|\[[^\]]*\]|[\w.+-]+(?: : \w+)?)"
)
_COMMENT = re.compile(r"^\s*//.*\n", re.MULTILINE)


@dataclass(frozen=True)
class Module:
    """A module of the tests.

    Attributes:
        text: the module without comments.
        passes: what its test runs.
        is_valid: whether the test is not one of errors.
    """

    text: str
    passes: tuple[str, ...]
    is_valid: bool


@cache
def corpus() -> list[Module]:
    """All modules in the tests that a command of one line runs passes on."""
    found = []
    for path in sorted(LIT.rglob("*.mlir")):
        source = path.read_text()
        commands = [
            parse_command(line.partition("RUN:")[2]) for line in source.splitlines() if "RUN:" in line
        ]
        passes = tuple(
            word[2:].replace("=", "{", 1) + "}" * ("=" in word)
            for command in commands[:1]
            if command
            for word in command.arguments
            if word.startswith("--graphc-")
        )
        found += [
            Module(text, passes, "invalid" not in path.name)
            for part in split_source(source)
            if (text := _COMMENT.sub("", part)).strip()
        ]
    return found


# -- mutations ---------------------------------------------------------------------------------------------


def _replace(pattern: re.Pattern[str], choices: Sequence[str]) -> Callable[[random.Random, str], str]:
    """A change of one token, or of all equal ones."""

    def mutate(rng: random.Random, text: str) -> str:
        matches = list(pattern.finditer(text))
        if not matches:
            return text
        match, new = rng.choice(matches), rng.choice(choices)
        if rng.random() < 0.25:
            return text[: match.start()] + new + text[match.end() :]
        return pattern.sub(lambda m: new if m[0] == match[0] else m[0], text)

    return mutate


def _among_themselves(pattern: re.Pattern[str]) -> Callable[[random.Random, str], str]:
    """One token in the place of another of its kind."""

    def mutate(rng: random.Random, text: str) -> str:
        matches = list(pattern.finditer(text))
        if not matches:
            return text
        match = rng.choice(matches)
        return text[: match.start()] + rng.choice(matches)[0] + text[match.end() :]

    return mutate


def _attribute(rng: random.Random, text: str) -> str:
    matches = list(_ATTRIBUTE.finditer(text))
    if not matches:
        return text
    match = rng.choice(matches)
    name = match[0].partition(" = ")[0]
    return text[: match.start()] + f"{name} = {rng.choice(ATTRIBUTES)}" + text[match.end() :]


def _drop_attribute(rng: random.Random, text: str) -> str:
    matches = list(_ATTRIBUTE.finditer(text))
    if not matches:
        return text
    match = rng.choice(matches)
    rest = text[match.end() :]
    return text[: match.start()] + (rest[2:] if rest.startswith(", ") else rest)


def _lines(rng: random.Random, text: str) -> str:
    """Lines are deleted, doubled or exchanged."""
    lines = text.splitlines(keepends=True) or [""]
    i, j = rng.randrange(len(lines)), rng.randrange(len(lines))
    kind = rng.randrange(3)
    if kind == 0:
        del lines[i]
    elif kind == 1:
        lines.insert(i, _renamed(rng, lines[i]))
    else:
        lines[i], lines[j] = lines[j], lines[i]
    return "".join(lines)


def _renamed(rng: random.Random, line: str) -> str:
    """A line whose result has a name of its own."""
    name, equals, rest = line.partition(" = ")
    return f"{name}_{rng.randrange(1000)}{equals}{rest}" if equals and name.lstrip().startswith("%") else line


def _splice(rng: random.Random, text: str) -> str:
    """Lines of another module."""
    other = rng.choice(corpus()).text.splitlines(keepends=True)
    lines = text.splitlines(keepends=True)
    start = rng.randrange(len(other))
    place = rng.randrange(len(lines) + 1)
    lines[place:place] = other[start : start + rng.randint(1, 5)]
    return "".join(lines)


_MUTATIONS: list[tuple[int, Callable[[random.Random, str], str]]] = [
    (7, _replace(_ELEMENT, TYPES)),
    (2, _replace(_ELEMENT, ODD_TYPES)),
    (8, _replace(_SIZE, SIZES)),
    (1, _replace(_SIZE, ODD_SIZES)),
    (6, _replace(_NUMBER, NUMBERS)),
    (4, _attribute),
    (2, _drop_attribute),
    (5, _among_themselves(_VALUE)),
    (2, _among_themselves(_OP)),
    (1, _among_themselves(_ELEMENT)),
    (3, _lines),
    (1, _splice),
]


@dataclass(frozen=True)
class Mutant:
    """A changed module and what is run on it.

    Attributes:
        seed: makes it again.
        text: the module.
        pipeline: passes separated by commas.
    """

    seed: int
    text: str
    pipeline: str


def mutant(seed: int) -> Mutant:
    """The mutant of a seed: its own test's passes, other passes, or a whole pipeline."""
    rng = random.Random(seed)
    valid = rng.random() < 0.9
    module = rng.choice([module for module in corpus() if module.is_valid == valid])
    text = module.text
    functions, weights = [f for _, f in _MUTATIONS], [w for w, _ in _MUTATIONS]
    for change in rng.choices(functions, weights, k=rng.choice((1, 1, 1, 1, 2, 3))):
        text = change(rng, text)
    kind = rng.random()
    if kind < 0.5 and module.passes:
        passes = list(module.passes)
    elif kind < 0.7:
        passes = rng.sample(sorted(discover()), rng.choice((1, 1, 2)))
    else:
        passes = [entry for entry, _ in pipeline(rng.choice(sorted(PIPELINES)))]
    return Mutant(seed, text, ",".join(passes))


def run(given: Mutant, seconds: int) -> tuple[int, str]:
    """Exit code and messages of graphc-opt, which runs in a helper process.

    Args:
        given: what is run.
        seconds: time limit.
    """
    options = [f"--pass-pipeline=builtin.module({given.pipeline})", "--isolated", f"--time-limit={seconds}"]
    messages = io.StringIO()
    try:
        _, code = process_isolated(*parse_arguments(options), given.text, messages)
    except UsageError as error:
        return 1, f"error: {error}"
    except Exception as error:
        return 1, f"internal error outside of passes: {type(error).__name__}: {error}"
    return code, messages.getvalue()


def fault(code: int, messages: str) -> str | None:
    """What is wrong with an answer of graphc-opt; None if nothing is."""
    for sign in ("internal error", "Traceback", "the compiler crashed"):
        if sign in messages:
            return next(line for line in messages.splitlines() if sign in line)
    return "a failure without a message" if code and not messages.strip() else None
