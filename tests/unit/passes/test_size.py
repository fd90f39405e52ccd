# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Symbolic sizes: their normal form, what is certain of them, and their text."""

from __future__ import annotations

import itertools
import random
import re
from pathlib import Path

import pytest

from graphc.ir.size import Argument, Recorded, Size, combined, compared
from graphc_runtime.index_arithmetic import BINARY, COMPARISONS

ROOT = Path(__file__).resolve().parents[3]
NAMES = "nmk"


def certain(size: Size) -> bool:
    """Names are sizes, hence not negative."""
    return size.constant >= 0 and all(count > 0 for count in size.terms.values())


def grown(rng: random.Random, depth: int) -> tuple[Size, str]:
    """A random sum and what computes it."""
    if not depth or rng.random() < 0.2:
        if rng.random() < 0.5:
            name = rng.choice(NAMES)
            return Size.of(name), name
        number = rng.randint(-3, 3)
        return Size(number), f"({number})"
    (a, x), (b, y) = grown(rng, depth - 1), grown(rng, depth - 1)
    sign = rng.choice("+-*")
    return eval(f"a {sign} b", {"a": a, "b": b}), f"({x} {sign} {y})"


@pytest.mark.parametrize("seed", range(60))
def test_sums_are_what_they_stand_for(seed: int) -> None:
    rng = random.Random(seed)
    size, text = grown(rng, 4)
    for _ in range(5):
        values = {name: rng.randint(0, 9) for name in NAMES}
        assert size.at(values) == eval(text, {}, values)
        # The text is Python, too, and says the same.
        assert eval(str(size), {}, values) == size.at(values)
    again = Size() + size * 2 - size
    assert again == size and hash(again) == hash(size)


@pytest.mark.parametrize("name", [name for name in BINARY if "sh" not in name])
@pytest.mark.parametrize("seed", range(12))
def test_what_is_combined_is_right_for_all_sizes(name: str, seed: int) -> None:
    rng = random.Random(seed)
    (a, _), (b, _) = grown(rng, 2), grown(rng, 1)
    found = combined(name, a, b, certain)
    for n, m, k in itertools.product((0, 1, 5), repeat=3) if found is not None else ():
        values = {"n": n, "m": m, "k": k}
        assert found.at(values) == BINARY[name](a.at(values), b.at(values))


@pytest.mark.parametrize("predicate", range(10))
@pytest.mark.parametrize("seed", range(20))
def test_what_is_compared_is_right_for_all_sizes(predicate: int, seed: int) -> None:
    rng = random.Random(seed)
    (a, _), (b, _) = grown(rng, 2), grown(rng, 1)
    found, compare = compared(predicate, a, b, certain), tuple(COMPARISONS.values())[predicate]
    for n, m, k in itertools.product((0, 1, 5), repeat=3) if found is not None else ():
        values = {"n": n, "m": m, "k": k}
        assert found == bool(compare(a.at(values), b.at(values)))


def test_much_is_certain() -> None:
    n, one = Size.of("n"), Size(1)
    assert combined("maxsi", n, Size(0), certain) == n
    assert combined("minsi", n + 1, n, certain) == n
    assert combined("floordivsi", 6 * n + 3, Size(3), certain) == 2 * n + 1
    assert combined("divsi", n, Size(0), certain) is combined("divsi", one, Size(0), certain) is None
    assert compared(2, n, n + 1, certain) and compared(0, n, n, certain) and compared(1, n, n + 1, certain)
    assert compared(2, n, one, certain) is None


def test_reports_print_words() -> None:
    """Nothing is printed of formulas that only the data decide, and what is known to come out is."""
    nodes = [
        ["dim", 0, 0],  # 0
        ["const", 300],
        ["addi", 0, 1],
        ["const", 301],
        ["floordivsi", 2, 3],
        ["const", 0],
        ["maxsi", 4, 5],
        ["?"],
        ["addi", 7, 1],
        ["floordivsi", 8, 3],
        ["maxsi", 9, 5],
        ["subi", 2, 1],
        ["muli", 11, 0],
        ["cmpi", 2, 0, 5],
        ["select", 13, 7, 11],
    ]
    sizes = Recorded(nodes, [Argument("x", (None,))])
    assert sizes.text(6) == "((x.shape[0] + 300) // 301)"
    assert sizes.text(10) == "data-dependent"
    assert sizes.text(11) == "x.shape[0]"
    assert sizes.text(12) == "x.shape[0]*x.shape[0]"
    assert sizes.text(14) == "x.shape[0]", "no size is negative"


# Modules with arithmetic of sizes of their own, of nineteen; the list only becomes shorter.
OWN = {
    "graphc/ir/size.py": "symbolic integers",
    "graphc/ir/value.py": "builds and folds index values",
    "graphc/ir/affine.py": "bounds of sizes in one unknown",
    "graphc/ir/dims.py": "which sizes are equal",
    "graphc/emit/emitter.py": "writes and folds text",
    "graphc/passes/buffer/_expressions.py": "records index values",
    "graphc/passes/buffer/_workspace.py": "products that buffers are made of",
}


def test_sizes_have_one_arithmetic() -> None:
    """Forms of sums, and operations on integers by their names, are where the list says."""
    own = re.compile(r"\bBINARY\b|def plus\(")
    found = {
        path.relative_to(ROOT).as_posix().partition("/")[2]
        for path in (ROOT / "compiler").rglob("*.py")
        if own.search(path.read_text(encoding="utf-8"))
    }
    assert found - {"graphc/artifacts/c_workspace.py"} <= OWN.keys(), found
    assert all((ROOT / "compiler" / path).exists() for path in OWN), "shorten the list"
