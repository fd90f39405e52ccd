# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""LLVM IR of one function of the C interface, around its kernel (`graphc.h`)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from graphc.artifacts.c_memory import C_CONTEXT_WORDS
from graphc.artifacts.c_workspace import workspace_lines
from graphc.artifacts.source import Source
from graphc.graph.basic import Constant
from graphc_runtime.manifest import ArraySpec, Signature
from graphc_runtime.record import record
from graphc_runtime.symbols import DESCRIPTORS, DTYPES

ABI_VERSION = 1


@record(frozen=True)
class Member:
    """An input or output of the C function.

    Attributes:
        name: of it.
        spec: dtype and static sizes.
        slot: its place among the kernel's arrays.
        initial: first value of a state.
        updates: of an output, the input whose next value it is; -1 for others.
    """

    name: str
    spec: ArraySpec
    slot: int
    initial: np.ndarray | None = None
    updates: int = -1


@record(frozen=True)
class Interface:
    """Arguments and results of a C function.

    Attributes:
        inputs: arguments, then states.
        outputs: results, then new values of states.
        constants: place among the kernel's arrays, and value.
        starts: for each of the kernel's arrays, where its sizes begin.
    """

    inputs: tuple[Member, ...]
    outputs: tuple[Member, ...]
    constants: tuple[tuple[int, np.ndarray], ...]
    starts: tuple[int, ...]

    @classmethod
    def of(cls, source: Source, state_names: Sequence[str]) -> Interface:
        """The interface of a function; one name for each cell."""
        signature = source.signature
        first = len(signature.inputs)
        inputs = [Member(spec.name or f"input_{i}", spec, i) for i, spec in enumerate(signature.inputs)]
        constants, numbers = [], {}
        for i, (variable, spec) in enumerate(zip(source.cells, signature.cells, strict=True)):
            if isinstance(variable, Constant):
                constants.append((first + i, source.value(i)))
            else:
                numbers[i] = len(inputs)
                inputs.append(Member(state_names[i], spec, first + i, source.value(i)))
        base = len(signature.arguments)
        outputs = [
            Member(name or f"output_{i}", spec, base + i)
            for i, (name, spec) in enumerate(zip(source.outputs, signature.outputs, strict=True))
        ]
        for update in signature.updates:
            target = numbers[update.cell]
            outputs.append(Member(inputs[target].name, update.value, base + len(outputs), None, target))
        ranks = [spec.rank for spec in (*signature.arguments, *signature.results)]
        starts = [sum(ranks[:i]) for i in range(len(ranks) + 1)]
        return cls(tuple(inputs), tuple(outputs), tuple(constants), tuple(starts))


def function_ir(
    name: str,
    interface: Interface,
    signature: Signature,
    messages: Sequence[str],
    memory: Sequence[dict[str, object]],
    used: int,
    doc: str = "",
) -> str:
    """The text that defines `<name>`, `<name>_shapes`, `<name>_workspace` and `<name>_info`.

    Args:
        signature: of the kernel.
        messages: of its check sites.
        memory: its memory plans.
        used: how many of the signature's arguments the kernel reads.
    """
    writer = _Function(name, interface, signature, len(messages))
    bytes_ = workspace_lines(memory, signature, interface.starts, used)
    text = [writer.data(messages), writer.prepare(), writer.measure()]
    return "\n".join([*text, writer.workspace(bytes_), writer.shapes(), writer.run(), writer.info(doc)])


_PARAMETERS = "ptr %call, ptr %inputs, ptr %outputs, ptr %error"
_RELEASED = ("  call void @graphc_release(ptr %ctx)", "  ret i32 0")
_CHECK_INPUTS = """  %bad = call i32 @graphc_c_tensors(ptr %inputs, i32 0, i64 %count, ptr %specs,
    ptr %data, ptr %dims, i1 false, ptr %error)"""
_CHECK_OUTPUTS = """  %bad = call i32 @graphc_c_tensors(ptr %outputs, i32 %first, i64 %count, ptr %specs,
    ptr %data, ptr %dims, i1 true, ptr %errors)"""


