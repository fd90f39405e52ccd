# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Accuracy and special values of the vectorised elementary functions, and what they compile to."""

from __future__ import annotations

import itertools
import platform
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

pytest.importorskip("llvmlite")

import graphc
import graphc.tensor as pt
from graphc.backends import llvm
from graphc.backends.cpu.object import _SETS, _variants, add_vector_variants, is_available
from graphc.backends.handoff import to_llvmlite
from graphc.ir.diagnostics import PassError
from graphc.lowering.math import coefficients, expansions
from graphc.lowering.math.builder import F32, F64, LN2, PI
from graphc.passes.buffer import expand_math
from graphc.passes.buffer.expand_math import ExpandMath
from graphc_dialects._mlir import ir
from graphc_tools.math_kernel import (
    Kernel,
    compile_ir,
    compile_unary,
    lower,
    source,
    unary,
)
from graphc_tools.math_table import erf

# Reference and the documented error bounds in units in the last place, (float64, float32).
FUNCTIONS: dict[str, tuple[Callable[..., Any], float, float]] = {
    "acos": (np.arccos, 1.3, 1.3),
    "asin": (np.arcsin, 1.3, 1.3),
    "atan": (np.arctan, 2.0, 2.0),
    "cosh": (np.cosh, 1.3, 1.3),
    "erf": (erf, 1.5, 1.5),
    "exp": (np.exp, 1.1, 1.1),
    "exp2": (np.exp2, 1.0, 1.0),
    "expm1": (np.expm1, 1.4, 1.4),
    "log": (np.log, 0.9, 0.9),
    "log10": (np.log10, 1.6, 1.6),
    "log1p": (np.log1p, 1.0, 1.0),
    "log2": (np.log2, 1.3, 1.3),
    "sinh": (np.sinh, 1.5, 1.5),
    "tanh": (np.tanh, 2.0, 2.0),
}
# Where long double is no wider than double the reference itself may be off by one unit.
REFERENCE_ERROR = 0.0 if np.finfo(np.longdouble).eps < np.finfo(np.float64).eps / 100 else 1.0


@pytest.fixture(scope="module")
def kernels() -> dict[tuple[str, str], Kernel]:
    return {(name, dtype): compile_unary(name, dtype, ExpandMath()) for name in FUNCTIONS for dtype in DTYPES}


DTYPES = ("float64", "float32")


def samples(dtype: str) -> np.ndarray:
    """Random encodings (all magnitudes), numbers of several scales, and the edges of every function."""
    rng = np.random.default_rng(5)
    info = np.finfo(dtype)
    bits = rng.integers(0, 2**info.bits, 40_000, dtype=f"uint{info.bits}").view(dtype)
    scaled = [(rng.standard_normal(20_000) * scale).astype(dtype) for scale in (1e-3, 0.3, 1, 4, 30, 300)]
    near_one = rng.uniform(0.5, 2, 40_000).astype(dtype)
    unit = rng.uniform(-1, 1, 40_000).astype(dtype)
    return np.concatenate([bits, *scaled, near_one, unit, specials(dtype)])


def specials(dtype: str) -> np.ndarray:
    info = np.finfo(dtype)
    edges = [
        0.0,
        np.inf,
        np.nan,
        1.0,
        0.5,
        2.0,
        10.0,
        float(info.smallest_subnormal),
        float(info.smallest_normal),
    ]
    overflow = [
        709.782712893384,
        709.7827128933841,
        710.4758600739439,
        710.475860073944,
        745.133,
        745.134,
        1e6,
    ]
    overflow32 = [
        88.72283,
        88.72284,
        89.415985,
        89.41599,
        103.97,
        103.98,
        127.99,
        128.0,
        149.0,
        150.0,
        1023.9,
        1075.0,
    ]
    values = np.array([*edges, *overflow, *overflow32, float(info.max)], dtype)
    one = np.array(1, dtype)
    return np.concatenate([values, -values, [np.nextafter(one, 2 * one), np.nextafter(one, 0 * one)]]).astype(
        dtype
    )


