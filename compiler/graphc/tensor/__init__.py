# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The tensor namespace: ``import graphc.tensor as pt``. Names and arguments follow PyTensor and NumPy."""

from typing import Any

from graphc.ops import rows  # noqa: F401
from graphc.tensor.basic import *  # noqa: F403
from graphc.tensor.constructors import *  # noqa: F403
from graphc.tensor.creation import *  # noqa: F403
from graphc.tensor.indexing import *  # noqa: F403
from graphc.tensor.joining import *  # noqa: F403
from graphc.tensor.math import *  # noqa: F403
from graphc.tensor.products import *  # noqa: F403
from graphc.tensor.reductions import *  # noqa: F403
from graphc.tensor.shaping import *  # noqa: F403
from graphc.tensor.special import *  # noqa: F403
from graphc.tensor.type import TensorType
from graphc.tensor.variable import TensorConstant, TensorVariable


def __getattr__(name: str) -> Any:
    if name in ("nnet", "special"):
        import importlib

        return importlib.import_module(f"graphc.tensor.{name}")
    if name in ("grad", "jacobian", "hessian"):
        import graphc

        return getattr(graphc, name)
    raise AttributeError(f"module 'graphc.tensor' has no attribute {name!r}")


__all__ = ["TensorConstant", "TensorType", "TensorVariable"]

# Whoever builds graphs will compile them: the first compilation should not wait for these imports.
import graphc.compile.native  # noqa: E402
import graphc.function.function  # noqa: E402, F401
