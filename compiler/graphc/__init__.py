# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""graphc: a compiler for symbolic tensor graphs.

Public names follow PyTensor: ``import graphc as pytensor; import graphc.tensor as pt`` runs its tutorials.
Submodules and names load when they are first used, so that importing the package costs little.
"""

from __future__ import annotations

import importlib
import os
import sys
from typing import TYPE_CHECKING, Any

from graphc import hooks, installation

try:
    import graphc_runtime
    from graphc.config import config
    from graphc_runtime.collecting import paused
except ImportError as error:
    installation.check_runtime(error)
    raise
if any(
    name.startswith("graphc_runtime-") for name in os.listdir(os.path.dirname(graphc_runtime.__path__[0]))
):
    installation.check_runtime()

if TYPE_CHECKING:
    from types import TracebackType

    from graphc import array_api as array_api
    from graphc import artifacts as artifacts
    from graphc import compile as compile
    from graphc import distributed as distributed
    from graphc import gradient as gradient
    from graphc import graph as graph
    from graphc import immediate as immediate
    from graphc import ops as ops
    from graphc import optimizers as optimizers
    from graphc import raise_op as raise_op
    from graphc import sparse as sparse
    from graphc import tensor as tensor

    # At run time this is the callable package `graphc.function`.
    from graphc.artifacts.export import export as export
    from graphc.compile.jax_ops import wrap_jax as wrap_jax
    from graphc.compile.ops import as_op as as_op
    from graphc.compile.ops import wrap_py as wrap_py
    from graphc.function.function import function as function
    from graphc.function.io import In as In
    from graphc.function.io import Out as Out
    from graphc.function.shared import shared as shared
    from graphc.gradient import Lop as Lop
    from graphc.gradient import Rop as Rop
    from graphc.gradient import consider_constant as consider_constant
    from graphc.gradient import disconnected_grad as disconnected_grad
    from graphc.gradient import grad as grad
    from graphc.gradient import grad_clip as grad_clip
    from graphc.gradient import hessian as hessian
    from graphc.gradient import jacobian as jacobian
    from graphc.gradient import pullback as pullback
    from graphc.gradient import pushforward as pushforward
    from graphc.gradient import value_and_grad as value_and_grad
    from graphc.gradient import verify_grad as verify_grad
    from graphc.gradient import zero_grad as zero_grad
    from graphc.graph.basic import Apply as Apply
    from graphc.graph.basic import Constant as Constant
    from graphc.graph.basic import Variable as Variable
    from graphc.graph.basic import located as located
    from graphc.graph.function_graph import FunctionGraph as FunctionGraph
    from graphc.graph.op import Op as Op
    from graphc.graph.printing import debugprint as debugprint
    from graphc.graph.printing import dprint as dprint
    from graphc.graph.replace import clone_replace as clone_replace
    from graphc.graph.replace import graph_replace as graph_replace
    from graphc.graph.shared import SharedVariable as SharedVariable
    from graphc.graph.tensor.convert import as_tensor_variable
    from graphc.graph.traversal import ancestors as ancestors
    from graphc.graph.traversal import explicit_graph_inputs as explicit_graph_inputs
    from graphc.graph.type import Type as Type
    from graphc.immediate.jit import jit as jit
    from graphc.inspect.svg import to_svg as to_svg
    from graphc.ops.ifelse import ifelse as ifelse
    from graphc.scan.associative import associative_scan as associative_scan
    from graphc.scan.associative import fori_loop as fori_loop
    from graphc.scan.associative import loop as loop
    from graphc.scan.associative import while_loop as while_loop
    from graphc.scan.frontend import scan as scan
    from graphc.scan.helpers import cumulative as cumulative
    from graphc.scan.helpers import foldl as foldl
    from graphc.scan.helpers import foldr as foldr
    from graphc.scan.helpers import map as map
    from graphc.scan.helpers import reduce as reduce
    from graphc.scan.returned import until as until
    from graphc.tensor.vectorizing import vmap as vmap
    from graphc.transforms.op_from_graph import OpFromGraph as OpFromGraph
    from graphc.transforms.vectorize import vectorize_graph as vectorize_graph
    from graphc.versions import show_versions as show_versions
    from graphc_runtime.threads import threads as threads

    as_symbolic = as_tensor_variable
    __version__: str

# The public names of each module.
_PUBLIC = {
    "graphc.graph.basic": "Apply Constant Variable located",
    "graphc.graph.op": "Op",
    "graphc.graph.type": "Type",
    "graphc.graph.function_graph": "FunctionGraph",
    "graphc.transforms.op_from_graph": "OpFromGraph",
    "graphc.graph.replace": "clone_replace graph_replace",
    "graphc.transforms.vectorize": "vectorize_graph",
    "graphc.tensor.vectorizing": "vmap",
    "graphc.graph.traversal": "ancestors explicit_graph_inputs",
    "graphc.graph.printing": "dprint debugprint",
    "graphc.inspect.svg": "to_svg",
    "graphc.function.io": "In Out",
    "graphc.function.shared": "shared",
    "graphc.graph.shared": "SharedVariable",
    "graphc.graph.tensor.convert": "as_symbolic",
    "graphc.compile.ops": "as_op wrap_py",
    "graphc.compile.jax_ops": "wrap_jax",
    "graphc.immediate.jit": "jit",
    "graphc_runtime.threads": "threads",
    "graphc.artifacts.export": "export",
    "graphc.versions": "show_versions",
    "graphc.scan": "associative_scan cumulative foldl foldr fori_loop loop map reduce until while_loop",
    "graphc.gradient": (
        "grad jacobian hessian pushforward pullback Lop Rop value_and_grad verify_grad "
        "consider_constant disconnected_grad zero_grad grad_clip"
    ),
}
_NAMES = {name: module for module, names in _PUBLIC.items() for name in names.split()}
_RENAMED = {"as_symbolic": "as_tensor_variable"}
_SUBMODULES = (
    "array_api",
    "artifacts",
    "compile",
    "distributed",
    "errors",
    "function",
    "gradient",
    "graph",
    "ifelse",
    "immediate",
    "ops",
    "optimizers",
    "passes",
    "printing",
    "raise_op",
    "scan",
    "sparse",
    "tensor",
)

__all__ = ["config", *sorted({*_NAMES, *_SUBMODULES})]


def __getattr__(name: str) -> Any:
    module = _NAMES.get(name)
    with paused(stays=True):
        if module is not None:
            value = getattr(importlib.import_module(module), _RENAMED.get(name, name))
        elif name == "__version__":
            value = importlib.import_module("graphc_runtime.installed").version("graphc")
        elif name in _SUBMODULES:
            value = importlib.import_module(f"graphc.{name}")
        else:
            raise AttributeError(f"module 'graphc' has no attribute {name!r}{_hint(name)}")
    globals()[name] = value
    return value


def _hint(name: str) -> str:
    """Place of a name that is not here, or the name that it resembles."""
    if name.startswith("_"):
        return ""
    tensor = importlib.import_module("graphc.tensor")
    if name in dir(tensor):
        return f"; it is graphc.tensor.{name}"
    if name == "load":
        return "; it is graphc_runtime.load(path), which needs no compiler"
    return importlib.import_module("graphc.errors").did_you_mean(name, __all__)


def _show_uncaught(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """Shows an uncaught error as ``config.traceback`` says."""
    importlib.import_module("graphc.graph.basic").shorten(error)
    _excepthook(kind, error, error.__traceback__)


def _show_in_notebooks(
    shell: Any, kind: object, error: BaseException, *place: object, **more: object
) -> None:
    importlib.import_module("graphc.graph.basic").shorten(error)
    shell.showtraceback((kind, error, error.__traceback__), **more)


_excepthook = sys.excepthook
sys.excepthook = _show_uncaught
if "IPython" in sys.modules:
    _shell = sys.modules["IPython"].get_ipython()
    if _shell is not None and not getattr(_shell, "custom_exceptions", ()):
        _shell.set_custom_exc((Exception,), _show_in_notebooks)

# Modules under PyTensor's names, and what workers of a cluster have without a compiler.
hooks.RenamedFunction("graphc.ifelse", "graphc.ops.ifelse")
hooks.RenamedModule("graphc.raise_op", "graphc.ops.checks")
hooks.RenamedModule("graphc.distributed", "graphc_runtime.distributed")

hooks.function.load = lambda: importlib.import_module("graphc").function
hooks.evaluate.load = lambda: importlib.import_module("graphc").function.evaluate_variable
hooks.scan.load = lambda: importlib.import_module("graphc").scan
hooks.loop_over_batch.load = lambda: importlib.import_module("graphc.scan.batch_loop").loop_over_batch
hooks.debugprint.load = lambda: importlib.import_module("graphc").debugprint
hooks.picture.load = lambda: importlib.import_module("graphc.inspect.svg").notebook_picture
hooks.inspection.load = lambda: importlib.import_module("graphc.inspect")
hooks.namespace.load = lambda: importlib.import_module("graphc").array_api.namespace


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
