# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Symbolic differentiation: reverse and forward mode, what is built on them, and their control.

`reverse` pulls cotangents back through the rules of ops, `forward` pushes tangents; `transposed` makes either
rule of the other, `rules` and `stable` are what rules are written with, `accumulate` adds up, `branches` is
for conditionals. `derived` has the matrices of derivatives, `control` the operations that say what becomes of
a gradient, `connectivity` who depends on whom, and `verify` compares with differences.
"""

from graphc.errors import DisconnectedInputError as DisconnectedInputError
from graphc.errors import NullTypeGradError as NullTypeGradError
from graphc.gradient.connectivity import io_connection_pattern as io_connection_pattern
from graphc.gradient.control import consider_constant as consider_constant
from graphc.gradient.control import disconnected_grad as disconnected_grad
from graphc.gradient.control import grad_clip as grad_clip
from graphc.gradient.control import grad_scale as grad_scale
from graphc.gradient.control import undefined_grad as undefined_grad
from graphc.gradient.control import zero_grad as zero_grad
from graphc.gradient.derived import hessian as hessian
from graphc.gradient.derived import hessian_vector_product as hessian_vector_product
from graphc.gradient.derived import jacobian as jacobian
from graphc.gradient.forward import Rop as Rop
from graphc.gradient.forward import pushforward as pushforward
from graphc.gradient.reverse import Lop as Lop
from graphc.gradient.reverse import grad as grad
from graphc.gradient.reverse import pullback as pullback
from graphc.gradient.reverse import subgraph_grad as subgraph_grad
from graphc.gradient.reverse import value_and_grad as value_and_grad
from graphc.gradient.transposed import pushforward_through_pullback as pushforward_through_pullback
from graphc.gradient.verify import GradientError as GradientError
from graphc.gradient.verify import numeric_grad as numeric_grad
from graphc.gradient.verify import verify_grad as verify_grad
from graphc.graph.undefined import DisconnectedType as DisconnectedType
from graphc.graph.undefined import NullType as NullType
from graphc.graph.undefined import disconnected_type as disconnected_type
from graphc.graph.undefined import grad_not_implemented as grad_not_implemented
from graphc.graph.undefined import grad_undefined as grad_undefined
from graphc.graph.undefined import null_type as null_type
from graphc.hooks import publish as _publish

_publish(globals(), imported=True)
