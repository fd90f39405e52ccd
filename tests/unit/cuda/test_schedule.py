# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Schedules: JSON and back, code as bytes, and what is refused."""

from __future__ import annotations

import copy
import json
import random
from dataclasses import replace

import pytest

from graphc_runtime.container import Container
from graphc_runtime.cuda import code as code_of_devices
from graphc_runtime.cuda import schedule as sc
from graphc_runtime.cuda.analysis import by_library, has_products, reads
from graphc_runtime.cuda.code import DeviceCode
from graphc_runtime.cuda.schedule_json import from_json, to_json
from graphc_runtime.errors import ArtifactError

LAUNCH = sc.Launch("add", (4, 3, 3), (5, 3, 3), (0, 6, 2), op="n1", line="model.py:3")
PRODUCT = sc.Product(
    0, 1, 6, ".ik,kj->ij", sc.Block((), (LAUNCH,), ()), True, False, op="n2", line="model.py:4"
)
MAIN = sc.Program(
    2,
    24,
    (
        sc.Dim(2, 0, 0),
        sc.Constant(3, 1),
        sc.Compute(4, "ceildivsi", (2, 3)),
        sc.Constant(5, 256),
        sc.Allocate(6, "float32", (2,)),
        LAUNCH,
        sc.Record(0),
        sc.Wait(0, stream=1),
        sc.View(7, 6, 3, (2,), (3,)),
        sc.Copy(6, 1),
        sc.Read(8, 6, (3,)),
        sc.Check(1, 8, 2, 3),
        sc.If(8, sc.Block((), (), (6,)), sc.Block((), (), (7,)), (9,)),
        sc.Loop(3, 2, 3, (9,), sc.Block((10, 11), (LAUNCH,), (11,)), (12,)),
        sc.While((8,), sc.Block((13,), (), (13, 13)), sc.Block((14,), (sc.Constant(15, 0.5),), (15,)), (16,)),
        sc.Download(17, 6),
        sc.HostCall(0, (17, 2), (18,)),
        sc.Upload(19, 18),
        PRODUCT,
        sc.Free(19),
        sc.Free(6),
    ),
)
SHAPES = sc.Program(1, 2, (sc.Dim(1, 0, 0),), (1,))
SCHEDULE = sc.Schedule(MAIN, SHAPES, streams=2, events=1, functions=1)


def test_json_and_back_is_the_same_schedule():
    assert from_json(json.loads(json.dumps(to_json(SCHEDULE)))) == SCHEDULE


def test_code_and_back_is_the_same_code():
    code = DeviceCode(SCHEDULE, ".version 8.0", "sm_90", {"sm_90": b"\x7fELF"}, (b"artifact",))
    assert DeviceCode.from_bytes(code.to_bytes()) == code
    with pytest.raises(ArtifactError, match="bytes that begin"):
        DeviceCode.from_bytes(b"PTX")


def test_only_schedules_with_products_and_requests_are_for_newer_runtimes(monkeypatch):
    without = replace(MAIN, steps=tuple(step for step in MAIN.steps if step != PRODUCT))
    number = next(step.result for step in MAIN.steps if isinstance(step, sc.Constant))
    numbers = (number,) * 3
    asking = replace(
        MAIN,
        registers=MAIN.registers + 1,
        steps=(*MAIN.steps, sc.Has(MAIN.registers, "cusolver"), sc.Ask("potrf", (0, 0), numbers, number)),
    )
    for main, version in ((MAIN, 2), (without, 1), (asking, 3)):
        code = DeviceCode(replace(SCHEDULE, main=main), ".version 8.0", "sm_90").to_bytes()
        assert Container(code, "code").manifest["version"] == version
        assert DeviceCode.from_bytes(code).schedule.main == main
    with monkeypatch.context() as patch:
        patch.setattr(code_of_devices, "VERSIONS", (4, 4, 4))
        code = DeviceCode(SCHEDULE, ".version 8.0", "sm_90").to_bytes()
    with pytest.raises(ArtifactError, match="of version 4, expected one of 1, 2, 3"):
        DeviceCode.from_bytes(code)


def test_what_a_product_reads():
    assert reads([PRODUCT]) == [0, 1, 6, 4, 3, 5, 2]
    assert by_library(SCHEDULE) == {"cublas": [PRODUCT]} and has_products(
        [sc.Loop(3, 2, 3, (), sc.Block((), (PRODUCT,), ()))]
    )
    assert not has_products([LAUNCH])


@pytest.mark.parametrize(
    ("step", "message"),
    [
        (sc.Has(9, "cuda"), "the library 'cuda'"),
        (sc.Ask("potrs", (0,), (), 0), "the routine 'potrs'"),
        (sc.Ask("potrf", (0,), (0, 0, 0), 0), "1 arrays and 3 numbers for potrf"),
        (sc.Ask("potrf", (0, 0), (0, 0, 0), 0), "register 0 holds an array of the device, expected a number"),
    ],
)
def test_requests_that_do_not_agree_with_the_library(step, message):
    program = sc.Program(1, 10, (step,))
    with pytest.raises(ArtifactError, match=message):
        to_json(sc.Schedule(program, sc.Program(0, 0, ())))


