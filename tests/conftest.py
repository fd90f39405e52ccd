# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What all tests share: an on-disk cache of their own, and how many inputs are generated."""

from __future__ import annotations

import gc
import os
import shutil
import tempfile
from collections.abc import Iterator

import hypothesis
import pytest
from fuzzing import EXAMPLES, FUZZING

# Before graphc is imported, as it reads its settings then: no test finds what another run left. The
# workers of a run share a cache: what one has compiled, the others find.
_IS_WORKER = "PYTEST_XDIST_WORKER" in os.environ and "GRAPHC_TEST_CACHE" in os.environ
_CACHE = os.environ["GRAPHC_TEST_CACHE"] if _IS_WORKER else tempfile.mkdtemp(prefix="graphc-test-cache-")
os.environ["GRAPHC_TEST_CACHE"] = os.environ["GRAPHC_CACHE_DIR"] = _CACHE

# On a busy machine the lines of long compilations would be in outputs that tests compare.
os.environ.setdefault("GRAPHC_COMPILE_PROGRESS", "off")

# OpenBLAS's threads wait for each other in loops: of small matrices most of the time of both cores.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

# Whatever is compiled is checked for reads of memory that was overwritten.
os.environ.setdefault("GRAPHC_VERIFY_MEMORY", "1")

# Ordinary runs are short and always the same; `make fuzz-inputs` explores, FUZZ_EXAMPLES inputs a test.
hypothesis.settings.register_profile(
    "graphc", deadline=None, max_examples=EXAMPLES or 12, derandomize=not FUZZING, print_blob=True
)
hypothesis.settings.load_profile("graphc")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Builds of wheels and of the site come first, so that the last tests are short ones, of any process."""
    items.sort(key=lambda item: "tools" not in item.path.parts)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Nothing that is collected is garbage, and tests that look for garbage look among what they made."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        gc.freeze()


def pytest_unconfigure(config: pytest.Config) -> None:
    if not _IS_WORKER:
        shutil.rmtree(_CACHE, ignore_errors=True)


@pytest.fixture
def no_cache() -> Iterator[None]:
    """Functions are compiled anew, and leave nothing on the disk."""
    import graphc

    with graphc.config.change_flags(cache_dir=""):
        yield


@pytest.fixture
def nothing_aside(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Collections look at all objects there are, as in a process of users."""
    from graphc_runtime import collecting

    monkeypatch.setattr(collecting, "_aside", collecting._Aside())
    gc.unfreeze()
    yield
    gc.freeze()


@pytest.fixture
def no_collections() -> Iterator[None]:
    """For tests that parse all sources: Python would look through the trees again and again."""
    from graphc_runtime.collecting import paused

    with paused():
        yield


@pytest.fixture(scope="module")
def quick_ptx() -> Iterator[None]:
    """PTX is made, but not optimised, which takes a tenth of the time: simulated devices run none of it.

    Tests that look at instructions or registers call `to_ptx` for them.
    """
    from graphc.backends.cuda import code

    made = code.to_ptx
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(code, "to_ptx", lambda llvm_ir, arch: made(llvm_ir, arch, level=0))
        yield


@pytest.fixture(scope="module")
def jax_in_double_precision() -> Iterator[None]:
    jax = pytest.importorskip("jax")
    before = jax.config.jax_enable_x64
    jax.config.update("jax_enable_x64", True)
    yield
    jax.config.update("jax_enable_x64", before)
