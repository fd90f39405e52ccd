# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compiled functions as files: `.gcx` for the runtime, objects and shared libraries for C."""

from graphc.artifacts.export import export

__all__ = ["export"]