class _Function:
    def __init__(self, name: str, interface: Interface, signature: Signature, messages: int) -> None:
        self.name, self.interface, self.signature, self.messages = name, interface, signature, messages
        self.arrays = len(signature.arguments) + len(signature.results)
        self.sizes = max(interface.starts[-1], 1)

    def data(self, messages: Sequence[str]) -> str:
        """Constants: what tensors have to be, messages, and values."""
        name, lines = self.name, []
        for kind, members in (("in", self.interface.inputs), ("out", self.interface.outputs)):
            specs = []
            for i, member in enumerate(members):
                spec, dtype = member.spec, DESCRIPTORS[member.spec.dtype]
                lines.append(_sizes(f"{name}.{kind}.{i}", [-1 if n is None else n for n in spec.shape]))
                specs.append(
                    f"%spec {{ i32 {DTYPES.index(spec.dtype)}, i32 {spec.rank}, i64 {dtype.itemsize}, "
                    f"i64 {dtype.alignment}, ptr @{name}.{kind}.{i}, i64 {member.slot}, "
                    f"i64 {self.interface.starts[member.slot]} }}"
                )
            lines.append(f"@{name}.{kind}.specs = internal constant {_list('%spec', specs)}")
        for i, message in enumerate(messages):
            lines.append(_text(f"{name}.message.{i}", message))
        pointers = [f"ptr @{name}.message.{i}" for i in range(len(messages))]
        lines.append(f"@{name}.messages = internal constant {_list('ptr', pointers)}")
        lines += [
            _bytes(f"{name}.constant.{i}", value) for i, (_, value) in enumerate(self.interface.constants)
        ]
        return "\n".join([*lines, ""])

    def prepare(self) -> str:
        """A function that checks inputs, and puts them and constants where the kernel finds them."""
        name = self.name
        lines = [
            f"define internal i32 @{name}.prepare(ptr %inputs, ptr %data, ptr %dims, ptr %error) {{",
            f"  %count = add i64 {len(self.interface.inputs)}, 0",
            f"  %specs = getelementptr i8, ptr @{name}.in.specs, i64 0",
            _CHECK_INPUTS,
        ]
        for i, (slot, value) in enumerate(self.interface.constants):
            lines.append(f"  %c{i} = getelementptr ptr, ptr %data, i64 {slot}")
            lines.append(f"  store ptr @{name}.constant.{i}, ptr %c{i}")
            lines += _store_sizes(f"c{i}", self.interface.starts[slot], value.shape)
        return "\n".join([*lines, "  ret i32 %bad", "}", ""])

    def measure(self) -> str:
        """A function that finds the sizes of the results."""
        s, starts = self.signature, self.interface.starts
        fresh = sum(spec.shape.count(None) for spec in s.results)
        lines = [
            f"define internal i32 @{self.name}.measure(ptr %ctx, ptr %data, ptr %dims, ptr %error) {{",
            f"  %fresh = alloca [{max(fresh, 1)} x i64]",
        ]
        if s.needs_shapes:
            lines += [
                "  %status = call i64 @graphc_shapes(ptr %ctx, ptr %data, ptr %dims, ptr %fresh)",
                self._status("%error"),
                "  %fine = icmp eq i32 %code, 0",
                "  br i1 %fine, label %results, label %failed",
                "failed:",
                "  ret i32 %code",
                "results:",
            ]
        dynamic = 0
        for i, spec in enumerate(s.results):
            sizes: list[int | str] = []
            for size in spec.shape:
                if size is None:
                    lines.append(f"  %f{dynamic}.at = getelementptr i64, ptr %fresh, i64 {dynamic}")
                    lines.append(f"  %f{dynamic} = load i64, ptr %f{dynamic}.at")
                    sizes.append(f"%f{dynamic}")
                    dynamic += 1
                else:
                    sizes.append(size)
            lines += _store_sizes(f"r{i}", starts[len(s.arguments) + i], sizes)
        return "\n".join([*lines, "  ret i32 0", "}", ""])

    def workspace(self, body: Sequence[str]) -> str:
        """`<name>_workspace`; the body computes the bytes."""
        return self._entry(f"{self.name}_workspace", "i64", "ptr %inputs, ptr %error", "-2", body)

    def shapes(self) -> str:
        """`<name>_shapes`."""
        count = len(self.interface.outputs)
        sizes = f"ptr %outputs, i64 {count}, ptr @{self.name}.out.specs, ptr %dims"
        body = [*self._measured(), f"  call void @graphc_c_sizes({sizes})", *_RELEASED]
        return self._entry(f"{self.name}_shapes", "i32", _PARAMETERS, "%prepared", body)

    def run(self) -> str:
        """`<name>`."""
        outputs = self.interface.outputs
        body = [
            *self._measured(),
            f"  %count = add i64 {len(outputs)}, 0",
            f"  %first = add i32 {len(self.interface.inputs)}, 0",
            f"  %specs = getelementptr i8, ptr @{self.name}.out.specs, i64 0",
            _CHECK_OUTPUTS,
            "  %good = icmp eq i32 %bad, 0",
            "  br i1 %good, label %compute, label %refuse",
            "refuse:",
            "  call void @graphc_release(ptr %ctx)",
            "  ret i32 %bad",
            "compute:",
            "  %status = call i64 @graphc_run(ptr %ctx, ptr %data, ptr %dims)",
            "  call void @graphc_release(ptr %ctx)",
            self._status("%errors"),
            "  ret i32 %code",
        ]
        return self._entry(self.name, "i32", _PARAMETERS, "%prepared", body)

    def _entry(self, symbol: str, result: str, parameters: str, refused: str, body: Sequence[str]) -> str:
        """A function that checks inputs first; the body follows."""
        lines = [
            f"define {result} @{symbol}({parameters}) {{",
            f"  %data = alloca [{self.arrays + 1} x ptr], align 8",
            f"  %dims = alloca [{self.sizes} x i64], align 8",
            "  %unread = alloca %error, align 8",
            "  %silent = icmp eq ptr %error, null",
            "  %errors = select i1 %silent, ptr %unread, ptr %error",
            f"  %prepared = call i32 @{self.name}.prepare(ptr %inputs, ptr %data, ptr %dims, ptr %errors)",
            "  %ready = icmp eq i32 %prepared, 0",
            "  br i1 %ready, label %go, label %stop",
            "stop:",
            f"  ret {result} {refused}",
            "go:",
        ]
        return "\n".join([*lines, *body, "}", ""])

    def _measured(self) -> list[str]:
        """The context of a call, and the sizes of the results."""
        return [
            f"  %ctx = alloca [{C_CONTEXT_WORDS} x i64], align 8",
            "  call void @graphc_c_begin(ptr %ctx, ptr %call)",
            f"  %measured = call i32 @{self.name}.measure(ptr %ctx, ptr %data, ptr %dims, ptr %errors)",
            "  %known = icmp eq i32 %measured, 0",
            "  br i1 %known, label %sized, label %unsized",
            "unsized:",
            "  call void @graphc_release(ptr %ctx)",
            "  ret i32 %measured",
            "sized:",
        ]

    def _status(self, error: str) -> str:
        """The code that the status of a kernel stands for."""
        arguments = f"ptr %ctx, ptr @{self.name}.messages, i64 {self.messages}, ptr {error}"
        return f"  %code = call i32 @graphc_c_status(i64 %status, {arguments})"

    def info(self, doc: str) -> str:
        """The description `<name>_info`."""
        name, lines = self.name, []
        for kind, members in (("in", self.interface.inputs), ("out", self.interface.outputs)):
            arrays = []
            for i, member in enumerate(members):
                label = f"{name}.{kind}.{i}"
                lines.append(_text(f"{label}.name", member.name))
                initial = initial_shape = "null"
                if member.initial is not None:
                    lines.append(_bytes(f"{label}.initial", member.initial))
                    lines.append(_sizes(f"{label}.initial.shape", member.initial.shape))
                    initial, initial_shape = f"@{label}.initial", f"@{label}.initial.shape"
                arrays.append(
                    f"%array {{ ptr @{label}.name, ptr @{label}, ptr {initial}, ptr {initial_shape}, "
                    f"i32 {DTYPES.index(member.spec.dtype)}, i32 {member.spec.rank}, "
                    f"i32 {int(member.initial is not None)}, i32 {member.updates} }}"
                )
            lines.append(f"@{name}.{kind}.arrays = internal constant {_list('%array', arrays)}")
        lines += [_text(f"{name}.name", name), _text(f"{name}.doc", doc)]
        counts = f"i32 {len(self.interface.inputs)}, i32 {len(self.interface.outputs)}"
        lines.append(
            f"@{name}_info = constant %function {{ i32 {ABI_VERSION}, {counts}, i32 0, ptr @{name}.name, "
            f"ptr @{name}.doc, ptr @{name}.in.arrays, ptr @{name}.out.arrays, "
            f"ptr @{name}, ptr @{name}_shapes, ptr @{name}_workspace }}"
        )
        return "\n".join([*lines, ""])


