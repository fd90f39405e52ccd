# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The page docs/operations.md: a table of every operation, made from the registries."""

from __future__ import annotations

import ast
import importlib
import inspect
import pkgutil
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import graphc.ops
from graphc.graph.op import Op
from graphc.library import find
from graphc.ops.elementwise import ROWS, Elementwise, Undefined
from graphc.ops.kernel import DiscreteOp, KernelOp
from graphc.tensor import compat
from graphc_dialects.dialect import operation_classes
from graphc_dialects.signatures import SIGNATURES

ROOT = Path(__file__).resolve().parents[2]
NOTICE = "<!-- Written by `make docs` from the code; changes made here are lost. -->"

_HEAD = """# Operations

Every operation of the library, from the registries of the code. Functions of `graphc.tensor` that are
composed of these (`tile`, `linspace`, `median`, ...) need no row: they compile and differentiate because
their parts do.

- **Reference**: what defines the values; tests compare every dtype and memory layout with it. `graphc` stands
  for an algorithm of our own in a kernel, whose reference runs the same code in Python; tests compare it with
  SciPy or mpmath.
- **Dtypes**: `b` bool, `i` integers, `f` float16 to float64, `c` complex; `i → f`: integers are converted.
- **Gradient**: yes, zero (piecewise constant), or why there is none.
- **Runs**: machine code, or why it runs in Python.
- **ulp**: largest error measured, float64 / float32, in units in the last place ([how](math.md)).
"""

_FAMILIES = {
    "arithmetic": "Arithmetic",
    "compare": "Comparison, logic and bits",
    "explog": "Exponentials and logarithms",
    "trig": "Trigonometric and hyperbolic functions",
    "round": "Rounding and signs",
    "special": "Special functions",
    "special_gamma": "Gamma and beta functions",
    "special_bessel": "Bessel functions",
    "special_integral": "Integrals and hypergeometric functions",
    "special_entropy": "Entropy and probability",
    "special_lambert": "Lambert's function",
}


def operations_page() -> str:
    """Markdown with every operation."""
    lines = [NOTICE, "", *_HEAD.splitlines(), "", "## Elementwise"]
    lines += _elementwise()
    lines += ["", "## Arrays", ""]
    lines += [
        "Classes of `graphc.ops`; the functions of `graphc.tensor` make them.",
        "",
    ]
    lines += _arrays()
    lines += ["", "## Operations of the dialect", ""]
    lines += [
        "What the compiler's IR has, beside the elementwise operations (`graphc.<name>` for each row above).",
        "",
    ]
    lines += _dialect()
    return "\n".join(lines) + "\n"


def cell(text: str) -> str:
    """Text for a cell of a table."""
    return " ".join(text.split()).replace("|", "\\|").replace("``", "`")


# -- elementwise -----------------------------------------------------------------------------------


def _elementwise() -> Iterator[str]:
    errors = measured_errors()
    names = _public_names()
    for family, rows in by_family(list(ROWS)).items():
        yield from ("", f"### {family}", "")
        yield "| operation | names | reference | dtypes | gradient | ulp | meaning |"
        yield "|---|---|---|---|---|---|---|"
        for name in rows:
            row = ROWS[name]
            others = ", ".join(f"`{other}`" for other in names.get(name, ()) if other != name)
            cells = (f"`{name}`", others, _row_reference(row), _row_dtypes(row), _row_gradient(row))
            yield f"| {' | '.join(cells)} | {errors.get(name, '')} | {cell(row.doc)} |"


def _public_names() -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for name, op in sorted(vars(compat).items()):
        if isinstance(op, Elementwise):
            found.setdefault(op.row.name, []).append(name)
    return found


def by_family(names: list[str]) -> dict[str, list[str]]:
    """Names of rows by the title of the module that registers them."""
    found: dict[str, list[str]] = {}
    left = set(names)
    for module in pkgutil.iter_modules(graphc.ops.__path__):
        if module.name.startswith("rows_"):
            family = module.name.removeprefix("rows_")
            source = inspect.getsource(importlib.import_module(f"graphc.ops.{module.name}"))
            mine = _texts(source) & left
            left -= mine
            title = _FAMILIES.get(family, family.replace("_", " ").capitalize())
            found[title] = sorted(mine)
    ordered = {title: found.pop(title) for title in _FAMILIES.values() if title in found} | found
    if left:
        ordered["Others"] = sorted(left)
    return {title: rows for title, rows in ordered.items() if rows}


def _texts(source: str) -> set[str]:
    """All texts in a module: names of rows are arguments of calls, or stand in tables that loops read."""
    tree = ast.parse(source)
    return {
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }


_REFERENCES = {"identity": "numpy.copy", "second": "numpy.broadcast_to", "switch": "numpy.where"}


def _row_reference(row: Any) -> str:
    import numpy as np
    import scipy.special

    if row.name in _REFERENCES:
        return f"`{_REFERENCES[row.name]}`"
    if isinstance(row.reference, np.ufunc):
        name = row.reference.__name__
        return f"`numpy.{name}`" if getattr(np, name, None) is row.reference else f"`scipy.special.{name}`"
    if "register_kernel" in row.reference.__qualname__:
        return "graphc"
    if "scipy_function" in row.reference.__qualname__ and hasattr(scipy.special, row.name):
        return f"`scipy.special.{row.name}`"
    return f"`numpy.{row.name}`" if hasattr(np, row.name) else "NumPy expression"


