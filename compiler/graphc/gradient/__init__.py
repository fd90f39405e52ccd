# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Symbolic differentiation: reverse and forward mode, what is built on them, and their control."""

from graphc.errors import DisconnectedInputError, NullTypeGradError
from graphc.gradient.connectivity import io_connection_pattern
from graphc.gradient.control import (
    consider_constant,
    disconnected_grad,
    grad_clip,
    grad_scale,
    undefined_grad,
    zero_grad,
)
from graphc.gradient.derived import hessian, hessian_vector_product, jacobian
from graphc.gradient.forward import Rop, pushforward
from graphc.gradient.reverse import Lop, grad, pullback, subgraph_grad, value_and_grad
from graphc.gradient.transposed import pushforward_through_pullback
from graphc.gradient.verify import GradientError, numeric_grad, verify_grad
from graphc.graph.undefined import (
    DisconnectedType,
    NullType,
    disconnected_type,
    grad_not_implemented,
    grad_undefined,
    null_type,
)

__all__ = [
    "DisconnectedInputError",
    "DisconnectedType",
    "GradientError",
    "Lop",
    "NullType",
    "NullTypeGradError",
    "Rop",
    "consider_constant",
    "disconnected_grad",
    "disconnected_type",
    "grad",
    "grad_clip",
    "grad_not_implemented",
    "grad_scale",
    "grad_undefined",
    "hessian",
    "hessian_vector_product",
    "io_connection_pattern",
    "jacobian",
    "null_type",
    "numeric_grad",
    "pullback",
    "pushforward",
    "pushforward_through_pullback",
    "subgraph_grad",
    "undefined_grad",
    "value_and_grad",
    "verify_grad",
    "zero_grad",
]
