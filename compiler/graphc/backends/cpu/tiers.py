# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Access of an entry to Python objects: by struct offsets (checked at import), or by exported functions
only.
"""

from __future__ import annotations

from typing import Protocol

from graphc.native.vector_ir import Writer
from graphc_runtime import layout
from graphc_runtime.manifest import ArraySpec
from graphc_runtime.symbols import DESCRIPTORS


class Tier(Protocol):
    """Object access of an entry.

    Attributes:
        unlike: the label for an array that does not fit.
        has_views: whether each array has a `Py_buffer` in `%views`.
    """

    unlike: str
    has_views: bool

    def begin(self, arrays: int) -> None:
        """Writes stack storage and its initialisation."""

    def item(self, container: str, index: int) -> str:
        """Item of a tuple, a borrowed reference."""

    def require_out_keyword(self, names: str) -> None:
        """Goes slow unless the keyword names are exactly ("out",)."""

    def sequence(self, value: str, count: int) -> list[str]:
        """Items of a tuple or list of `count`; goes slow for anything else."""

    def cell(self, owner: str, index: int) -> str:
        """Cell `index` of the function's self."""

    def cell_value(self, cell: str, otherwise: str | None = None) -> str:
        """The array in a cell; goes slow, or to a label, if it has none."""

    def array(self, index: int, value: str, spec: ArraySpec, *, writeable: bool) -> tuple[str, str]:
        """Checks array `index`; pointers to its data and sizes. Goes to `unlike` if it does not fit."""

    def writeable(self, index: int, value: str) -> str:
        """True if array `index`, which has been checked, may be written to."""

    def exclusive(self, value: str) -> str | None:
        """True if only a cell and this call know the array and its memory; None if that cannot be told."""

    def hold(self, values: list[str]) -> None:
        """Keeps the cells' arrays alive until `release`."""

    def data(self, array: str) -> str:
        """Data pointer of an array that was just made."""

    def release(self) -> None:
        """Gives back what the call holds. Written on every way out."""


