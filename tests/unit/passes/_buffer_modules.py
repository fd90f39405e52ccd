# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Random functions of the buffer stage: buffers are used through views, loops, branches and addresses."""

from __future__ import annotations

from random import Random

ROW = "memref<4xf64, strided<[1], offset: ?>>"
_HEAD = """func.func private @use(!llvm.ptr)
func.func @main(%n: memref<i64>, %m: memref<?xf64>, %flag: memref<i64>, %out: memref<4xf64>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c4 = arith.constant 4 : index
  %half = arith.constant 0.5 : f64
  %dim = memref.dim %m, %c0 : memref<?xf64>
  %two = arith.muli %dim, %c2 : index
  %yes = arith.constant true
  %no = arith.constant false
  scf.for %i = %c0 to %c4 step %c1 {
    memref.store %half, %out[%i] : memref<4xf64>
  }
"""


class _Function:
    """Writes one function."""

    def __init__(self, rng: Random, static: bool) -> None:
        self.rng, self.static = rng, static
        self.lines: list[str] = []
        self.count = 0
        self.rows: list[str] = []
        self.has_late_size = False

    def name(self, prefix: str) -> str:
        self.count += 1
        return f"%{prefix}{self.count}"

    def write(self, text: str) -> None:
        self.lines.append(f"  {text}")

    def build(self) -> str:
        for _ in range(self.rng.randint(2, 4)):
            self.allocate()
        steps = [
            self.allocate,
            self.mix,
            self.mix,
            self.select,
            self.rotate,
            self.branch,
            self.address,
            self.copy,
        ]
        for _ in range(self.rng.randint(4, 16)):
            self.rng.choice(steps)()
        for row in self.rng.sample(self.rows, min(3, len(self.rows))):
            self.accumulate(row)
        return _HEAD + "\n".join(self.lines) + "\n  return\n}\n"

    def allocate(self) -> None:
        rng, b = self.rng, self.name("b")
        sizes = ["4", "40", "100"] if self.static else ["4", "60", "%dim", "%two", "%dim x4", "%late"]
        size = rng.choice(sizes)
        if size == "%late" and not self.has_late_size:
            self.has_late_size = True
            self.write("%word = memref.load %n[] : memref<i64>")
            self.write("%late = arith.index_cast %word : i64 to index")
        if size == "%dim x4":
            self.write(f"{b}w = memref.alloc(%dim) : memref<?x4xf64>")
            self.write(f"{b} = memref.collapse_shape {b}w [[0, 1]] : memref<?x4xf64> into memref<?xf64>")
            kind = "memref<?xf64>"
        else:
            kind = "memref<?xf64>" if size[0] == "%" else f"memref<{size}xf64>"
            self.write(f"{b} = memref.alloc({size if size[0] == '%' else ''}) : {kind}")
        row = self.name("r")
        self.write(f"{row} = memref.subview {b}[%c0] [4] [1] : {kind} to {ROW}")
        source = self.row() if self.rows and rng.random() < 0.5 else None
        self.loop(row, source)
        self.rows.append(row)

    def row(self) -> str:
        return self.rng.choice(self.rows)

    def loop(self, target: str, source: str | None) -> None:
        """Overwrites a row, with half of another one and a number."""
        v = self.name("v")
        self.write("scf.for %i = %c0 to %c4 step %c1 {")
        self.write(f"  {v}c = arith.constant {self.rng.randint(1, 9)}.0 : f64")
        if source is None:
            self.write(f"  memref.store {v}c, {target}[%i] : {ROW}")
        else:
            self.write(f"  {v} = memref.load {source}[%i] : {ROW}")
            self.write(f"  {v}h = arith.mulf {v}, %half : f64")
            self.write(f"  {v}s = arith.addf {v}h, {v}c : f64")
            self.write(f"  memref.store {v}s, {target}[%i] : {ROW}")
        self.write("}")

    def mix(self) -> None:
        self.loop(self.row(), self.row())

    def accumulate(self, row: str) -> None:
        v = self.name("v")
        self.write("scf.for %i = %c0 to %c4 step %c1 {")
        self.write(f"  {v} = memref.load {row}[%i] : {ROW}")
        self.write(f"  {v}o = memref.load %out[%i] : memref<4xf64>")
        self.write(f"  {v}s = arith.addf {v}, {v}o : f64")
        self.write(f"  memref.store {v}s, %out[%i] : memref<4xf64>")
        self.write("}")

    def select(self) -> None:
        result = self.name("r")
        self.write(f"{result} = arith.select {self.flag()}, {self.row()}, {self.row()} : {ROW}")
        self.rows.append(result)

    def flag(self) -> str:
        return self.rng.choice(["%yes", "%no"])

    def rotate(self) -> None:
        """A loop that hands on two rows the other way round."""
        a, b, pair, v = self.row(), self.row(), self.name("p"), self.name("v")
        self.write(
            f"{pair}:2 = scf.for %t = %c0 to {self.rng.choice(['%c0', '%c1', '%c4'])} step %c1 "
            f"iter_args({v}a = {a}, {v}b = {b}) -> ({ROW}, {ROW}) {{"
        )
        self.write(f"  {v} = memref.load {v}a[%c1] : {ROW}")
        self.write(f"  {v}h = arith.mulf {v}, %half : f64")
        self.write(f"  memref.store {v}h, {v}b[%c2] : {ROW}")
        self.write(f"  scf.yield {v}b, {v}a : {ROW}, {ROW}")
        self.write("}")
        self.rows += [f"{pair}#0", f"{pair}#1"]

    def branch(self) -> None:
        result = self.name("r")
        self.write(f"{result} = scf.if {self.flag()} -> ({ROW}) {{")
        self.write(f"  scf.yield {self.row()} : {ROW}")
        self.write("} else {")
        self.write(f"  scf.yield {self.row()} : {ROW}")
        self.write("}")
        self.rows.append(result)

    def address(self) -> None:
        """Passes the address of a row to a function, now and perhaps again later."""
        p = self.name("p")
        self.write(f"{p}i = memref.extract_aligned_pointer_as_index {self.row()} : {ROW} -> index")
        self.write(f"{p}w = arith.index_cast {p}i : index to i64")
        self.write(f"{p} = llvm.inttoptr {p}w : i64 to !llvm.ptr")
        self.write(f"call @use({p}) : (!llvm.ptr) -> ()")
        if self.rng.random() < 0.5:
            self.mix()
            self.write(f"call @use({p}) : (!llvm.ptr) -> ()")

    def copy(self) -> None:
        a, b = self.rng.choice(self.rows), self.rng.choice(self.rows)
        if a != b:
            self.write(f"memref.copy {a}, {b} : {ROW} to {ROW}")


def generate(seed: int, *, static: bool) -> str:
    """A module with a function @main; equal seeds give equal modules."""
    return _Function(Random(seed), static).build()