def exports(name: str) -> list[str]:
    """The symbols of a function that C programs use."""
    return [name, f"{name}_shapes", f"{name}_workspace", f"{name}_info"]


def _store_sizes(label: str, start: int, sizes: Sequence[int | str]) -> list[str]:
    lines = []
    for axis, size in enumerate(sizes):
        lines.append(f"  %{label}.{axis}.size = getelementptr i64, ptr %dims, i64 {start + axis}")
        lines.append(f"  store i64 {size}, ptr %{label}.{axis}.size")
    return lines


def _list(kind: str, items: Sequence[str]) -> str:
    """An array constant; an empty one has one element, so that it has an address."""
    if not items:
        return f"[1 x {kind}] zeroinitializer"
    separator = ", " if items[0].startswith(kind) else f", {kind} "
    start = "" if items[0].startswith(kind) else f"{kind} "
    return f"[{len(items)} x {kind}] [{start}{separator.join(items)}]"


def _sizes(name: str, sizes: Sequence[int]) -> str:
    return f"@{name} = internal constant {_list('i64', [f'i64 {size}' for size in sizes])}"


def _text(name: str, text: str) -> str:
    return _literal(name, text.encode() + b"\0", 1)


def _bytes(name: str, array: np.ndarray) -> str:
    return _literal(name, array.tobytes() or b"\0", 64)


def _literal(name: str, data: bytes, align: int) -> str:
    text = "".join(f"\\{byte:02x}" for byte in data)
    return f'@{name} = internal constant [{len(data)} x i8] c"{text}", align {align}'
