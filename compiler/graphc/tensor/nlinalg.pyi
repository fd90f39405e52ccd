# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
from graphc.ops.shaping import matrix_transpose as matrix_transpose
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
