# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Schedules as JSON: a step is its kind and its fields, less those that have their defaults."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING
from functools import partial
from typing import TypeVar

from graphc_runtime.cuda import schedule as sc
from graphc_runtime.cuda.schedule_check import check
from graphc_runtime.errors import ArtifactError

_STEPS = {step.kind: step for step in sc.STEPS}
_MAX_DEPTH = 20
_LIMIT = 1 << 31
_Item = TypeVar("_Item")
Json = dict[str, object]


def to_json(schedule: sc.Schedule) -> Json:
    """A schedule as a JSON object.

    Raises:
        ArtifactError: parts of the schedule do not agree; the message names them.
    """
    check(schedule)
    return {
        "main": _plain_program(schedule.main),
        "shapes": _plain_program(schedule.shapes),
        "streams": schedule.streams,
        "events": schedule.events,
        "functions": schedule.functions,
    }


def from_json(raw: object) -> sc.Schedule:
    """Reads what `to_json` made; gives a schedule whose parts agree.

    Raises:
        ArtifactError: it is no schedule, or its parts do not agree.
    """
    try:
        item = _dict(raw)
        schedule = sc.Schedule(
            _program(item["main"]),
            _program(item["shapes"]),
            *(_count(item[key]) for key in ("streams", "events", "functions")),
        )
    except (KeyError, TypeError, ValueError, RecursionError) as error:
        if isinstance(error, ArtifactError):
            raise
        raise ArtifactError(f"not a schedule: {type(error).__name__}: {error!s:.200}") from None
    check(schedule)
    return schedule


def _plain_program(program: sc.Program) -> Json:
    return {
        "parameters": program.parameters,
        "registers": program.registers,
        "steps": [_plain(step) for step in program.steps],
        "results": program.results,
    }


def _plain(step: sc.Step) -> Json:
    raw: Json = {"kind": step.kind}
    for name, field in sc.fields_of(type(step)).items():
        value = getattr(step, name)
        if isinstance(value, sc.Block):
            steps = [_plain(inner) for inner in value.steps]
            value = {"arguments": value.arguments, "steps": steps, "yields": value.yields}
        if field.default is MISSING or value != field.default:
            raw[name] = value
    return raw


def _program(raw: object) -> sc.Program:
    item = _dict(raw)
    steps = _each(item["steps"], _step)
    return sc.Program(
        _count(item["parameters"]), _count(item["registers"]), steps, _each(item["results"], _count)
    )


def _step(raw: object, depth: int = 0) -> sc.Step:
    item = dict(_dict(raw))
    kind = _text(item.pop("kind"))
    make: Callable[..., sc.Step] = _STEPS[kind]
    if depth > _MAX_DEPTH:
        raise ArtifactError("steps are nested too deeply")
    known, found = sc.fields_of(_STEPS[kind]), dict[str, object]()
    for key, value in item.items():
        field = known[key]
        read = partial(_block, depth=depth) if field.type == "Block" else _READERS[field.type]
        found[key] = _each(value, read) if field.is_many else read(value)
    return make(**found)


def _block(raw: object, depth: int) -> sc.Block:
    item = _dict(raw)
    steps = tuple(_step(inner, depth + 1) for inner in _list(item["steps"]))
    return sc.Block(_each(item["arguments"], _count), steps, _each(item["yields"], _count))


def _number(raw: object) -> int | float | bool:
    if not isinstance(raw, int | float) or (isinstance(raw, int) and abs(raw) > 1 << 64):
        raise ArtifactError(f"expected a number, found {raw!r:.100}")
    return raw


def _text(raw: object) -> str:
    if not isinstance(raw, str):
        raise ArtifactError(f"expected a text, found {raw!r:.100}")
    return raw


def _truth(raw: object) -> bool:
    if not isinstance(raw, bool):
        raise ArtifactError(f"expected a truth value, found {raw!r:.100}")
    return raw


def _count(raw: object) -> int:
    if type(raw) is not int or not 0 <= raw < _LIMIT:
        raise ArtifactError(f"expected a number that is not negative, found {raw!r:.100}")
    return raw


def _each(raw: object, read: Callable[[object], _Item]) -> tuple[_Item, ...]:
    return tuple(read(item) for item in _list(raw))


def _list(raw: object) -> Sequence[object]:
    if not isinstance(raw, list | tuple):
        raise ArtifactError(f"expected a list, found {raw!r:.100}")
    return raw


def _dict(raw: object) -> Mapping[str, object]:
    if not isinstance(raw, dict):
        raise ArtifactError(f"expected an object, found {raw!r:.100}")
    return raw


_READERS: dict[str, Callable[[object], object]] = {
    **dict.fromkeys(("register", "int"), _count),
    "str": _text,
    "bool": _truth,
    "int | float | bool": _number,
}
