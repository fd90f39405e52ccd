# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What of the distribution depends on how it is installed; see build_backend/graphc_build.py."""

import os
import tomllib
from pathlib import Path

from setuptools import find_packages, setup

VERSION = tomllib.loads(Path("pyproject.toml").read_text())["project"]["version"]
FOLDERS = ["compiler", "dialects", "tools"]
DEPENDENCIES = [
    "torch-mlir==20261001",  # carries the complete upstream MLIR bindings; needs no torch
    "llvmlite>=0.47,<0.51",  # from 0.47 (LLVM 20) on, so that numba fits beside it
    "numpy>=2.0",
    "scipy",
]
if os.environ.get("GRAPHC_BUILD") == "editable":
    FOLDERS.append("runtime")
else:
    DEPENDENCIES.append(f"graphc-runtime=={VERSION}")

found = {package: folder for folder in FOLDERS for package in find_packages(folder)}
setup(
    install_requires=DEPENDENCIES,
    packages=list(found),
    package_dir={package: f"{folder}/{package}" for package, folder in found.items() if "." not in package},
)
