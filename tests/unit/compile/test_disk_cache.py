# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compiled code in the disk cache and in pickles, across processes."""

from __future__ import annotations

import pickle
import re
import zlib

import numpy as np
import pytest

import graphc
import graphc.tensor as pt
from graphc.backends.cpu import object as codegen
from graphc.backends.cpu.object import LEVELS, TRIPLE, _shipped, find_shipped, level_of
from graphc.native import parts
from graphc.native.parts import Part, PartStore, forget_parts
from graphc_runtime import elf
from graphc_runtime.cache import MAGIC

COMPILE = """
import sys
import numpy as np
import graphc, graphc.tensor as pt
x, s = pt.dmatrix("x"), graphc.shared(np.ones(3), "s")
f = graphc.function([x], [pt.softmax(x * s, axis=1).sum(axis=0), pt.log1p(x)[::2]], updates={s: s + x[0]})
value = np.arange(6.0).reshape(2, 3)
f(value)
result = [*map(np.ndarray.tolist, f(value)), s.get_value().tolist()]
loaded = sorted({m.partition(".")[0] for m in sys.modules} & {"torch_mlir", "mlir", "llvmlite", "scipy"})
print(f.report.cache, loaded, "passes" in f.report.phases, f.report.fast_call)
print(result)
"""


def entries(cache_dir):
    """The entries of functions."""
    return [path for path in sorted(cache_dir.rglob("*.bin")) if not is_part(path)]


def is_part(path):
    """Whether an entry is the object of a part, not the artifact of a function."""
    return path.read_bytes()[len(MAGIC) + 32 :].startswith(b"\x7fELF")


def test_a_second_process_compiles_nothing(cache_dir, python):
    first, first_result = python(COMPILE).splitlines()
    assert first.startswith("['miss']") and "llvmlite" in first and "torch_mlir" in first
    assert len(entries(cache_dir)) == 1
    second, second_result = python(COMPILE).splitlines()
    assert second.startswith("['hit'] [] False") and second_result == first_result
    assert second.split()[-1] == first.split()[-1]
    assert len(entries(cache_dir)) == 1


def compiled(*, mode=None):
    x = pt.dvector("x")
    return graphc.function([x], pt.exp(x) * 2.0 - x, mode=mode)


VALUE = np.array([0.5, -1.0, 2.0])
WANT = np.exp(VALUE) * 2 - VALUE


def test_hit_miss_and_off(cache_dir, monkeypatch):
    assert compiled().report.cache == ["miss"]
    again = compiled()
    assert again.report.cache == ["hit"] and "disk cache" in again.report.phases
    np.testing.assert_allclose(again(VALUE), WANT, rtol=1e-14)
    assert compiled(mode="fast_compile").report.cache == ["miss"]
    monkeypatch.setattr(graphc.config, "cache_dir", "")
    off = compiled()
    assert off.report.cache == ["off"] and len(entries(cache_dir)) == 2
    np.testing.assert_allclose(off(VALUE), WANT, rtol=1e-14)


def _truncate(path):
    path.write_bytes(path.read_bytes()[:100])


def _flip(path):
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 0xFF
    path.write_bytes(bytes(data))


def _empty(path):
    path.write_bytes(b"")


def _other_content(path, body=b"not an artifact"):
    """Well formed as an entry of the cache, but no artifact."""
    from graphc_runtime.cache import _digest

    path.write_bytes(MAGIC + _digest(path.stem, body) + body)


