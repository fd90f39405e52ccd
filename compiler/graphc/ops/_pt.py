# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""``pt``: the namespace ``graphc.tensor``, loaded when it is first used.

The namespace imports the operations, so that these can only reach it late.
"""

from __future__ import annotations

from typing import Any


class _Namespace:
    def __getattr__(self, name: str) -> Any:
        import graphc.tensor

        return getattr(graphc.tensor, name)


pt = _Namespace()
