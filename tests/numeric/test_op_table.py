# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Every case of the table against its reference, in every mode, for all dtypes, sizes and memory layouts."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
from types import ModuleType

import op_cases_arrays
import op_cases_elementwise
import op_cases_indexing
import op_cases_linalg
import op_cases_matrices
import op_cases_nn
import op_cases_pieces
import op_cases_reductions
import op_cases_special
import pytest
from fuzzing import FUZZING
from op_cases_elementwise import SYNONYMS
from op_runner import LAYOUTS, groups
from op_table import CASES, SPACES

import graphc.tensor as pt

MODULES = (
    *(op_cases_arrays, op_cases_elementwise, op_cases_indexing),
    *(
        op_cases_linalg,
        op_cases_matrices,
        op_cases_nn,
        op_cases_pieces,
        op_cases_reductions,
        op_cases_special,
    ),
)
GROUPS = groups(CASES)


# Families whose code moves elements, whatever these are; and the rows that test_elementwise.py compiles too.
ALIKE = {
    "elementwise",
    *("pieces", "indexing", "rearranging", "padding", "joining", "shaping", "structured", "masks"),
    *("choosing", "updates", "creation like", "along axes", "flat indices"),
}


def daily(choose):
    """The groups of chosen dtypes; others run in `make fuzz-inputs`, as compiling takes time."""
    return GROUPS if FUZZING else groups(CASES, choose)


def for_fast_run(number, case):
    """Both dtypes, or one in turn."""
    found = [dtype for dtype in ("float64", "int64") if dtype in case.dtypes]
    return [found[number % len(found)]] if found and case.family in ALIKE else found


def for_fast_compile(number, case):
    """One dtype in turn, of every second case; half of them where the case has only one of the two."""
    found = [dtype for dtype in ("float32", "complex128") if dtype in case.dtypes]
    return found[number % 4 : number % 4 + 1]


@pytest.mark.fuzz
@pytest.mark.parametrize("group", daily(for_fast_run), ids=str)
def test_compiled(group):
    group.check("fast_run")


@pytest.mark.fuzz
@pytest.mark.parametrize("group", daily(for_fast_compile), ids=str)
def test_compiled_with_few_passes(group):
    group.check("fast_compile", ["plain", "negative strides", "spaced"])


@pytest.mark.parametrize("group", GROUPS, ids=str)
def test_reference(group):
    group.check("reference", ["plain"])


@pytest.mark.fuzz
@pytest.mark.parametrize("group", daily(for_fast_run), ids=str)
def test_interpreted(group):
    group.check("interpret", ["plain"])


def test_every_family_has_cases():
    assert all(isinstance(module, ModuleType) for module in MODULES)
    assert len(LAYOUTS) == 7 and len(CASES) > 350


# Completeness -------------------------------------------------------------------------------------

# Public functions without a case, and why.
WITHOUT = {
    **dict.fromkeys(("as_tensor", "as_tensor_variable", "constant"), "make variables; tests/unit/tensor"),
    **dict.fromkeys(
        ("get_underlying_scalar_constant_value", "is_weak_scalar"), "ask about variables, and compute nothing"
    ),
    **dict.fromkeys(
        ("alloc_diag", "shape_tuple", "to_one_hot", "xlogx", "xlogy0", "special.xlogx", "special.xlogy0"),
        "PyTensor's names of what others do, which have cases; tests/unit/tensor/test_forms.py",
    ),
    **dict.fromkeys(("grad", "hessian", "jacobian"), "transform graphs; tests/unit/gradient"),
    **dict.fromkeys(("register_transfer", "transfer"), "move variables between devices"),
    **dict.fromkeys(("vectorize", "vmap"), "transform functions; tests/unit/tensor/test_vectorize.py"),
    **dict.fromkeys(
        ("get_scalar_constant_value", "get_vector_length", "is_flat", "slice_at_axis"),
        "ask about variables, and compute nothing; tests/unit/tensor/test_pieces.py",
    ),
    **dict.fromkeys(
        ("apply_along_axis", "apply_over_axes"), "transform functions; tests/unit/tensor/test_pieces.py"
    ),
    "ifelse": "chooses what runs; test_conditionals.py",
    "nn.dropout": "draws random numbers; tests/unit/tensor",
}


def public_functions() -> dict[str, object]:
    """All functions of `graphc.tensor` and of its namespaces, by name."""
    found: dict[str, object] = {}
    modules = {"": pt} | {
        f"{name}.": importlib.import_module(SPACES[name][0])
        for name in SPACES
        if name not in ("", "slinalg") and _exists(SPACES[name][0])
    }
    for prefix, module in modules.items():
        names = getattr(module, "__all__", ()) if prefix else dir(module)
        for name in names:
            value = getattr(module, name)
            if (
                not name.startswith("_")
                and callable(value)
                and not inspect.isclass(value)
                and not inspect.ismodule(value)
            ):
                found[prefix + name] = value
    return found


def _found(name: str) -> bool:
    """Whether a name is there that `dir` does not list."""
    prefix, _, last = name.rpartition(".")
    return hasattr(importlib.import_module(SPACES[prefix][0]), last)


def _exists(module: str) -> bool:
    return importlib.util.find_spec(module) is not None


def test_every_public_function_has_a_case():
    covered = {case.covers for case in CASES} | set(SYNONYMS)
    # A function has one case, whatever it is called through.
    functions = public_functions()
    same = {id(functions[name]) for name in covered if name in functions}
    constructors = set(pt.constructors.__all__)
    missing = [
        name
        for name, function in functions.items()
        if name not in covered
        and name not in WITHOUT
        and id(function) not in same
        and name not in constructors
    ]
    assert not missing, f"no case in op_cases_*.py for {', '.join(missing)}"


def test_there_are_no_cases_of_what_does_not_exist():
    functions = public_functions()
    wanted = {case.covers for case in CASES}
    assert not [name for name in wanted - set(functions) if not _found(name)]
    assert set(WITHOUT) <= set(functions)