def _row_dtypes(row: Any) -> str:
    import numpy as np

    kept, changed = [], []
    for letter, sample in (("b", "bool"), ("i", "int64"), ("f", "float32"), ("c", "complex64")):
        try:
            *loop, result = row.resolve((np.dtype(sample),) * row.arity)
        except TypeError:
            continue
        before, after = _letter(loop[-1].kind), _letter(result.kind)
        if np.dtype(sample).kind == before:
            kept.append(letter if before == after else f"{letter} → {after}")
        else:
            changed.append(f"{letter} → {after}")
    return ", ".join([*kept, *changed])


def _letter(kind: str) -> str:
    return "i" if kind == "u" else kind


def _row_gradient(row: Any) -> str:
    if row.grad is None:
        return f"no: {cell(row.absent or 'not defined')}"
    if all(rule is None for rule in row.grad):
        return "zero"
    missing = [
        f"not in operand {i}: {rule.why}" for i, rule in enumerate(row.grad) if isinstance(rule, Undefined)
    ]
    return cell("; ".join(["yes", *missing]))


def measured_errors() -> dict[str, str]:
    """Errors in ulp by function, ``float64 / float32``, from the tables of docs/math.md."""
    found: dict[str, dict[str, str]] = {}
    header: list[str] = []
    for line in (ROOT / "docs" / "math.md").read_text(encoding="utf-8").splitlines():
        cells = [text.strip() for text in line.strip().strip("|").split("|")]
        if not line.startswith("|"):
            header = []
        elif not header:
            header = cells
        elif header[0] == "function" and not set(line) <= set("|-: "):
            values = dict(zip(header, cells, strict=False))
            name = values["function"].strip("`")
            if "dtype" in values:
                measured = [values.get(kind) or "" for kind in ("inline ulp", "libmvec ulp")]
                ulp = next(filter(_is_number, measured), "")
                found.setdefault(name, {}).setdefault(values["dtype"], ulp)
            else:
                found[name] = {k: v for k, v in values.items() if k in ("float64", "float32")}
    # C's names are shorter.
    renamed = {_C_NAMES.get(name, name): values for name, values in found.items()}
    return {
        name: " / ".join(values.get(dtype) or "-" for dtype in ("float64", "float32"))
        for name, values in renamed.items()
    }


_C_NAMES = {f"a{name}": f"arc{name}" for name in ("cos", "cosh", "sin", "sinh", "tan", "tanh", "tan2")}


def _is_number(text: str) -> bool:
    return re.fullmatch(r"[0-9.]+", text) is not None


# Functions of NumPy that every reference may call, and that say nothing.
_PLAIN = {
    *(".asarray", ".array", ".ascontiguousarray", ".empty", ".empty_like", ".zeros", ".full", ".full_like"),
    *(".errstate", ".dtype", ".result_type", ".ndarray", ".ndindex", ".broadcast_to", ".arange", ".stack"),
    *(".conj", ".nan", ".inf", ".int64", ".float64", ".integer", ".float32", ".newaxis", ".moveaxis"),
    *(
        ".zeros_like",
        ".where",
        ".append",
        ".random",
        ".swapaxes",
        ".triu",
        ".tril",
        ".int32",
        ".finfo",
        ".bool_",
        ".diag",
        ".ravel",
        ".ogrid",
        ".uint8",
        ".logical_or.at",
    ),
}

# -- classes ---------------------------------------------------------------------------------------


# Operations whose definitions call functions of tensors.
ELSEWHERE = ("graphc.tensor.optimize", "graphc.tensor.linalg.equations")


def op_classes() -> list[type]:
    """The op classes of `graphc.ops` and `ELSEWHERE` but `Elementwise`, by name; underscores mark bases."""
    for name in (
        *(f"graphc.ops.{module.name}" for module in pkgutil.iter_modules(graphc.ops.__path__)),
        *ELSEWHERE,
    ):
        importlib.import_module(name)

    def below(cls: type) -> set[type]:
        subclasses: list[type] = cls.__subclasses__()
        parts = [below(sub) for sub in subclasses]
        return {cls}.union(*parts)

    bases = ("Op", "Sized", "KernelOp", "DiscreteOp", "Elementwise")
    return sorted(
        (
            cls
            for cls in below(Op)
            if cls.__module__.startswith(("graphc.ops.", *ELSEWHERE))
            and not cls.__name__.startswith("_")
            and cls.__name__ not in bases
        ),
        key=lambda cls: cls.__name__,
    )


