# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Every op class of PyTensor and of PyMC is converted or named here with its reason; any of their versions installs."""

from __future__ import annotations

import importlib
import importlib.metadata
import pkgutil
import sys
import tomllib
import warnings
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pymc
import pytensor
import pytest
from packaging.requirements import Requirement
from packaging.version import Version
from pytensor.graph.op import Op
from pytensor.scalar.basic import Composite, ScalarOp
from pytensor.scalar.loop import ScalarLoop
from pytensor.tensor.random.op import RandomVariable

from graphc.interop.pytensor.convert import rule_of
from graphc.interop.pytensor.elementwise import FUNCTIONS, SPECIAL
from graphc.interop.pytensor.randoms import DISTRIBUTIONS, sampler_of

# Packages without ops of graphs: compilers, viewers, tools, storage.
SKIPPED = ("link", "bin", "misc", "d3viz", "ipython", "backends", "plots")
BASE = "a base of other classes: nothing makes a node of it"
# Which classes have no conversion, by their names and how their modules' names begin, and why. What runs, runs by the
# op's own `perform`, in Python.
ABSENT = [
    ("pytensor.", BASE, """BaseBLAS BaseBlockDiagonal COp ExternalCOp GemmRelated OpenMPOp Output RNGConsumerOp SolveBase
        AbstractRNGConstructor RandomVariable ScipyRandomVariable ScipyScalarWrapperOp ScipyVectorWrapperOp
        ScipyWrapperOp _NoPythonCOp _NoPythonExternalCOp _NoPythonOp BinaryBitOp BinaryScalarOp FixedLogicalComparison
        LogicalComparison ScalarInnerGraphOp ScalarOp UnaryBitOp UnaryScalarOp"""),
    ("pytensor.sparse", BASE, "Stack __ComparisonOpSD __ComparisonOpSS __ComparisonOpSparseDense __ComparisonOpSparseSparse"),
    ("pytensor.sparse", "made by rewrites for C, which graphc's modes leave out", """AddSD_ccode AddSparseDenseC CSMGradC
        MulSDCSC MulSDCSR MulSVCSR StructuredAddSparseDenseVectorCSR SamplingDotCSR StructuredAddSVCSR StructuredDotCSC StructuredDotCSR UsmmCscDense"""),
    ("pytensor.", "a function or a debugger of the user's, in Python", "FromFunctionOp PdbBreakpoint"),
    ("pytensor.", "makes a generator, once for each call", "DefaultGeneratorMakerOp"),
    ("pytensor.typed_list", "lists as values: graphc has none",
        "Append Count Extend GetItem Index Insert Length MakeList Remove Reverse"),
    ("pytensor.xtensor", "PyTensor's rewrites make ops of tensors of it in both modes", """XOp Broadcast Concat Dot ExpandDims
        Index IndexUpdate Squeeze Stack Transpose UnStack XBlockwise XCumReduce XElemwise XRV XReduce"""),
    ("pymc.distributions.continuous", "the package polyagamma, in C: four samplers and series, chosen by the parameters",
        "PolyaGammaRV _PolyaGammaLogDistFunc"),
    ("pymc.distributions", "improper: PyMC refuses to draw", "FlatRV HalfFlatRV ICARRV"),
    ("pymc.distributions", "a function of the user's, in Python", "CustomDistRV SimulatorRV"),
    ("pymc.ode", "SciPy's solver with steps of its own choice, in Python", "DifferentialEquation"),
    ("pymc.logprob", "PyMC replaces it when it derives a density", """MixtureRV PromisedValuedRV TransformedValue
        TransformedValueRV ValuedRV"""),
    ("pymc.model", "marks variables of a model as a graph; nothing computes it", """ModelAnchor ModelDeterministic ModelFreeRV ModelNamed
        ModelObservedRV ModelPotential ModelValuedVar ModelVar"""),
]  # fmt: skip


def import_all(package: ModuleType) -> None:
    """Imports the modules of a package that define ops."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        name = f"{package.__name__}."
        for found in pkgutil.walk_packages(package.__path__, name, onerror=lambda name: None):
            if found.name.split(".")[1] not in SKIPPED and not found.name.endswith(
                ".kanren"
            ):  # needs packages
                importlib.import_module(found.name)


def classes(base: type) -> Iterator[type]:
    for cls in base.__subclasses__():
        yield cls
        yield from classes(cls)


def is_converted(cls: type) -> bool:
    if issubclass(cls, (Composite, ScalarLoop)):
        return True
    if issubclass(cls, ScalarOp):
        return cls.__name__ in {*FUNCTIONS, *SPECIAL, "Cast"}
    if issubclass(cls, RandomVariable) and rule_of(cls) is rule_of(RandomVariable):
        known = {*DISTRIBUTIONS, "gamma", "multivariate_normal", "permutation"}
        own = sampler_of(cls).__module__.startswith("pymc.")
        return getattr(cls, "name", None) in known and not own
    return rule_of(cls) is not None


def reason(cls: type) -> str | None:
    rows = (row for row in ABSENT if cls.__module__.startswith(row[0]) and cls.__name__ in row[2].split())
    return next((why for _, why, _ in rows), None)


@pytest.mark.parametrize("package", [pytensor, pymc], ids=lambda package: package.__name__)
def test_every_op_is_converted_or_named_with_a_reason(package):
    import_all(package)
    found = {cls for cls in classes(Op) if cls.__module__.startswith(f"{package.__name__}.")}
    found -= {cls for cls in found if cls.__module__.startswith("pytensor.link.")}
    missing = sorted(str(cls) for cls in found if not is_converted(cls) and reason(cls) is None)
    assert not missing, "neither converted nor named in ABSENT"
    needless = sorted(str(cls) for cls in found if is_converted(cls) and reason(cls) is not None)
    assert not needless, "converted, and named in ABSENT"


def test_the_resolver_takes_the_newest():
    """No release after those installed here is shut out; where Python is new enough, today's newest were chosen."""
    project = Path(__file__).resolve().parents[2] / "pyproject.toml"
    extras = tomllib.loads(project.read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    wanted = {
        need.name: need.specifier
        for text in extras["pytensor"] + extras["nutpie"]
        if (need := Requirement(text))
    }
    newest = {"pytensor": "3.3.8", "pymc": "6.4", "nutpie": "0.16.11"}
    for name, known in newest.items():
        have = Version(importlib.metadata.version(name))
        assert wanted[name].contains(have) and wanted[name].contains("1000"), name
        assert sys.version_info < (3, 12) or have >= Version(known), f"pip chose {name} {have}"
    # What would make it choose older ones: numba pins llvmlite, and so do we.
    [pinned] = [
        need
        for text in importlib.metadata.requires("numba")
        if (need := Requirement(text)).name == "llvmlite"
    ]
    assert pinned.specifier.contains(importlib.metadata.version("llvmlite"))
