# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Linear algebra over the last two axes; leading axes are a batch.

Names and arguments follow PyTensor's ``tensor.linalg`` and ``numpy.linalg``. Integers become float64, float16
becomes float32.
"""

from typing import TYPE_CHECKING

from graphc.ops.shaping import matrix_transpose as matrix_transpose
from graphc.tensor.linalg import (
    banded,
    canonical,
    decompositions,
    equations,
    functions,
    norms,
    products,
    solving,
    structured,
    subspaces,
)
from graphc.tensor.linalg.banded import *  # noqa: F403
from graphc.tensor.linalg.canonical import *  # noqa: F403
from graphc.tensor.linalg.decompositions import *  # noqa: F403
from graphc.tensor.linalg.equations import *  # noqa: F403
from graphc.tensor.linalg.functions import *  # noqa: F403
from graphc.tensor.linalg.norms import *  # noqa: F403
from graphc.tensor.linalg.products import *  # noqa: F403
from graphc.tensor.linalg.solving import *  # noqa: F403
from graphc.tensor.linalg.structured import *  # noqa: F403
from graphc.tensor.linalg.subspaces import *  # noqa: F403
from graphc.tensor.products import matmul as matmul
from graphc.tensor.products import outer as outer
from graphc.tensor.products import tensordot as tensordot

if not TYPE_CHECKING:  # type checkers read no sums of lists: without this one they take all names
    __all__ = ["matmul", "matrix_transpose", "outer", "tensordot", *banded.__all__, *canonical.__all__]
    __all__ += [*decompositions.__all__, *equations.__all__, *functions.__all__, *norms.__all__]
    __all__ += [*products.__all__, *solving.__all__, *structured.__all__, *subspaces.__all__]