@pytest.mark.parametrize("mode", ["fast_run", "fast_compile"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_parts_that_ship_are_not_compiled(compiled_modules, monkeypatch, dtype, mode):
    monkeypatch.setattr(codegen, "find_shipped", find_shipped)
    machine = codegen.this_machine()
    level = level_of(machine.triple, machine.cpu, machine.features)
    a, b = pt.matrix("a", dtype=dtype), pt.matrix("b", dtype=dtype)
    value = np.arange(300 * 300).reshape(300, 300).astype(dtype) / 1e4
    for outputs in ([a @ b], [a @ b, a @ b.T]):
        forget_parts()
        compiled_modules.clear()
        with graphc.config.change_flags(cache_dir=""):
            f = graphc.function([a, b], outputs, mode=mode)
        defined = {name for text in compiled_modules for name in functions_of(text)}
        letter = "s" if dtype == "float32" else "d"
        ships = {"graphc_raise", f"graphc_{letter}gemm", f"graphc_{letter}gemm.large"}
        assert defined & ships == (ships if level is None else set())
        np.testing.assert_allclose(f(value, value)[0], value @ value, rtol=2e-5)


@pytest.mark.parametrize("level", LEVELS)
def test_parts_ship_for_machines_that_have_all_features_of_a_level(level):
    cpu = f"{LEVELS[level].only}5"
    features = [name for name in LEVELS[level].features.split(",") if name.startswith("+")]
    assert level_of(TRIPLE, cpu, ",".join(["+sse2", *reversed(features), "-avx10.1"])) == level
    assert level_of("aarch64-unknown-linux-gnu", cpu, ",".join(features)) is None
    for missing in features:
        others = ",".join([*(name for name in features if name != missing), missing.replace("+", "-")])
        assert level_of(TRIPLE, cpu, others) != level
    if LEVELS[level].only:
        assert level_of(TRIPLE, "x", ",".join(features)) != level


def test_shipped_parts_are_up_to_date():
    keys = {key for level in LEVELS for key in codegen.shipped_works(level)}
    assert keys == _shipped().keys(), "run python -m graphc_tools.pool"
    for code in _shipped().values():
        assert elf.parse(zlib.decompress(code)).symbols


SQUARE, ROW = pt.dmatrix("square"), pt.dvector("row")
LOWER = pt.linalg.cholesky(SQUARE)
# Functions, the NumPy code that says the same, and how many parts that ship each has, beside what it calls.
OF_KERNELS = {
    "a logarithm of a density and its gradient": (
        [LOWER, graphc.grad(pt.linalg.solve_triangular(LOWER, ROW, lower=True).sum(), ROW)],
        lambda a, x: [np.linalg.cholesky(a), np.linalg.solve(np.linalg.cholesky(a).T, np.ones(len(x)))],
        2,
    ),
    "systems": (
        [pt.linalg.solve(SQUARE, ROW), pt.linalg.inv(SQUARE), pt.linalg.slogdet(SQUARE)[1]],
        lambda a, x: [np.linalg.solve(a, x), np.linalg.inv(a), np.linalg.slogdet(a)[1]],
        3,
    ),
    "values": (
        [pt.linalg.eigh(SQUARE)[0], pt.linalg.svd(SQUARE)[1], pt.linalg.svd(SQUARE, compute_uv=False)],
        lambda a, x: [np.linalg.eigh(a)[0], np.linalg.svd(a)[1], np.linalg.svd(a)[1]],
        3,
    ),
    "order": (
        [pt.sort(ROW), pt.argsort(ROW), pt.median(ROW), pt.fft.fft(ROW), pt.fft.rfft(ROW)],
        lambda a, x: [np.sort(x), np.argsort(x), np.median(x), np.fft.fft(x), np.fft.rfft(x)],
        7,
    ),
}


@pytest.mark.parametrize("what", OF_KERNELS)
@pytest.mark.parametrize("level", LEVELS)
def test_kernels_that_ship_compute_what_numpy_does(monkeypatch, level, what):
    """On all levels that this machine has; a lower one serves kernels of a higher machine, too."""
    machine = codegen.this_machine()
    needed = {name for name in LEVELS[level].features.split(",") if name.startswith("+")}
    if not needed <= set(machine.features.split(",")):
        pytest.skip(f"the machine is not {level}")
    outputs, wanted, n_parts = OF_KERNELS[what]
    found = []
    monkeypatch.setattr(codegen, "level_of", lambda triple, cpu, features: level)
    monkeypatch.setattr(codegen, "find_shipped", lambda key: found.append(find_shipped(key)) or found[-1])
    forget_parts()
    with graphc.config.change_flags(cache_dir=""):
        f = graphc.function([SQUARE, ROW], outputs, on_unused_input="ignore")
    assert sum(code is not None for code in found) == n_parts + 1
    rng = np.random.default_rng(0)
    for n in (1, 5, 20, 70):
        a, x = rng.normal(size=(n, n)), rng.normal(size=n)
        a = a @ a.T + n * np.eye(n)
        for value, expected in zip(f(a, x), wanted(a, x), strict=True):
            np.testing.assert_allclose(value, expected, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("damage", [_truncate, _flip, _empty, _other_content])
def test_a_damaged_entry_is_compiled_again(cache_dir, damage):
    compiled()
    (path,) = entries(cache_dir)
    damage(path)
    f = compiled()
    assert f.report.cache == ["miss"]
    np.testing.assert_allclose(f(VALUE), WANT, rtol=1e-14)
    assert compiled().report.cache == ["hit"]


def functions_of(text):
    """What a module defines."""
    return re.findall(r"^define .*?@([\w.-]+)\(", text, re.M)


@pytest.fixture
def compiled_modules(monkeypatch):
    """Texts of the modules that are compiled, with nothing that ships: that depends on the machine."""
    monkeypatch.setattr(codegen, "find_shipped", lambda identity: None)
    texts = []
    compile_all = codegen._compile

    def compile_and_record(works, *options, **views):
        texts.extend(work.piece.text for work in works)
        return compile_all(works, *options, **views)

    monkeypatch.setattr(codegen, "_compile", compile_and_record)
    return texts


def decomposed(offset, mode=None):
    x = pt.dtensor3("x")
    return graphc.function([x], [pt.linalg.cholesky(x) + offset, pt.matmul(x, x)], mode=mode)


def test_parts_are_compiled_once(cache_dir, compiled_modules):
    value = np.array([[[4.0, 2.0], [2.0, 5.0]]])
    for offset, n_modules in ((1.0, 7), (2.0, 1)):
        compiled_modules.clear()
        factor, product = decomposed(offset)(value)
        np.testing.assert_allclose(factor - offset, np.linalg.cholesky(value), rtol=1e-14)
        np.testing.assert_allclose(product, value @ value, rtol=1e-14)
        assert (
            len(compiled_modules) == n_modules
        )  # kernel, entry, what it calls, memory, factorization, product, large ones
    kernel = compiled_modules[0]
    assert "@main(" in kernel and "call i64 @graphc_kernel.cholesky" in kernel
    # Kernels are compiled for each level, entries are the same at all.
    compiled_modules.clear()
    decomposed(1.0, mode="fast_compile")
    defined = [name for text in compiled_modules for name in functions_of(text)]
    assert "graphc_kernel.cholesky.f64-f64.check-1-lower-1" in defined and "graphc_entry" not in defined


@pytest.mark.parametrize("damage", [_truncate, _flip, _empty, _other_content])
def test_a_damaged_part_is_compiled_again(cache_dir, compiled_modules, damage):
    decomposed(1.0)
    parts = [path for path in cache_dir.rglob("*.bin") if is_part(path)]
    assert len(parts) == 6
    damage(parts[0])
    forget_parts()
    compiled_modules.clear()
    decomposed(2.0)(np.eye(2)[None])
    assert len(compiled_modules) == 2


def _other_object(path):
    """A right hash over an object without the part's functions."""
    from graphc_runtime.cache import _digest

    (body,) = (code for code, _ in codegen._compile([codegen._part_work(Part("@x = global i8 1"), 1)]))
    path.write_bytes(MAGIC + _digest(path.stem, body) + body)


@pytest.mark.parametrize("change", [_other_object, lambda path: _other_content(path, b"\x7fELF no more")])
def test_forged_parts_are_compiled_again(cache_dir, change):
    decomposed(1.0)
    for path in cache_dir.rglob("*.bin"):
        if is_part(path):
            change(path)
    forget_parts()
    f = decomposed(2.0)
    np.testing.assert_allclose(f(np.eye(2)[None])[0][0], np.eye(2) + 2)
    assert f.report.cache == ["miss"]


def test_an_entry_of_another_form_of_call_is_not_used(cache_dir):
    """Its code would read arguments that are not there."""
    compiled()
    (path,) = entries(cache_dir)
    x, y = pt.dvectors("x", "y")
    graphc.function([x, y], x * y)
    (other,) = (entry for entry in entries(cache_dir) if entry != path)
    _other_content(path, other.read_bytes()[len(MAGIC) + 32 :])
    f = compiled()
    assert f.report.cache == ["miss"]
    np.testing.assert_allclose(f(VALUE), WANT, rtol=1e-14)


def test_without_a_cache_nothing_is_written(cache_dir, compiled_modules, monkeypatch):
    monkeypatch.setattr(graphc.config, "cache_dir", "")
    for offset in (1.0, 2.0):
        decomposed(offset)
    assert len(compiled_modules) == 8 and not list(cache_dir.rglob("*.bin"))


def test_a_process_keeps_the_objects_that_it_used_last(monkeypatch):
    monkeypatch.setattr(parts, "_MADE_BYTES", 10)
    store = PartStore("")
    first, second, third = keys = [store.key(text) for text in "abc"]
    forget_parts()
    for key in (first, second):
        store.put(key, b"four", is_part=False)
    assert store.get(first, is_part=False) == b"four"
    store.put(third, b"four", is_part=True)
    assert [store.get(key, is_part=True) for key in keys] == [b"four", None, b"four"]
    assert PartStore("other").key("a") != first and PartStore("", renew=True).get(first, is_part=True) is None
    monkeypatch.setattr(parts, "_LARGEST", 3)
    store.put(second, b"four", is_part=True)
    assert store.get(second, is_part=True) is None
    forget_parts()
    assert store.get(first, is_part=True) is None


SAME = {
    "names": lambda x, y: graphc.function([x, y], pt.exp(x) * y, name="other"),
    "a second result": lambda x, y: graphc.function([x, y], [pt.exp(x) * y]),
    "a default": lambda x, y: graphc.function([x, graphc.In(y, value=[1.0])], pt.exp(x) * y),
}


@pytest.mark.parametrize("change", SAME)
def test_functions_with_the_same_kernel_share_its_code(cache_dir, compiled_modules, monkeypatch, change):
    """Whatever differs around it; each change makes another entry of the disk cache or has none."""
    monkeypatch.setattr(graphc.config, "cache_dir", "")
    graphc.function([x := pt.dvector("x"), y := pt.dvector("y")], pt.exp(x) * y)
    compiled_modules.clear()
    f = SAME[change](pt.dvector("a"), pt.dvector("b"))
    assert not any("@main(" in text for text in compiled_modules)
    (value,) = np.atleast_2d(f([0.5, 1.0], [2.0, 3.0]))
    np.testing.assert_allclose(value, np.exp([0.5, 1.0]) * [2.0, 3.0], rtol=1e-14)


@pytest.mark.parametrize(
    "change",
    [
        lambda x, y: graphc.function([x, y], pt.exp(x) * y + 1),
        lambda x, y: graphc.function([x, y], pt.exp(x) * y, mode="fast_compile"),
        lambda x, y: graphc.function([y, x], pt.exp(x) * y),
        lambda x, y: graphc.function([x, y], pt.exp(x) * y.astype("float32")),
    ],
)
def test_functions_with_other_kernels_share_none(cache_dir, compiled_modules, monkeypatch, change):
    monkeypatch.setattr(graphc.config, "cache_dir", "")
    graphc.function([x := pt.dvector("x"), y := pt.dvector("y")], pt.exp(x) * y)
    compiled_modules.clear()
    change(pt.dvector("a"), pt.dvector("b"))
    assert any("@main(" in text for text in compiled_modules)


def test_large_constants_of_other_data_share_an_entry(cache_dir):
    x = pt.dvector("x")
    for start, state in ((0.0, "miss"), (5.0, "hit")):
        data = np.arange(20.0) + start
        f = graphc.function([x], x * pt.constant(data))
        assert f.report.cache == [state]
        np.testing.assert_array_equal(f(np.full(20, 2.0)), 2 * data)


def test_a_cached_function_reports_the_current_line(cache_dir):
    def build():
        x, i = pt.dvector("x"), pt.lvector("i")
        return graphc.function([x, i], x[i] + 1.0), graphc.function([x, i], x[i] + 1.0)

    for f, state in zip(build(), ("miss", "hit"), strict=True):
        assert f.report.cache == [state]
        with pytest.raises(IndexError, match=r"test_disk_cache\.py"):
            f(VALUE, np.array([7]))


@pytest.mark.parametrize("mode", ["fast_run", "fast_compile", "reference"])
def test_pickles_run_in_another_process(cache_dir, python, tmp_path, mode):
    x, s = pt.dvector("x"), graphc.shared(np.ones(3), "s")
    table = pt.constant(np.arange(20.0))
    f = graphc.function([x], [x * s + table[2], pt.exp(x)], updates={s: s + x}, mode=mode, name="pickled")
    f(VALUE)
    path = tmp_path / "f.pickle"
    path.write_bytes(pickle.dumps(f))
    code = f"""
import pickle, sys
from pathlib import Path
import numpy as np
f = pickle.loads(Path({str(path)!r}).read_bytes())
results = f(np.array([0.5, -1.0, 2.0]))
print([r.tolist() for r in results], f.name)
print(sorted({{m.partition(".")[0] for m in sys.modules}} & {{"torch_mlir", "llvmlite"}}))
try:
    f(np.zeros((2, 2)))
except (TypeError, ValueError):
    print("refused")
"""
    results, loaded, refused = python(code).splitlines()
    here = [r.tolist() for r in f(VALUE)]
    assert results == f"{here} pickled" and loaded == "[]" and refused == "refused"
