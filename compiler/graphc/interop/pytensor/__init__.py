# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""PyTensor's graphs, and so PyMC's models, compiled by graphc: ``pip install graphc[pytensor]``.

Importing this module registers PyTensor's modes ``"GRAPHC"`` and ``"GRAPHC_REWRITTEN"``::

    import graphc.interop.pytensor
    f = pytensor.function([x], y, mode="GRAPHC")
    pm.sample(compile_kwargs={"mode": "GRAPHC"})

``"GRAPHC"``, also named ``"GRAPHC_RAW"``, applies none of PyTensor's rewrites: graphc has its own.
``"GRAPHC_REWRITTEN"`` applies PyTensor's canonicalisation, stabilisation and specialisation before them.
"""

from __future__ import annotations

try:
    import pytensor
    import pytensor.tensor  # noqa: F401
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(
        f"graphc.interop.pytensor needs PyTensor, and {error.name} is not installed: "
        "pip install 'graphc[pytensor]'"
    ) from error

from graphc.interop.pytensor.graphs import from_pytensor
from graphc.interop.pytensor.linker import GraphcLinker, register
from graphc.interop.pytensor.reverse import to_pytensor

register()

__all__ = ["GraphcLinker", "from_pytensor", "to_pytensor"]
