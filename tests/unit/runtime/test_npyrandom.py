# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""NumPy's library of draws, loaded by our loader."""

from __future__ import annotations

import ctypes
import random

import numpy as np
import pytest

from graphc_runtime import npyrandom, symbols
from graphc_runtime.errors import LoadError, SymbolError

pytestmark = pytest.mark.skipif(
    npyrandom.obstacle("random_standard_normal") is not None, reason="NumPy has no such library here"
)


def _function(name, *arguments):
    return ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_void_p, *arguments)(npyrandom.address(name))


def test_functions_draw_numpys_numbers():
    bits = np.random.PCG64(3)
    normal, gamma = _function("random_standard_normal"), _function("random_standard_gamma", ctypes.c_double)
    address = bits.ctypes.bit_generator.value
    generator = np.random.default_rng(3)
    for _ in range(1000):
        assert normal(address) == generator.standard_normal()
        assert gamma(address, 0.4) == generator.standard_gamma(0.4)


def test_objects_of_the_library_find_each_other():
    bits = np.random.PCG64(3)
    call = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p, *[ctypes.c_int64] * 3)
    draw = call(symbols.resolve("npyrandom_random_hypergeometric"))
    generator = np.random.default_rng(3)
    for _ in range(100):
        assert draw(bits.ctypes.bit_generator.value, 500, 900, 700) == generator.hypergeometric(500, 900, 700)


def test_tables_are_local_symbols():
    table = (ctypes.c_double * 256).from_address(npyrandom.address("fi_double"))
    assert table[0] == 1.0 and sorted(table, reverse=True) == list(table)


def test_unknown_symbols_are_refused():
    with pytest.raises(SymbolError, match="does not define 'nothing'"):
        npyrandom.address("nothing")
    assert "nothing" in npyrandom.obstacle("nothing")


def _read(tmp_path, data):
    path = tmp_path / "library.a"
    path.write_bytes(data)
    return npyrandom._Library.read(path)


def test_a_missing_or_foreign_file_is_no_library(tmp_path):
    with pytest.raises(LoadError, match="cannot be read"):
        npyrandom._Library.read(tmp_path / "none.a")
    with pytest.raises(LoadError, match="not an archive"):
        _read(tmp_path, b"\x7fELF and so on")
    with pytest.raises(LoadError, match="no member header"):
        _read(tmp_path, b"!<arch>\nshort")
    header = b"x/".ljust(48) + b"99999     " + b"`\n"
    with pytest.raises(LoadError, match="beyond the end"):
        _read(tmp_path, b"!<arch>\n" + header)
    with pytest.raises(LoadError, match="is no number"):
        _read(tmp_path, b"!<arch>\n" + b"x/".ljust(48) + b"many      " + b"`\n")


def test_damaged_libraries_are_refused_or_load(tmp_path):
    """Whatever is wrong with the file, the process goes on."""
    data = npyrandom.archive_path().read_bytes()
    generator = random.Random(0)
    for _ in range(60):
        damaged = bytearray(data[: generator.choice([len(data), generator.randrange(len(data))])])
        for _ in range(generator.randrange(1, 12)):
            damaged[generator.randrange(len(damaged))] = generator.randrange(256)
        try:
            library = _read(tmp_path, bytes(damaged))
            library.address("random_standard_gamma")
        except LoadError:
            pass


def test_without_the_library_the_reason_is_told(monkeypatch):
    npyrandom._library.cache_clear()
    npyrandom.obstacle.cache_clear()
    monkeypatch.setattr(npyrandom, "archive_path", lambda: npyrandom.Path("/nowhere/libnpyrandom.a"))
    try:
        assert "cannot be read" in npyrandom.obstacle("random_beta")
        with pytest.raises(SymbolError, match="so that draws run in Python"):
            npyrandom.address("random_beta")
    finally:
        npyrandom._library.cache_clear()
        npyrandom.obstacle.cache_clear()
