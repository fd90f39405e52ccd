# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compiled functions as files: `.gcx` for the runtime, objects and shared libraries for C."""

import graphc.tensor  # noqa: F401  # the compiler imports tensors, and tensors the compiler
from graphc.artifacts.export import export

__all__ = ["export"]
