# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""200 modules that are nested deeply or huge, of a kind that each limit of `graphc_dialects.foreign` is for.

Sizes lie on both sides of the limits: what is below them has to be parsed, printed and lowered without a
crash, what is above has a diagnostic. Some are mixtures of brackets, strings and comments by chance.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator


def _attribute(text: str) -> str:
    return f'"test.op"() {{a = {text}}} : () -> ()'


def _defined(first: str, following: str, use: str) -> Callable[[int], str]:
    """A chain of aliases; `I` is one's number, `J` that of the one before."""

    def text(n: int) -> str:
        lines = [following.replace("I", str(i + 1)).replace("J", str(i)) for i in range(n)]
        return "\n".join([first, *lines, use.replace("I", str(n))])

    return text


def _operations(n: int) -> str:
    lines = [f"%a{i + 1} = arith.addi %a{i}, %a{i // 2} : i32" for i in range(n)]
    return "\n".join(["func.func @f(%a0: i32) -> i32 {", *lines, f"return %a{n} : i32 }}"])


def _elementwise(n: int) -> str:
    kind = "tensor<3xf64>"
    lines = [f'%a{i + 1} = "graphc.exp"(%a{i}) : ({kind}) -> {kind}' for i in range(n)]
    return "\n".join([f"func.func @f(%a0: {kind}) -> {kind} {{", *lines, f"return %a{n} : {kind} }}"])


def _loops(n: int) -> str:
    heads = " ".join(f"scf.for %i{i} = %a to %a step %a {{" for i in range(n))
    return f"func.func @f(%a: index) {{ {heads} {'}' * n} return }}"


# What grows, and whether it is one level of nesting for each step.
NESTED: dict[str, Callable[[int], str]] = {
    "modules": lambda n: "module {" * n + "}" * n,
    "conditionals": lambda n: f"func.func @f(%c: i1) {{ {'scf.if %c {' * n} {'}' * n} return }}",
    "loops": _loops,
    "regions": lambda n: '"test.op"() ({ ' * n + "}) : () -> ()\n" * n,
    "lists": lambda n: _attribute("[" * n + "]" * n),
    "dictionaries": lambda n: _attribute("{a = " * n + "1" + "}" * n),
    "elements": lambda n: _attribute(f"dense<{'[' * n}1{']' * n}> : tensor<{'1x' * min(n, 300)}i32>"),
    "tuples": lambda n: f"func.func private @f({'tuple<' * n}i1{'>' * n})",
    "functions": lambda n: f"func.func private @f({'(' * n}i1{') -> i1' * n})",
    "pointers": lambda n: f"func.func private @f({'!llvm.array<1 x ' * n}i8{'>' * n})",
    "locations": lambda n: f"module {{}} loc({'callsite(' * n}unknown{' at unknown)' * n})",
    "fused": lambda n: "module {} loc(" + "fused[" * n + "unknown" + ', "a"]' * n + ")",
    "parentheses": lambda n: _attribute(f"affine_map<(d0) -> ({'(' * n}d0{')' * n})>"),
    "types by alias": _defined("!a0 = i1", "!aI = tuple<!aJ>", "func.func private @f(!aI)"),
    "wrapped": _defined("!a0 = i1", "!aI = // >\n tuple // <\n\n <!aJ>", "func.func private @f(!aI)"),
    "lists by alias": _defined("#a0 = [1]", "#aI = [#aJ]", _attribute("#aI")),
    "locations by alias": _defined(
        "#a0 = loc(unknown)", '#aI = loc(callsite(#aJ at "b"))', "module {} loc(#aI)"
    ),
}
LONG: dict[str, Callable[[int], str]] = {
    "operations": _operations,
    "elementwise": lambda n: _elementwise(min(n, 2000)),
    "blocks": lambda n: (
        "func.func @f() {\ncf.br ^b0\n"
        + "".join(f"^b{i}: cf.br ^b{i + 1}\n" for i in range(n))
        + f"^b{n}: return }}"
    ),
    "doubled types": _defined("!a0 = i1", "!aI = tuple<!aJ, !aJ>", "func.func private @f(!aI)"),
    "doubled lists": _defined("#a0 = [1]", "#aI = [#aJ, #aJ]", _attribute("#aI")),
    "doubled locations": _defined(
        "#a0 = loc(unknown)", '#aI = loc(fused[#aJ, callsite(#aJ at "x")])', "module {} loc(#aI)"
    ),
    "digits": lambda n: _attribute(f"{'9' * n} : i128"),
    "decimals": lambda n: _attribute(f"1.{'9' * n} : f64"),
    "hexadecimal": lambda n: _attribute(f"0x{'F' * n} : i64"),
    "widths": lambda n: f"func.func @f() -> i{n} {{ %0 = arith.constant 1 : i{n}\n return %0 : i{n} }}",
    "minus": lambda n: _attribute(f"affine_map<(d0) -> ({'-' * n}d0)>"),
    "sums": lambda n: _attribute(f"affine_map<(d0) -> (d0{' + d0' * n})>"),
    "quotients": lambda n: _attribute(f"affine_map<(d0) -> (d0{' floordiv 3 mod 7' * n})>"),
    "sets": lambda n: _attribute(f"affine_set<(d0) : (d0{' + 1' * n} >= 0)>"),
    "dimensions": lambda n: f"func.func private @f(memref<{'1x' * n}f64>)",
    "results": lambda n: f"func.func private @f({'i1, ' * n}i1)",
    "names": lambda n: f"func.func private @{'f' * n}()",
    "strings": lambda n: _attribute('"' + "\\22[" * n + '"'),
    "comments": lambda n: f"// {'{' * n}\nmodule {{}}",
    "open strings": lambda n: '"' * n,
    "references": lambda n: _attribute(f"@a{'::@b' * n}"),
    "arrows": lambda n: f"func.func private @f({'() -> ' * n}i1)",
    "closed": lambda n: "module {}" + "}" * n,
    "halves of pairs": lambda n: _attribute('"' + "\udcff" * n + '"'),
}
DEPTHS = (60, 250, 256, 1000, 5000, 100_000)
LENGTHS = (20, 900, 30_000)
PASSES = ("", "canonicalize,cse")


def inputs(count: int = 200) -> Iterator[tuple[str, str, str]]:
    """Names, texts and pipelines."""
    rng = random.Random(0)
    for kinds, sizes in ((NESTED, DEPTHS), (LONG, LENGTHS)):
        for number, (name, text) in enumerate(kinds.items()):
            for size in sizes:
                count -= 1
                yield f"{name} {size}", text(size), PASSES[(number + size) % 2]
    pieces = [
        "[",
        "(",
        "{",
        "<",
        '"',
        "//",
        "\n",
        "module",
        "!a = ",
        "#a",
        "tuple",
        "dense",
        "-> ",
        "]",
        "}",
        ")",
        ">",
    ]
    for number in range(count):
        some = rng.sample(pieces, 4)
        yield f"mixture {number}", "".join(rng.choices(some, k=rng.choice((300, 3000, 100_000)))), ""