def ulp_errors(got: np.ndarray, exact: np.ndarray) -> np.ndarray:
    """Errors in units in the last place; infinite where one side is not finite and the other differs."""
    with np.errstate(all="ignore"):
        rounded = exact.astype(got.dtype)
        spacing = np.spacing(np.maximum(np.abs(rounded), np.finfo(got.dtype).smallest_normal))
        errors = np.abs(got.astype(exact.dtype) - exact) / spacing
    same = (got == rounded) | (np.isnan(got) & np.isnan(rounded))
    return np.where(np.isfinite(rounded) & np.isfinite(got), errors, np.where(same, 0, np.inf))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_error_bound(kernels: dict[tuple[str, str], Kernel], name: str, dtype: str) -> None:
    reference, *bounds = FUNCTIONS[name]
    x = samples(dtype)
    got = kernels[name, dtype](x)
    with np.errstate(all="ignore"):
        exact = reference(x.astype(np.longdouble))
    errors = ulp_errors(got, exact)
    worst = int(np.argmax(errors))
    bound = bounds[DTYPES.index(dtype)] + REFERENCE_ERROR
    assert errors[worst] <= bound, f"{name}({x[worst]!r}) = {got[worst]!r}, but exactly {exact[worst]!r}"


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_signed_zero_and_special_values(
    kernels: dict[tuple[str, str], Kernel], name: str, dtype: str
) -> None:
    x = specials(dtype)
    with np.errstate(all="ignore"):
        expected = FUNCTIONS[name][0](x)
    got = kernels[name, dtype](x)
    zero = (expected == 0) & (got == 0)
    np.testing.assert_array_equal(np.signbit(got[zero]), np.signbit(expected[zero]))
    np.testing.assert_array_equal(np.isnan(got), np.isnan(expected))
    np.testing.assert_array_equal(got[np.isinf(expected)], expected[np.isinf(expected)])


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_nan_payloads_stay_nan(kernels: dict[tuple[str, str], Kernel], name: str, dtype: str) -> None:
    fmt = F64 if dtype == "float64" else F32
    quiet = fmt.bits(float("inf")) | 1 << (fmt.mantissa - 1)
    payloads = [quiet | payload for payload in (0, 1, 1954, 0x3FFFFF)]
    x = np.array([*payloads, *(p | 1 << (fmt.width - 1) for p in payloads)], dtype=f"uint{fmt.width}").view(
        dtype
    )
    assert np.isnan(kernels[name, dtype](x)).all()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_loop_is_vectorised(kernels: dict[tuple[str, str], Kernel], name: str, dtype: str) -> None:
    assembly = kernels[name, dtype].assembly
    assert "call" not in assembly and "\tbl\t" not in assembly
    if platform.machine() == "x86_64":
        assert "ymm" in assembly or "zmm" in assembly


@pytest.mark.parametrize("name", FUNCTIONS)
def test_float16_is_computed_in_float32(name: str) -> None:
    x = np.arange(2**16, dtype=np.uint16).view(np.float16)
    got = compile_unary(name, "float16", ExpandMath())(x)
    with np.errstate(all="ignore"):
        exact = FUNCTIONS[name][0](x.astype(np.float64))
    assert ulp_errors(got, exact).max() <= 0.51


def test_tanh_of_every_half_is_the_nearest() -> None:
    """Also where a device divides with an error of a unit in the last place of float32."""
    x = pt.vector("x", dtype="float16")
    f = graphc.function([x], pt.tanh(x))
    every = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
    nearest = np.tanh(every.astype(np.float64)).astype(np.float16)
    np.testing.assert_array_equal(f(every).view(np.uint16)[every == 0], nearest.view(np.uint16)[every == 0])
    np.testing.assert_array_equal(f(every), nearest)
    above, below = ([np.float32(c) for c in part] for part in coefficients._TANH_OF_HALF)
    limit = np.float32(coefficients._TANH_OF_HALF_LARGEST)
    known = every[~np.isnan(every)].astype(np.float32)
    clipped = np.clip(known, -limit, limit)
    parts = [np.polyval(part[::-1], (clipped * clipped).astype(np.float64)) for part in (above, below)]
    quotient = ((clipped * parts[0].astype(np.float32)) / parts[1].astype(np.float32)).astype(np.float32)
    for nearby in (np.nextafter(quotient, np.float32(2)), np.nextafter(quotient, np.float32(-2))):
        found = np.where(quotient == 0, quotient, nearby).astype(np.float16)
        np.testing.assert_array_equal(found, nearest[~np.isnan(every)])


@pytest.mark.parametrize("name", ["exp2", "log2", "log10"])
def test_exact_powers(kernels: dict[tuple[str, str], Kernel], name: str) -> None:
    exponents = (
        np.arange(-1074, 1024).astype(np.float64) if name != "log10" else np.arange(23).astype(np.float64)
    )
    powers = np.exp2(exponents) if name != "log10" else 10.0**exponents
    x, expected = (exponents, powers) if name == "exp2" else (powers, exponents)
    np.testing.assert_array_equal(kernels[name, "float64"](x), expected)