@pytest.mark.parametrize("operation", sorted(sc.OPERATIONS))
def test_arithmetic_stays_in_64_bits(operation):
    source = random.Random(1)
    for _ in range(50):
        a, b = (source.choice([3, -7, (1 << 63) - 1, -(1 << 63), source.randrange(1, 99)]) for _ in range(2))
        operands = {"select": (1, a, b), "power_of_2": (a,)}.get(operation, (a, b))
        assert -(1 << 63) <= sc.OPERATIONS[operation](*operands) < 1 << 63
    if operation == "divsi":
        assert sc.OPERATIONS[operation](-7, 2) == -3
    if operation == "power_of_2":
        assert [sc.OPERATIONS[operation](n) for n in (0, 1, 2, 3, 4, 5, 1000)] == [1, 1, 2, 4, 4, 8, 1024]


@pytest.mark.parametrize(
    ("step", "message"),
    [
        (sc.Free(20), "register 20 has no value"),
        (sc.Free(2), "register 2 holds a number"),
        (sc.Free(15), "register 15 has no value"),
        (sc.Constant(2, 1), "register 2 is written twice"),
        (sc.Constant(24, 1), "is not there"),
        (sc.Free(6, stream=2), "stream 2"),
        (replace(LAUNCH, types=("", "", "")), "expected an array of the device"),
        (replace(LAUNCH, types=("int64",)), "1 types of 3 arguments"),
        (replace(LAUNCH, grid=(3, 3)), "three sizes"),
        (replace(LAUNCH, grid=(6, 3, 3)), "expected a number"),
        (sc.Compute(20, "power", (2, 2)), "operands of 'power'"),
        (sc.Compute(20, "select", (2, 2)), "2 operands of 'select'"),
        (sc.Allocate(20, "float8", ()), "dtype 'float8'"),
        (sc.HostCall(1, (), ()), "function 1 of 1"),
        (sc.Record(1), "event 1 of 1"),
        (sc.Upload(20, 6), "expected an array of the host"),
        (sc.If(8, sc.Block((), (), (6,)), sc.Block((), (), (8,)), (20,)), "different things"),
        (sc.If(8, sc.Block((), (), ()), sc.Block((), (), ()), (20,)), "1 results of 0"),
        (sc.Loop(3, 2, 3, (6,), sc.Block((20, 21), (), (20,)), (22,)), "other things than it is given"),
        (sc.While((8,), sc.Block((20,), (), ()), sc.Block((), (), ()), ()), "other things"),
        (replace(PRODUCT, form="ik,kj"), "no form of a product: 'ik,kj'"),
        (replace(PRODUCT, left=2), "register 2 holds a number"),
        (replace(PRODUCT, right=18), "register 18 holds an array of the host"),
        (replace(PRODUCT, target=20), "register 20 has no value"),
        (replace(PRODUCT, kernels=sc.Block((), (), ())), "not only launches"),
        (replace(PRODUCT, kernels=sc.Block((), (LAUNCH, sc.Free(6)), ())), "not only launches"),
        (replace(PRODUCT, kernels=sc.Block((), (LAUNCH,), (6,))), "yield something"),
        (replace(PRODUCT, kernels=sc.Block((20,), (LAUNCH,), ())), "1 arguments, given 0"),
        (replace(PRODUCT, stream=1), "in another stream"),
        (replace(PRODUCT, kernels=sc.Block((), (replace(LAUNCH, grid=(6, 3, 3)),), ())), "expected a number"),
    ],
)
def test_parts_that_do_not_agree_are_named(step, message):
    with pytest.raises(ArtifactError, match=message):
        to_json(replace(SCHEDULE, main=replace(MAIN, steps=(*MAIN.steps[:-1], step))))


def test_changed_json_is_read_or_refused():
    source = random.Random(0)
    refused = 0
    for _ in range(1500):
        raw = json.loads(json.dumps(to_json(SCHEDULE)))
        places, parents = [], [raw]
        while parents:
            parent = parents.pop()
            for key, value in list(parent.items() if isinstance(parent, dict) else enumerate(parent)):
                places.append((parent, key))
                if isinstance(value, dict | list):
                    parents.append(value)
        parent, key = source.choice(places)
        parent[key] = copy.deepcopy(source.choice([None, -1, 1 << 70, "x", [], {}, [[1]], 1.5, True, 30]))
        try:
            from_json(raw)
        except ArtifactError as error:
            refused += 1
            assert 10 < len(str(error)) < 400
    assert refused > 1000