class StructTier:
    """Fields of CPython's and NumPy's objects; graphc_runtime.layout has checked the offsets."""

    has_views = False

    def __init__(self, writer: Writer, tuple_items: int) -> None:
        self.w, self._items = writer, tuple_items
        self.unlike = "slow"
        self._held = 0

    def begin(self, arrays: int) -> None:
        self.w.line(f"  %held = alloca [{max(arrays, 1)} x ptr]")

    def item(self, container: str, index: int) -> str:
        return self.w.load("ptr", container, self._items + 8 * index)

    def require_out_keyword(self, names: str) -> None:
        w = self.w
        size = w.load("i64", names, layout.TUPLE_SIZE)
        w.require(w.let(f"icmp eq i64 {size}, 1"), "slow")
        w.require(w.let(f"icmp eq ptr {self.item(names, 0)}, @str_out"), "slow")

    def sequence(self, value: str, count: int) -> list[str]:
        w = self.w
        kind = w.load("ptr", value, layout.OB_TYPE)
        is_tuple = w.let(f"icmp eq ptr {kind}, @PyTuple_Type")
        is_list = w.let(f"icmp eq ptr {kind}, @PyList_Type")
        w.require(w.let(f"or i1 {is_tuple}, {is_list}"), "slow")
        size = w.load("i64", value, layout.TUPLE_SIZE)  # also LIST_SIZE
        w.require(w.let(f"icmp eq i64 {size}, {count}"), "slow")
        if not count:
            return []
        inline = w.address(value, self._items)
        apart = w.load(
            "ptr", value, layout.LIST_ITEMS
        )  # in a tuple: its first item or its hash, not used then
        items = w.let(f"select i1 {is_tuple}, ptr {inline}, ptr {apart}")
        return [w.load("ptr", items, 8 * i) for i in range(count)]

    def cell(self, owner: str, index: int) -> str:
        return self.item(owner, 3 + index)

    def cell_value(self, cell: str, otherwise: str | None = None) -> str:
        w = self.w
        size = w.load("i64", cell, layout.LIST_SIZE)
        w.require(w.let(f"icmp sge i64 {size}, 1"), otherwise or "slow")
        return w.load("ptr", w.load("ptr", cell, layout.LIST_ITEMS), 0)

    def array(self, index: int, value: str, spec: ArraySpec, *, writeable: bool) -> tuple[str, str]:
        w = self.w
        if writeable:
            self.unlike = "bail"
        kind = w.load("ptr", value, layout.OB_TYPE)
        w.require(w.let(f"icmp eq ptr {kind}, @PyArray_Type"), self.unlike)
        kind = w.load("ptr", value, layout.ARRAY_DESCR)
        w.require(w.let(f"icmp eq ptr {kind}, @descr_{spec.dtype}"), self.unlike)
        w.require(w.let(f"icmp eq i32 {w.load('i32', value, layout.ARRAY_NDIM)}, {spec.rank}"), self.unlike)
        wanted = layout.FLAG_C | layout.FLAG_ALIGNED | (layout.FLAG_WRITEABLE if writeable else 0)
        flags = w.let(f"and i32 {w.load('i32', value, layout.ARRAY_FLAGS)}, {wanted}")
        w.require(w.let(f"icmp eq i32 {flags}, {wanted}"), self.unlike)
        return w.load("ptr", value, layout.ARRAY_DATA), w.load("ptr", value, layout.ARRAY_DIMS)

    def writeable(self, index: int, value: str) -> str:
        return self._has_flags(value, layout.FLAG_WRITEABLE)

    def exclusive(self, value: str) -> str | None:
        w = self.w
        count = w.load("i32", value, layout.OB_REFCOUNT)
        base = w.load("ptr", value, layout.ARRAY_BASE)
        # One reference is the cell's, one was taken by `hold`.
        facts = [w.let(f"icmp eq i32 {count}, 2"), w.let(f"icmp eq ptr {base}, null")]
        return w.all([*facts, self._has_flags(value, layout.FLAG_OWNDATA | layout.FLAG_WRITEABLE)])

    def _has_flags(self, value: str, wanted: int) -> str:
        flags = self.w.let(f"and i32 {self.w.load('i32', value, layout.ARRAY_FLAGS)}, {wanted}")
        return self.w.let(f"icmp eq i32 {flags}, {wanted}")

    def hold(self, values: list[str]) -> None:
        # All checks that go to `slow` are done, so nothing held is forgotten.
        for i, value in enumerate(values):
            self.w.line(f"  call void @Py_IncRef(ptr {value})")
            self.w.store("ptr", value, "%held", 8 * i)
        self._held = len(values)

    def data(self, array: str) -> str:
        return self.w.load("ptr", array, layout.ARRAY_DATA)

    def release(self) -> None:
        if self._held:
            self.w.line(f"  call void @graphc_drop(ptr %held, i64 {self._held})")


# Fields of Py_buffer (stable ABI since 3.11), and the flags of a C-contiguous request with format.
VIEW_SIZE, _VIEW_READONLY, _VIEW_NDIM, _VIEW_FORMAT, _VIEW_SHAPE = 80, 32, 36, 40, 48
_REQUEST, _WRITABLE = 0x3C, 1


