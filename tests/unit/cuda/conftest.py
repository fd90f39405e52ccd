# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Libraries in C with functions of NVIDIA's, on memory of the host."""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
from pathlib import Path

import pytest

_HERE = Path(__file__).parent
_CUDA = Path("/usr/local/cuda/include"), *sorted(Path("/usr/local").glob("cuda-*/include"))


def _done(arguments: list[str]) -> subprocess.CompletedProcess[str]:
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        pytest.skip("there is no C compiler")
    return subprocess.run([compiler, *arguments], capture_output=True, text=True, timeout=120)


def _compiled(name: str, folder: Path, options: list[str]) -> str:
    path = folder / f"lib{name}.so"
    done = _done(["-shared", "-fPIC", "-O1", *options, str(_HERE / f"{name}.c"), "-o", str(path)])
    assert done.returncode == 0, done.stderr
    return str(path)


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> str:
    """That of the CUDA driver; with NVIDIA's header, where that is, its types are compared."""
    found = [folder for folder in _CUDA if (folder / "cuda.h").is_file()]
    options = ["-DHAVE_CUDA_H", f"-I{found[-1]}"] if found else []
    return _compiled("fake_cuda", tmp_path_factory.mktemp("cuda"), options)


@pytest.fixture(scope="module")
def blas(tmp_path_factory: pytest.TempPathFactory) -> str:
    """cuBLAS; with the headers of NVIDIA's packages, where these are, its types are compared."""
    package = importlib.util.find_spec("nvidia")
    roots = [] if package is None else list(package.submodule_search_locations or ())
    folders = [folder for root in roots for folder in sorted(Path(root).glob("*/include"))]
    options = ["-DHAVE_CUBLAS_H", *(f"-I{folder}" for folder in folders)]
    # Headers may be missing, or of versions that do not go together.
    alone = _done(["-fsyntax-only", "-DONLY_HEADER", *options, str(_HERE / "fake_cublas.c")])
    return _compiled("fake_cublas", tmp_path_factory.mktemp("cublas"), [] if alone.returncode else options)