@pytest.mark.parametrize("count", [2, 3, 8])
def test_short_rows_are_vectors_whatever_they_carry(count: int) -> None:
    """Sums, products, extremes and flags of rows, beside what is stored of each element."""
    x, at = pt.matrix("x", shape=(None, count)), pt.vector("at", shape=(count + 2,))
    y = pt.exp(x - at[2:])
    share = y / y.sum(1, keepdims=True)
    outputs = [share, y.max(1), (y * x).min(1), pt.prod(y, 1), pt.any(x > y, 1), pt.all(x <= 2, 1)]
    outputs += [(share * x).sum(0), pt.sum(share / at[2:]), pt.logsumexp(x, 1)]
    rows = np.random.default_rng(count).normal(size=(9, count))
    rows[1, 0], rows[2, 1], rows[3], rows[4, 0] = np.nan, np.inf, -np.inf, -0.0
    given = (rows, np.arange(1.0, count + 3))
    f, expected = graphc.function([x, at], outputs), graphc.function([x, at], outputs, mode="reference")
    for value, other in zip(f(*given), expected(*given), strict=True):
        np.testing.assert_allclose(value, other, rtol=1e-13)
    assert f"<{count} x double>" in f.ir_stages()["llvm"]


def test_every_expansion_is_tested() -> None:
    assert {f"math.{name}" for name in FUNCTIONS} == set(expansions())


def test_expansions_carry_no_fast_math_flags() -> None:
    for name in FUNCTIONS:
        body = lower(unary(name, "float64"), (ExpandMath(),))
        assert not any(flag in body for flag in ("reassoc", "contract", "nnan", " fast "))


def test_constants_split_without_loss() -> None:
    for fmt, value in ((F64, LN2), (F32, LN2), (F64, PI), (F32, PI)):
        high, low = fmt.split(value, low_zeros=9)
        assert fmt.bits(high) % 2**9 == 0
        assert abs(float(value) - (high + low)) <= float(value) * 2.0 ** (
            -fmt.mantissa - 9 if fmt is F32 else -52
        )


def test_keep_names_a_function_without_expansion() -> None:
    with pytest.raises(PassError, match="names 'sine', which has no expansion; these have: acos, asin"):
        lower(unary("exp", "float64"), (ExpandMath(keep="sine"),))


def test_a_module_is_walked_once(monkeypatch: pytest.MonkeyPatch) -> None:
    walks: list[ir.Operation] = []
    find = expand_math.walk_for
    monkeypatch.setattr(expand_math, "walk_for", lambda root, names: walks.append(root) or find(root, names))
    lower(unary("exp", "float64"), (ExpandMath(),))
    assert len(walks) == 1


def with_variants(text: str, features: str) -> str:
    with llvm.parsed(to_llvmlite(text)) as module:
        add_vector_variants(module, features)
        return str(module)


def test_widths_follow_the_features() -> None:
    text = lower(unary("sin", "float32"), ())
    assert with_variants(text, "").count("_ZGV") == 0
    narrow = with_variants(text, "+sse4.2,+avx2,-avx512f")
    assert "_ZGVbN4v_sinf" in narrow and "_ZGVdN8v_sinf" in narrow and "_ZGVe" not in narrow
    assert "llvm.sin" not in narrow


def test_text_without_libm_calls_is_unchanged() -> None:
    text = lower(unary("exp", "float64"), (ExpandMath(),))
    with llvm.parsed(to_llvmlite(text)) as module:
        before = str(module)
        add_vector_variants(module, "+sse4.2")
        assert str(module) == before


def test_every_symbol_is_in_libmvec() -> None:
    if not is_available("x86_64-unknown-linux-gnu"):
        pytest.skip("needs glibc's libmvec")
    from graphc.passes.llvm._code import FUNCTIONS as called
    from graphc_runtime.symbols import resolve

    everything = ",".join(feature for _, feature, _ in _SETS)
    for name, suffix in itertools.product(called, ("", "f")):
        assert all(resolve(symbol) for symbol, _ in _variants(name, suffix, everything))


@pytest.mark.parametrize("name, arity", [("tan", 1), ("asinh", 1), ("cbrt", 1), ("atan2", 2), ("powf", 2)])
@pytest.mark.parametrize("dtype", DTYPES)
def test_vector_variants_are_called(name: str, arity: int, dtype: str) -> None:
    import llvmlite.binding as binding

    if platform.machine() != "x86_64" or not is_available("x86_64-unknown-linux-gnu"):
        pytest.skip("needs glibc's libmvec on x86-64")
    binding.load_library_permanently("libmvec.so.1")
    operands = ", ".join(f"%x{i}" for i in range(arity))
    body = f"%r = math.{name} {operands} : {'f64' if dtype == 'float64' else 'f32'}"
    features = binding.get_host_cpu_features().flatten()
    kernel = compile_ir(with_variants(lower(source(body, dtype, arity), ()), features), arity)
    assert "_ZGV" in kernel.assembly
    inputs = [np.random.default_rng(i).uniform(0.1, 9, 1000).astype(dtype) for i in range(arity)]
    reference = {"tan": np.tan, "asinh": np.arcsinh, "cbrt": np.cbrt, "atan2": np.arctan2, "powf": np.power}[
        name
    ]
    np.testing.assert_allclose(kernel(*inputs), reference(*inputs), rtol=8 * np.finfo(dtype).eps)
