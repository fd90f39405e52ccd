# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What happened when a function was compiled."""

from __future__ import annotations

from dataclasses import dataclass, field

from graphc.backends.target import CompileLog, CompileOptions
from graphc.function.notebook import report_html
from graphc.graph.basic import Apply
from graphc.graph.location import SourceLocation
from graphc_runtime.record import record


@record(frozen=True)
class Fallback:
    """An op that runs in Python.

    Attributes:
        op: the op as text.
        reason: why it is not compiled.
        location: the user's line that applied it.
    """

    op: str
    reason: str
    location: SourceLocation | None


@dataclass(kw_only=True)
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
        cache: whether each segment came from the on-disk cache: "hit", "miss" or "off".
        donations: what became of donated inputs and of the memory of updated shared variables.
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
    cache: list[str] = field(default_factory=list)
    donations: list[str] = field(default_factory=list)
    fast_call: bool = False

    @property
    def fastmath(self) -> str:
        """What compiled arithmetic may change, see ``config.fastmath``."""
        return self.options.fastmath

    @property
    def flush_denormals(self) -> bool:
        """Whether denormal numbers become zeros, see ``config.flush_denormals``."""
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

    def add_fallback(self, node: Apply, reason: str) -> None:
        """Note that a node runs in Python."""
        self.fallbacks.append(Fallback(str(node.op), reason, node.location))

    def _repr_html_(self) -> str:
        """What notebooks show."""
        return report_html(self)

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
        for fallback in self.fallbacks:
            where = f" at {fallback.location}" if fallback.location else ""
            lines.append(f"  runs in Python: {fallback.op} ({fallback.reason}){where}")
        lines += [f"  memory: {text}" for text in self.donations]
        return "\n".join(lines)
