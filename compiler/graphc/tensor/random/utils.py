# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Where PyTensor's users look for `RandomStream`."""

from __future__ import annotations

from graphc.tensor.random.stream import RandomStream

__all__ = ["RandomStream"]
