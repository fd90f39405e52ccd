# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Environments whose values are on a device: a simulated one, and none."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import NoReturn

import numpy as np
import pytest

import graphc
import graphc.tensor as pt
from graphc.backends.cuda import code
from graphc.backends.cuda.code import Lowered, lower
from graphc.immediate import Environment, OpWrapper, place
from graphc_runtime.cuda import executable
from graphc_runtime.cuda.array import DeviceArray
from graphc_runtime.cuda.driver import NoDeviceError
from graphc_tools.gpu.interpreter import Kernel
from graphc_tools.gpu.kernels import Kernels
from graphc_tools.gpu.simulated import SimulatedDriver

pytestmark = pytest.mark.usefixtures("quick_ptx")

X = np.random.default_rng(0).normal(size=(3, 4))


class Modules(SimulatedDriver):
    """A device that has the kernels of all that is compiled meanwhile, each module's under its own names."""

    def __init__(self) -> None:
        self.known: dict[str, str] = {}
        self.found: dict[str, Kernel] = {}
        self.loaded: dict[int, Kernels] = {}
        super().__init__(self.found)

    def lower(self, *args: object, **kwargs: object) -> Lowered:
        made = lower(*args, **kwargs)
        marked = f"// {len(self.known)}\n{made.ptx}"  # equal code, other kernels
        self.known[marked] = made.kernels
        return replace(made, ptx=marked)

    def load(self, ptx: str, cubin: Mapping[str, bytes]) -> int:
        module = super().load(ptx, cubin)
        if "gpu.func" in self.known[ptx]:
            self.loaded[module] = Kernels(self.known[ptx])
        return module

    def function(self, module: int, name: str, shared: int = 0) -> int:
        self.found[f"{module}.{name}"] = self.loaded[module][name]
        return super().function(module, f"{module}.{name}", shared)


@pytest.fixture
def driver(monkeypatch: pytest.MonkeyPatch) -> Iterator[Modules]:
    made = Modules()
    monkeypatch.setattr(code, "lower", made.lower)
    for module in (executable, place):
        monkeypatch.setattr(module, "device", lambda: made)
    with graphc.config.change_flags(cache_dir=""):  # else kernels are those of another test
        yield made


def kinds(driver: Modules) -> list[str]:
    found = [transfer.kind for transfer in driver.transfers]
    driver.transfers.clear()
    return found


@pytest.mark.parametrize("lazy", [False, True])
def test_values_stay_on_the_device_until_they_are_read(driver: Modules, lazy: bool) -> None:
    env = Environment("cuda", lazy=lazy)
    x = env.as_tensor(X)
    assert not driver.transfers
    y = env.exp(x) * 2 - x.sum(axis=1, keepdims=True)
    assert y.shape == (3, 4) and (y.device, y.dtype) == ("cuda", "float64")
    assert set(kinds(driver)) == {"upload"} and isinstance(y._data, DeviceArray)
    np.testing.assert_allclose(np.asarray(y), np.exp(X) * 2 - X.sum(axis=1, keepdims=True), rtol=1e-14)
    assert y.tolist()[0][0] == float(np.asarray(y)[0, 0])
    assert kinds(driver) == ["download"]
    z = y[1:, ::2]
    np.testing.assert_array_equal(z, np.asarray(y)[1:, ::2])
    assert "download" not in kinds(driver)[:-1]


@pytest.mark.parametrize("lazy", [False, True])
def test_updates_move_nothing_after_the_first(driver: Modules, lazy: bool) -> None:
    env = Environment("cuda", lazy=lazy)
    w, x = env.shared(np.ones(4), name="w"), env.as_tensor(X)

    def step() -> None:
        w.set_value(w - 0.1 * env.tanh(x * w).sum(axis=0))

    expected = np.ones(4)
    for number in range(4):
        step()
        assert w.shape == (4,)
        assert ("upload" in kinds(driver)) == (number == 0)
        expected = expected - 0.1 * np.tanh(X * expected).sum(axis=0)
    np.testing.assert_allclose(w.get_value(), expected, rtol=1e-13)
    assert kinds(driver) == ["download"]
    w.set_value(np.zeros(4))
    np.testing.assert_array_equal(w + 1, np.ones(4))


