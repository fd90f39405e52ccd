# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Gives long inner loops of large kernels functions of their own.

A sum over the elements of arrays is a nest of three loops: parts, blocks, elements. LLVM's loop strength
reduction gives each array induction variables in all of them, three times over, as the vectoriser makes three
loops of one: half of the code of a loop over a dozen arrays. In a function of its own the inner loop has none
around it. A call costs some ten nanoseconds; a block has thousands of elements.
"""

from __future__ import annotations

import re

# Loops with at least as many instructions are long.
LONG_BODY = 16
# Iterations of blocks (see `graphc.lowering.partial_reductions`).
_BLOCK = re.compile(r", 4096\n")

_LOOP = re.compile(
    r"^(?P<header>\d+):[^\n]*\n(?P<phis>(?:  %\d+ = phi [^\n]*\n)+)"
    r"(?P<test>  %\d+ = icmp slt i64 %\d+, %(?P<bound>\d+)\n)"
    r"  br i1 %\d+, label %(?P<body>\d+), label %(?P<exit>\d+)\n\n"
    rf"(?P=body):[^\n]*\n(?P<text>(?:  (?!br )[^\n]*\n){{{LONG_BODY},}})  br label %(?P=header)\n",
    re.MULTILINE,
)
_PHI = re.compile(r"  %(\d+) = phi (\w+) \[ (\S+), %(\d+) \], \[ (\S+), %(\d+) \]\n")
_DEFINED = re.compile(r"^  %(\d+) = ([^\n]*)", re.MULTILINE)
_VALUE = re.compile(r"%(\d+)\b")
_NUMBER = re.compile(r"%(?=\d)")
_LABEL = re.compile(r"\n(?=\d+:)")
_PARAMETER = re.compile(r"(\w+(?: noalias)?) %(\d+)(?=[,)])")
_KIND = re.compile(r"(?:phi|load) (\w+)|call [^@\n]*?(\w+) @|\w+(?: [a-z]+)*? (i\d+|half|float|double) ")


def outline(name: str, function: str) -> str | None:
    """The texts of a function and of its inner loops, which are functions too; None if nothing is to be done.

    The function is inlined into its callers then, as little is left of it.

    Args:
        name: of the function.
        function: its text, with numbers for names.
    """
    if not _BLOCK.search(function):
        return None
    inner = _Inner(name, function)
    text = _LOOP.sub(inner.replace, function)
    if not inner.functions:
        return None
    header, _, body = text.partition("{\n")
    entry = len(_PARAMETER.findall(header))
    header = re.sub(r"\) [^()]*$", ") alwaysinline ", header)
    return "".join([*inner.functions, _named(f"{header}{{\n{entry}:\n{body}")])


class _Inner:
    """The inner loops of one function."""

    def __init__(self, name: str, function: str) -> None:
        self._name, self._function = name, function
        self._kinds = {value: kind for kind, value in _PARAMETER.findall(function.partition("{\n")[0])}
        self._definitions = dict(_DEFINED.findall(function))
        self.functions: list[str] = []

    def replace(self, found: re.Match[str]) -> str:
        """The block with the call in the place of a loop, or the loop itself."""
        phis = [_phi(line, found["body"]) for line in found["phis"].splitlines(keepends=True)]
        inside = {*_DEFINED.findall(found[0])}
        own = {value for value, _ in inside}
        captured = list(dict.fromkeys(v for v in _VALUE.findall(found["text"]) if v not in own))
        captured += [found["bound"]] if found["bound"] not in captured else []
        kinds = [self._kind(value) for value in captured]
        if None in phis or None in kinds or not self._is_block(found["bound"]):
            return found[0]
        start, end = found.span()
        rest = _VALUE.findall(self._function[:start]) + _VALUE.findall(self._function[end:])
        results = [phi for phi in phis if phi is not None and phi[0] in rest]
        carried = [phi for phi in phis if phi is not None]
        arguments = [*zip(kinds, captured, strict=True)]
        self._define(found, arguments, carried, results)
        return self._call(found, arguments, carried, results)

    def _kind(self, value: str) -> str | None:
        """The type of a value, with `noalias` where that is known."""
        if value in self._kinds:
            return self._kinds[value]
        text = self._definitions.get(value, "")
        if text.startswith(("getelementptr", "alloca")):
            return "ptr"
        if text.startswith(("icmp", "fcmp")):
            return "i1"
        cast = re.search(r" to (\w+)$", text)
        found = cast or _KIND.match(text)
        return next((group for group in found.groups() if group), None) if found else None

    def _is_block(self, bound: str) -> bool:
        """Whether a loop ends at the end of a block."""
        found = re.match(r"call i64 @llvm.smin.i64\(i64 %(\d+),", self._definitions.get(bound, ""))
        return bool(found) and self._definitions.get(found[1], "").endswith(", 4096")  # type: ignore[index]

    def _define(
        self,
        found: re.Match[str],
        arguments: list[tuple[str | None, str]],
        carried: list[tuple[str, str, str, str]],
        results: list[tuple[str, str, str, str]],
    ) -> None:
        parameters = [f"{kind} %{value}" for kind, value in arguments]
        parameters += [f"{kind} %initial{value}" for value, kind, _, _ in carried]
        kind = _result(results)
        phis = "".join(
            f"  %{value} = phi {kind} [ %initial{value}, %entry ], [ {following}, %{found['body']} ]\n"
            for value, kind, _, following in carried
        )
        condition = found["test"].split()[0]
        name = f"{self._name}_inner_{len(self.functions)}"
        text = (
            f"define internal {kind} @{name}({', '.join(parameters)}) noinline {{\n"
            f"entry:\n  br label %{found['header']}\n\n"
            f"{found['header']}:\n{phis}{found['test']}"
            f"  br i1 {condition}, label %{found['body']}, label %end\n\n"
            f"{found['body']}:\n{found['text']}  br label %{found['header']}\n\nend:\n"
        )
        last = "" if not results else f" %{results[0][0]}"
        if len(results) > 1:
            last = " poison"
            for position, (value, item, _, _) in enumerate(results):
                text += f"  %r{position} = insertvalue {kind}{last}, {item} %{value}, {position}\n"
                last = f" %r{position}"
        self.functions.append(_named(f"{text}  ret {kind}{last}\n}}\n"))

    def _call(
        self,
        found: re.Match[str],
        arguments: list[tuple[str | None, str]],
        carried: list[tuple[str, str, str, str]],
        results: list[tuple[str, str, str, str]],
    ) -> str:
        passed = [f"{str(kind).split()[0]} %{value}" for kind, value in arguments]
        passed += [f"{kind} {initial}" for _, kind, initial, _ in carried]
        number = len(self.functions) - 1
        kind = _result(results)
        call = f"call {kind} @{self._name}_inner_{number}({', '.join(passed)})\n"
        if not results:
            lines = f"  {call}"
        elif len(results) == 1:
            lines = f"  %{results[0][0]} = {call}"
        else:
            lines = f"  %inner{number} = {call}" + "".join(
                f"  %{value} = extractvalue {kind} %inner{number}, {position}\n"
                for position, (value, _, _, _) in enumerate(results)
            )
        return f"{found['header']}:\n{lines}  br label %{found['exit']}\n"


def _phi(line: str, body: str) -> tuple[str, str, str, str] | None:
    """Name, type, initial and following value of a phi; None if it does not look as expected."""
    found = _PHI.fullmatch(line)
    if found is None:
        return None
    value, kind, *ends = found.groups()
    if ends[1] == body:
        ends = [*ends[2:], *ends[:2]]
    return (value, kind, ends[0], ends[2]) if ends[3] == body else None


def _result(results: list[tuple[str, str, str, str]]) -> str:
    """The type that an inner function returns."""
    if len(results) < 2:
        return results[0][1] if results else "void"
    return f"{{ {', '.join(kind for _, kind, _, _ in results)} }}"


def _named(function: str) -> str:
    """A function with names in the place of numbers, which need not be in order."""
    return _LABEL.sub("\nv", _NUMBER.sub("%v", function))