class BufferTier:
    """The buffer protocol, and functions that CPython and NumPy export."""

    has_views = True

    def __init__(self, writer: Writer) -> None:
        self.w = writer
        self.unlike = "bail"
        self._views = 0

    def begin(self, arrays: int) -> None:
        self._views = arrays
        self.w.line("  %zeros = alloca [64 x i64]")
        self.w.clear("%zeros", 512)
        self.w.line(f"  %views = alloca [{max(VIEW_SIZE * arrays, 1)} x i8], align 8")
        self.w.clear("%views", VIEW_SIZE * arrays)

    def item(self, container: str, index: int) -> str:
        return self.w.let(f"call ptr @PyTuple_GetItem(ptr {container}, i64 {index})")

    def require_out_keyword(self, names: str) -> None:
        w = self.w
        size = w.let(f"call i64 @PyTuple_Size(ptr {names})")
        w.require(w.let(f"icmp eq i64 {size}, 1"), "slow")
        w.require(w.let(f"icmp eq ptr {self.item(names, 0)}, @str_out"), "slow")

    def sequence(self, value: str, count: int) -> list[str]:
        # Only tuples: telling a list from its subclasses needs a field.
        w = self.w
        self._require_type(value, "@PyTuple_Type", "slow")
        size = w.let(f"call i64 @PyTuple_Size(ptr {value})")
        w.require(w.let(f"icmp eq i64 {size}, {count}"), "slow")
        return [self.item(value, i) for i in range(count)]

    def cell(self, owner: str, index: int) -> str:
        return self.item(owner, 3 + index)

    def cell_value(self, cell: str, otherwise: str | None = None) -> str:
        w = self.w
        value = w.let(f"call ptr @PyList_GetItem(ptr {cell}, i64 0)")
        self._require_or_clear(w.let(f"icmp ne ptr {value}, null"), otherwise or self.unlike)
        return value

    def array(self, index: int, value: str, spec: ArraySpec, *, writeable: bool) -> tuple[str, str]:
        w = self.w
        view = w.address("%views", VIEW_SIZE * index)
        self._require_type(value, "@PyArray_Type", self.unlike)
        flags = _REQUEST | (_WRITABLE if writeable else 0)
        got = w.let(f"call i32 @PyObject_GetBuffer(ptr {value}, ptr {view}, i32 {flags})")
        self._require_or_clear(w.let(f"icmp eq i32 {got}, 0"), self.unlike)
        data = w.load("ptr", view, 0)
        address = w.let(f"ptrtoint ptr {data} to i64")
        low = w.let(f"and i64 {address}, {DESCRIPTORS[spec.dtype].alignment - 1}")
        facts = [
            w.let(f"icmp eq i32 {w.load('i32', view, _VIEW_NDIM)}, {spec.rank}"),
            w.let(f"icmp eq i64 {low}, 0"),
        ]
        text = w.load("ptr", view, _VIEW_FORMAT)
        w.require(w.all(facts), self.unlike)
        # Byte by byte, so that nothing after the terminating zero is read.
        for i, byte in enumerate(_buffer_format(spec.dtype)):
            w.require(w.let(f"icmp eq i8 {w.load('i8', text, i)}, {byte}"), self.unlike)
        return data, w.load("ptr", view, _VIEW_SHAPE)

    def writeable(self, index: int, value: str) -> str:
        view = self.w.address("%views", VIEW_SIZE * index)
        return self.w.let(f"icmp eq i32 {self.w.load('i32', view, _VIEW_READONLY)}, 0")

    def exclusive(self, value: str) -> str | None:
        return None

    def hold(self, values: list[str]) -> None:
        """The views hold the arrays."""

    def data(self, array: str) -> str:
        return self.w.let(f"call ptr @PyArray_GetPtr(ptr {array}, ptr %zeros)")

    def release(self) -> None:
        self.w.line(f"  call void @graphc_close(ptr %views, i64 {self._views})")

    def _require_type(self, value: str, kind: str, otherwise: str) -> None:
        actual = self.w.let(f"call ptr @PyObject_Type(ptr {value})")
        self.w.line(f"  call void @Py_DecRef(ptr {actual})")
        self.w.require(self.w.let(f"icmp eq ptr {actual}, {kind}"), otherwise)

    def _require_or_clear(self, condition: str, otherwise: str) -> None:
        """Goes to a label without the exception that the failed call has set."""
        w = self.w
        stem = f"{w.block}_{condition[1:]}"
        w.line(f"  br i1 {condition}, label %{stem}_good, label %{stem}_clear, !prof !0")
        w.label(f"{stem}_clear")
        w.line("  call void @PyErr_Clear()")
        w.line(f"  br label %{otherwise}")
        w.label(f"{stem}_good")


def _buffer_format(dtype: str) -> bytes:
    """The format string, with its zero, that NumPy exports for an aligned array of this dtype."""
    import numpy as np

    return np.zeros(1, dtype).data.format.encode() + b"\0"