def test_transfers(driver: Modules) -> None:
    env = Environment("cuda")
    x = env.as_tensor(X)
    assert x.transfer("cuda") is x and env.transfer(x, "cuda") is x and kinds(driver) == ["upload"]
    back = x.transfer("cpu")
    assert isinstance(back._data, np.ndarray) and kinds(driver) == ["download"]
    np.testing.assert_array_equal(back.transfer("cuda"), X)
    with pytest.raises(ValueError, match="can be on 'cuda' and 'cpu', got 'tpu'"):
        x.transfer("tpu")
    on_host = Environment().as_tensor(X)
    assert on_host.transfer("cpu") is on_host
    with pytest.raises(ValueError, match="got 'cuda'"):
        on_host.transfer("cuda")


def test_transfers_in_graphs_leave_placement_to_the_mode(driver: Modules) -> None:
    x = pt.matrix("x")
    outputs = [pt.exp(x.transfer("cuda")).transfer("cpu") + 1, pt.transfer(x, "cuda")]
    f = graphc.function([x], outputs, mode="cuda")
    assert len(f.ir_stages()["ptx"].split(".entry")) == len(
        graphc.function([x], [pt.exp(x) + 1, x], mode="cuda").ir_stages()["ptx"].split(".entry")
    )
    for found, expected in zip(f(X), (np.exp(X) + 1, X), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-15)
    with pytest.raises(ValueError, match="no registered transfer knows the target 'mars'"):
        x.transfer("mars")


def test_parts_of_the_host_gradients_and_arrays_of_the_device(driver: Modules) -> None:
    env = Environment("cuda")
    x = env.as_tensor(X)
    with env.tape() as tape:
        loss = (env.sin(x) ** 2).sum()
    np.testing.assert_allclose(tape.gradient(loss, [x])[0], np.sin(2 * X), rtol=1e-12)
    np.testing.assert_allclose(env.special.j0(x).sum(), pt.special.j0(X).sum().eval(), rtol=1e-12)
    seen: list[type] = []

    @graphc.compile.as_op([pt.dvector], [pt.dvector])
    def twice(v: np.ndarray) -> np.ndarray:
        seen.append(type(v))
        return v * 2

    in_python = OpWrapper(env, "twice", twice)
    np.testing.assert_array_equal(in_python(x[0]) + 1, X[0] * 2 + 1)
    assert set(seen) == {np.ndarray}
    total = env.numpy_to_tensor((x + 1)._held())
    assert isinstance(total._data, DeviceArray)
    assert total.__cuda_array_interface__["shape"] == (3, 4) and total.__dlpack_device__() == (2, 0)
    np.testing.assert_array_equal(total, X + 1)


def test_errors_belong_to_operations(driver: Modules) -> None:
    env = Environment("cuda")
    with pytest.raises(ValueError, match="3"):
        env.as_tensor(X) + env.as_tensor(np.ones(3))
    with pytest.raises(ValueError, match="mode 'cuda', got mode='fast_run'"):
        Environment("cuda", mode="fast_run")


@pytest.mark.parametrize("lazy", [False, True])
def test_without_a_device_the_first_operation_says_so(monkeypatch: pytest.MonkeyPatch, lazy: bool) -> None:
    def nothing() -> NoReturn:
        raise NoDeviceError("no CUDA driver here: all other targets work without it")

    monkeypatch.setattr(place, "device", nothing)
    env = Environment("cuda", lazy=lazy)
    x = env.as_tensor(X)
    with pytest.raises(NoDeviceError, match="no CUDA driver here"):
        x + 1
    with pytest.raises(NoDeviceError, match="all other targets work without it"):
        env.zeros((2, 3)).sum()
    np.testing.assert_array_equal(x, X)
    assert float(Environment().as_tensor(X).sum()) == pytest.approx(X.sum())
