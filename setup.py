# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What of the distribution depends on how it is installed; see build_backend/graphc_build.py."""

import os

from setuptools import find_packages, setup
from setuptools_scm import get_version

VERSION = get_version(fallback_version="0.0")
FOLDERS = ["compiler", "dialects", "tools"]
DEPENDENCIES = [
    "torch-mlir==20261001",  # carries the complete upstream MLIR bindings; needs no torch
    "llvmlite>=0.47,<0.51",  # from 0.47 (LLVM 20) on, so that numba fits beside it
    "numpy>=2.0",
    "scipy>=1.13.1",  # the first one made for NumPy 2
]
COMMANDS = [f"graphc-{name} = graphc_tools.{name}:main" for name in ("compile", "lsp", "new", "opt", "view")]
if os.environ.get("GRAPHC_BUILD") == "editable":
    FOLDERS.append("runtime")
    COMMANDS.append("graphc-run = graphc_runtime.run:main")  # as in runtime/pyproject.toml
else:
    DEPENDENCIES.append(f"graphc-runtime=={VERSION}")

found = {package: folder for folder in FOLDERS for package in find_packages(folder)}
setup(
    install_requires=DEPENDENCIES,
    entry_points={"console_scripts": COMMANDS},
    packages=list(found),
    package_dir={package: f"{folder}/{package}" for package, folder in found.items() if "." not in package},
)