def _arrays() -> Iterator[str]:
    modules: dict[str, list[type]] = {}
    for cls in op_classes():
        modules.setdefault(cls.__module__, []).append(cls)
    for module, classes in sorted(modules.items()):
        doc = (inspect.getdoc(importlib.import_module(module)) or "").partition("\n\n")[0]
        title = module.rpartition(".")[2].replace("_", " ").capitalize()
        yield from (f"### {title}", "", cell(doc), "")
        yield "| operation | reference | dtypes | gradient | runs | meaning |"
        yield "|---|---|---|---|---|---|"
        for cls in classes:
            summary = cell((inspect.getdoc(cls) or "").partition("\n\n")[0])
            cells = (_class_reference(cls), _class_dtypes(cls), _class_gradient(cls), _class_code(cls))
            yield f"| `{cls.__name__}` | {' | '.join(cells)} | {summary} |"
        yield ""


def _class_reference(cls: Any) -> str:
    """Callees of the reference: functions of NumPy and SciPy in its source."""
    # Ops that run in Python core by core say what they do with one.
    function: Any = getattr(cls, "compute", cls.perform)
    if issubclass(cls, KernelOp) and cls.perform is KernelOp.perform:
        function = find(cls.kernel).reference
    source = _source(function)
    calls = re.findall(r"\b(np|scipy)((?:\.[a-z_0-9]+)+)\b", source)
    for module, imported in re.findall(r"from scipy((?:\.[a-z_0-9]+)*) import ([a-z_0-9, ]+)", source):
        modules = [name.strip() for name in imported.split(",")]
        calls += [("scipy", f"{module}.{name}") for name in modules]
        # `from scipy import linalg`, then `linalg.expm(a)`.
        for name in modules:
            calls += [
                ("scipy", f"{module}.{name}.{each}") for each in re.findall(rf"\b{name}\.(\w+)", source)
            ]
    names = [f"{'numpy' if root == 'np' else root}{name}" for root, name in calls if name not in _PLAIN]
    # `numpy.linalg.qr` says more than `numpy.empty_like` next to it.
    names = [name for name in names if name.rpartition(".")[2] not in ("linalg", "lapack", "special", "fft")]
    best = [name for name in names if name.count(".") > 1 and not name.endswith(".at")] or names
    return ", ".join(f"`{name}`" for name in list(dict.fromkeys(best))[:2]) or "NumPy"


def _source(function: Any) -> str:
    """The source of a function and of those that it wraps."""
    wrapped = [cell.cell_contents for cell in getattr(function, "__closure__", None) or ()]
    functions = [function, *(x for x in wrapped if inspect.isfunction(x))]
    try:
        return "\n".join(inspect.getsource(each) for each in functions)
    except (OSError, TypeError):
        return ""


def _class_dtypes(cls: Any) -> str:
    """The dtypes of results by the kinds of the operands, where a kernel op has a rule for them."""
    if not issubclass(cls, KernelOp):
        return "all that the reference takes"
    return _kernel_dtypes(cls)


def _kernel_dtypes(cls: Any) -> str:
    op = object.__new__(cls)
    for name in cls.__props__:
        setattr(op, name, 0)
    kinds = {}
    for letter, sample in (("b", "bool"), ("i", "int64"), ("f", "float32"), ("c", "complex64")):
        try:
            operands, _ = op.dtypes(*(sample,) * len(SIGNATURES[cls.kernel].operands))
        except Exception:  # rules say no in their own ways
            continue
        kinds[letter] = [_kind_of(operand) for operand in operands]
    # Operands that are positions have one dtype, whatever is given.
    places = range(min(map(len, kinds.values()), default=0))
    place = next((k for k in places if len({each[k] for each in kinds.values()}) > 1), 0)
    found = [
        letter if each[place] == letter else f"{letter} → {each[place]}" for letter, each in kinds.items()
    ]
    return ", ".join(found) or "see the documentation"


def _kind_of(dtype: str) -> str:
    import numpy as np

    return _letter(np.dtype(dtype).kind)


def _class_gradient(cls: object) -> str:
    absent = getattr(cls, "absent", {})
    if "pullback" in absent:
        return f"no: {cell(absent['pullback'])}"
    return "zero" if getattr(cls, "pullback", None) is DiscreteOp.pullback else "yes"


def _class_code(cls: object) -> str:
    absent = getattr(cls, "absent", {})
    return f"Python: {cell(absent['emit'])}" if "emit" in absent else "machine code"


# -- dialect ---------------------------------------------------------------------------------------


def _dialect() -> Iterator[str]:
    yield "| operation | operands | attributes | meaning |"
    yield "|---|---|---|---|"
    for name, cls in sorted(operation_classes().items()):
        if name.removeprefix("graphc.") not in ROWS:
            operands, attributes = fields_of(cls)
            summary = cell((inspect.getdoc(cls) or "").partition("\n\n")[0])
            yield f"| `{name}` | {operands} | {attributes} | {summary} |"


def fields_of(cls: Any) -> tuple[str, str]:
    """Names of operands and attributes; variadic operands end with dots."""
    operands, attributes = [], []
    for field in cls._fields:
        kind = type(field).__name__
        if kind == "OperandDef":
            operands.append(field.name + ("..." if field.variadicity.name == "variadic" else ""))
        elif kind == "AttributeDef":
            attributes.append(f"`{field.name}`")
    return ", ".join(operands), ", ".join(attributes)
