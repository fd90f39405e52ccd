# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Defines the functions that split loops among threads (see `graphc.passes.buffer.parallel.parallel_loops`).

`graphc_split_<n>(lower, upper, cost, alignment, captured...)` is inlined into the kernel: it compares the
work with a threshold and either calls the body, or puts what is captured into memory and lets `graphc_share`
of the pool call `graphc_range_<n>(frame, lower, upper)`, which calls the body. The body is compiled once.

`graphc_split_products_<n>` is the same for a batch of products of matrices, unless these are so large that
they are better divided themselves.

Where a kernel is divided (`graphc.backends.cpu.divide`), what is captured is in the kernel's frame already:
`define_call` makes the two functions for that.
"""

from __future__ import annotations

import re

# Work below this stays on one core: several times what it costs to wake a sleeping thread.
THRESHOLD_PICOSECONDS = 40_000_000
_DECLARATION = re.compile(r"^declare void @graphc_split_(products_)?(\d+)\((.*)\)(?: #\d+)?\n", re.MULTILINE)
_BODY = re.compile(r"^define [^\n]*@graphc_body_(\d+)\([^\n]*\{\n(.*?)^\}", re.MULTILINE | re.DOTALL)
_VALUE = re.compile(r"%(\d+)\b")
SHARE = "declare void @graphc_share(ptr, ptr, i64, i64, i64, i64) cold nounwind"
# Picoseconds of a product from which it is divided itself rather than the batch
# (`graphc.library.products.blas`): some hundred rows and columns.
_LARGE_PRODUCT = 5_000_000_000


def define_splits(ir_text: str) -> str:
    """The kernel's text with definitions of the split functions that it declares."""
    found = _DECLARATION.findall(ir_text)
    if not found:
        return ir_text
    text = [_DECLARATION.sub("", ir_text)]
    used = {number: set(map(int, _VALUE.findall(body))) for number, body in _BODY.findall(ir_text)}
    for products, number, types in found:
        captured = _Captured(number, _types(types)[4:], used[number])
        text += [captured.split(products), captured.range()]
    return "".join([*text, f"{SHARE}\n"])


def define_call(name: str, sizes: str, captured: str, arguments: str) -> str:
    """A function that splits a loop whose values are in the frame that it is given, and that of a range.

    Args:
        name: of the split function that it stands for; the new one is `graphc_call_<name>(frame)`.
        sizes: code that makes `%lower`, `%upper`, `%cost` and `%alignment`.
        captured: code that makes what the body captures.
        arguments: the body's, after the range.
    """
    number = name.rpartition("_")[2]
    return (
        f"define hidden void @graphc_call_{name}(ptr %frame) {{\n"
        f"{sizes}{_decision('_products_' in name)}"
        f"alone:\n  call void @graphc_range_{number}(ptr %frame, i64 %lower, i64 %upper)\n  ret void\n"
        f"share:\n  call void @graphc_share(ptr @graphc_range_{number}, ptr %frame, "
        "i64 %lower, i64 %upper, i64 %cost, i64 %alignment)\n"
        "  ret void\n}\n"
        f"define internal void @graphc_range_{number}(ptr %frame, i64 %lower, i64 %upper) noinline {{\n"
        f"{captured}  %status = call i64 @graphc_body_{number}({arguments}) noinline\n  ret void\n}}\n"
    )


def _decision(products: bool) -> str:
    """Code that continues at `share` if the work is worth it, or else at `alone`."""
    large = f"  %large = icmp sgt i64 %work, {THRESHOLD_PICOSECONDS}\n"
    if products:
        large = (
            f"  %long = icmp sgt i64 %work, {THRESHOLD_PICOSECONDS}\n"
            f"  %middle = icmp ult i64 %cost, {_LARGE_PRODUCT}\n"
            "  %large = and i1 %long, %middle\n"
        )
    return (
        "  %extent = sub i64 %upper, %lower\n"
        "  %work = mul i64 %extent, %cost\n"
        f"{large}"
        "  br i1 %large, label %share, label %alone\n"
    )


def _types(text: str) -> list[str]:
    """Splits a list of types at the commas that are not inside of one."""
    return re.findall(r"(?:\{[^}]*\}|[^,{]+)", text.replace(", ", ","))


class _Captured:
    """The two functions around a body.

    Most of what a body captures are parts of descriptors that it does not read: they are left out.

    Args:
        number: that of the body.
        kinds: types of what it captures.
        used: numbers of the values that it reads; the first captured one is number 3.
    """

    def __init__(self, number: str, kinds: list[str], used: set[int]) -> None:
        self._number, self._kinds = number, kinds
        self._used = [i + 3 in used for i in range(len(kinds))]
        kept = [kind for kind, is_used in zip(kinds, self._used, strict=True) if is_used]
        # With a name: it stands in the address of each part, and frames have up to a hundred parts.
        self._frame = f"%graphc.frame.{number}"
        self._layout = f"{self._frame} = type {{ {', '.join(kept)} }}\n"

    def split(self, products: str) -> str:
        """The text of `graphc_split_<n>`, or `graphc_split_products_<n>`."""
        parameters = [f"{kind} %c{i}" for i, kind in enumerate(self._kinds)]
        stores = "".join(
            f"  %p{i} = {place}\n  store {self._kinds[i]} %c{i}, ptr %p{i}\n" for i, place in self._places()
        )
        header = ", ".join(["i64 %lower", "i64 %upper", "i64 %cost", "i64 %alignment", *parameters])
        sizes = "i64 %lower, i64 %upper, i64 %cost, i64 %alignment"
        return (
            f"{self._layout}"
            f"define internal void @graphc_split_{products}{self._number}({header}) alwaysinline {{\n"
            f"  %frame = alloca {self._frame}, align 16\n"
            f"{_decision(bool(products))}"
            f"alone:\n{self._call()}  ret void\n"
            f"share:\n{stores}"
            f"  call void @graphc_share(ptr @graphc_range_{self._number}, ptr %frame, {sizes})\n"
            "  ret void\n}\n"
        )

    def range(self) -> str:
        """The text of `graphc_range_<n>`."""
        loads = "".join(
            f"  %p{i} = {place}\n  %c{i} = load {self._kinds[i]}, ptr %p{i}\n" for i, place in self._places()
        )
        return (
            f"define internal void @graphc_range_{self._number}(ptr %frame, i64 %lower, i64 %upper) {{\n"
            f"{loads}{self._call()}  ret void\n}}\n"
        )

    def _places(self) -> list[tuple[int, str]]:
        """Numbers of what is in the frame, and the addresses there."""
        used = [i for i, is_used in enumerate(self._used) if is_used]
        step = f"getelementptr {self._frame}, ptr %frame, i64 0, i32"
        return [(i, f"{step} {position}") for position, i in enumerate(used)]

    def _call(self) -> str:
        arguments = [
            f"{kind} " + (f"%c{i}" if is_used else "poison")
            for i, (kind, is_used) in enumerate(zip(self._kinds, self._used, strict=True))
        ]
        passed = ", ".join(["ptr null", "i64 %lower", "i64 %upper", *arguments])
        return f"  %status = call i64 @graphc_body_{self._number}({passed}) noinline\n"
