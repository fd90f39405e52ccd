# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""PyTensor's name for the module of `RandomStream`."""

from __future__ import annotations

from graphc.tensor.random.stream import RandomStream

__all__ = ["RandomStream"]
