# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Report about the compilation of a function."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field
from typing import TYPE_CHECKING
from weakref import WeakMethod

from graphc import hooks
from graphc.backends import CompileLog, CompileOptions
from graphc.graph.basic import Apply, SourceLocation
from graphc_runtime.record import record

if TYPE_CHECKING:
    from graphc.inspect.roofline import Roofline


@record(frozen=True)
class Fallback:
    """An op that runs in Python, or on the host where the others run on a device.

    Attributes:
        op: the op as text.
        reason: why it is not compiled, or has no kernel.
        location: the user's line that applied it.
    """

    op: str
    reason: str
    location: SourceLocation | None


@record(kw_only=True)
class CompileReport(CompileLog):
    """Times and decisions of one compilation; ``print(f.report)`` shows it.

    Attributes:
        name: the function's name.
        mode: the mode it was compiled in.
        options: what code depends on.
        nan_guard: what is done about values that become NaN or infinite: "off", "warn" or "raise".
        nodes: number of applications in the graph.
        native_nodes: how many of them are compiled.
        segments: number of executables the function runs.
        phases: seconds spent in each step.
        passes: name and seconds of each pass that ran.
        fallbacks: ops that run in Python.
        on_host: ops that run on the host, as there is no kernel for them.
        library: what NVIDIA's libraries compute where they are installed, if it is large.
        cache: whether each segment came from the on-disk cache: "hit", "miss" or "off".
        donations: what became of donated inputs and of the memory of updated shared variables.
        memory: what was done to keep to ``memory_budget``.
        fast_call: whether calls go straight to machine code.
    """

    name: str
    mode: str
    options: CompileOptions
    nan_guard: str = "off"
    nodes: int = 0
    native_nodes: int = 0
    segments: int = 0
    fallbacks: list[Fallback] = field(default_factory=list)
    on_host: list[Fallback] = field(default_factory=list)
    library: list[str] = field(default_factory=list)
    cache: list[str] = field(default_factory=list)
    donations: list[str] = field(default_factory=list)
    memory: list[str] = field(default_factory=list)
    fast_call: bool = False
    _roofline: WeakMethod[Callable[..., Roofline]] | None = field(
        default=None, init=False, repr=False, compare=False
    )

    @property
    def fastmath(self) -> str:
        """Changes that compiled arithmetic may make, see ``config.fastmath``."""
        return self.options.fastmath

    @property
    def flush_denormals(self) -> bool:
        """True if denormal numbers become zeros, see ``config.flush_denormals``."""
        return self.options.flush_denormals

    @property
    def total(self) -> float:
        """Seconds in all."""
        return sum(self.phases.values())

    def again(self, name: str | None = None) -> CompileReport:
        """A new report of a function that is made in the same way."""
        return CompileReport(
            name=name or self.name, mode=self.mode, options=self.options, nan_guard=self.nan_guard
        )

    def measured_by(self, roofline: WeakMethod[Callable[..., Roofline]]) -> None:
        """Says what measures the function that this is the report of."""
        self._roofline = roofline

    def roofline(self, *args: object, seconds: float | None = None) -> Roofline:
        """Arithmetic and traffic of each kernel, against the limits of this machine.

        The compiler counts, in the code as it will run and for the sizes of these arguments: floating-point
        operations, functions such as ``exp``, and bytes, each element that a kernel touches once. The peak of
        arithmetic is a matrix product's, that of memory a copy's; both are measured once, which takes a
        second, and kept in the cache folder. It compiles again, without the cache.

        Args:
            args: for inputs in order: values, or shapes as tuples of int. With values, and where a call
                changes nothing, calls are timed; each kernel of a function with ``profile=True``, too.
            seconds: what a call takes, if that is known.

        Returns:
            The counts, to ``print``; notebooks show a table. It has ``rows``, and of all kernels together
            ``flops``, ``bytes``, ``least_seconds`` and ``share``.

        Raises:
            TypeError: there are more arguments than inputs, or one has another number of dimensions.
            ReferenceError: the function does not exist any more.

        Examples:
            >>> a, b = pt.matrix("a"), pt.matrix("b")
            >>> f = graphc.function([a, b], a @ b)
            >>> (product,) = f.report.roofline((100, 50), (50, 20)).rows
            >>> product.flops, product.bytes
            (200000, 64000)

        Source: Williams, Waterman and Patterson, "Roofline" (2009).
        """
        measure = None if self._roofline is None else self._roofline()
        if measure is None:
            raise ReferenceError(f"{self.name} does not exist any more; keep it while you look at its report")
        return measure(*args, seconds=seconds)

    def __getstate__(self) -> dict[str, object]:
        return {**self.__dict__, "_roofline": None}

    def add_fallback(self, node: Apply, reason: str) -> None:
        """Note that a node runs in Python."""
        self.fallbacks.append(Fallback(str(node.op), reason, node.location))

    def _repr_html_(self) -> str:
        """HTML for notebooks."""
        page: str = hooks.inspection().report_html(self)
        return page

    def __repr__(self) -> str:
        native = f"{self.native_nodes} of {self.nodes} nodes native"
        return f"<report of {self.name}: mode {self.mode}, {native}, {self.total * 1e3:.1f} ms; print it>"

    def __str__(self) -> str:
        plural = "" if self.segments == 1 else "s"
        native = f"{self.native_nodes} of them native in {self.segments} segment{plural}"
        total = f"{self.total * 1e3:.1f} ms"
        lines = [f"{self.name}: mode {self.mode}, {self.nodes} nodes, {native}, {total}"]
        if self.nan_guard != "off":
            lines.append(f"  every op runs in Python and is checked for NaN and infinity ({self.nan_guard})")
        width = max(map(len, self.phases), default=0)
        lines += [f"  {name:<{width}}  {seconds * 1e3:9.2f} ms" for name, seconds in self.phases.items()]
        if self.cache:
            lines.append(
                f"  disk cache: {', '.join(f'{self.cache.count(s)} {s}' for s in dict.fromkeys(self.cache))}"
            )
        for what, found in (("in Python", self.fallbacks), ("on the host", self.on_host)):
            for fallback in found:
                where = f" at {fallback.location}" if fallback.location else ""
                lines.append(f"  runs {what}: {fallback.op} ({fallback.reason}){where}")
        lines += [f"  {text}" for text in self.library]
        lines += [f"  memory: {text}" for text in (*self.donations, *self.memory)]
        return "\n".join(lines)
