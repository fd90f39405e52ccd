# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Found by the bindings under this name when they look for the classes of the `graphc` namespace."""

from graphc_dialects._base import Graphc

__all__ = ["Graphc"]
