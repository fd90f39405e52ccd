# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Where the processor time of a compilation goes: `python tests/bench/compile_stages.py`.

Six small graphs and a large one, each compiled several times in a process of its own, with one thread,
without the disk cache and with all parts made anew. A stage's time is the least of all compilations but the
first. `--passes GRAPH` prints what each pass takes instead.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import ModuleType

GRAPHS = ("x + 1", "exp(x) * y + 1", "recurrence", "recurrence_gradient", "rnn16_gradient", "garch")
# A loss of 1,000 operations on vectors with its gradient: 4,497 nodes.
LARGE = "1000 operations with gradient"
COMPILATIONS, COMPILATIONS_LARGE = 9, 4
STAGES = (
    *(
        "passes of ours",
        "upstream's passes",
        "verification",
        "translation",
        "parsing by LLVM",
        "LLVM's passes",
    ),
    *("code: kernel", "code: entry", "code: memory", "code: products", "loading", "rest", "all"),
)


class Clock:
    """Processor time by stage: that of the thread that works, which is not the one that calls."""

    def __init__(self) -> None:
        self.times: Counter[str] = Counter()

    @contextmanager
    def during(self, stage: str) -> Iterator[None]:
        """Adds the time of a block."""
        start = time.thread_time()
        try:
            yield
        finally:
            self.times[stage] += time.thread_time() - start

    def watch(self, owner: ModuleType | type, name: str, stage_of: Callable[..., str]) -> None:
        """Measures all calls of a function."""
        function = getattr(owner, name)

        def timed(*arguments: object, **options: object) -> object:
            with self.during(stage_of(*arguments)):
                return function(*arguments, **options)

        setattr(owner, name, timed)


def _graph(name: str) -> tuple[list[object], object]:
    """Inputs and outputs of a graph."""
    import libraries
    import scan_lines

    import graphc
    import graphc.tensor as pt

    if name == LARGE:
        import compile_time

        return compile_time.random_graph(1000, gradient=True)
    if name not in [case.name for case in scan_lines.CASES]:
        x, y = pt.dvectors("x", "y")
        return ([x], x + 1) if name == GRAPHS[0] else ([x, y], pt.exp(x) * y + 1)
    case = next(case for case in scan_lines.CASES if case.name == name)
    values = case.inputs()
    inputs = [pt.TensorType(str(v.dtype), case.shape(i, v))() for i, v in enumerate(values)]
    result = case.expression(libraries.load("graphc").m, *inputs)
    return inputs, graphc.grad(result, [inputs[i] for i in case.wrt]) if case.wrt else result


def _watched() -> Clock:
    """A clock that sees all stages."""
    from graphc.backends import llvm
    from graphc.backends.cpu import lower, target
    from graphc.backends.cpu import object as made
    from graphc.passes import run

    clock, kinds = Clock(), ["kernel"]
    setattr(run, "perf_counter", time.thread_time)  # noqa: B010
    run_pipeline = lower.run_pipeline

    def run_and_tell(*arguments: object, **options: object) -> run.PipelineReport:
        report = run_pipeline(*arguments, **options)
        for each in report.runs:
            clock.times[_PASSES[not each.name.startswith("graphc-")]] += each.seconds
            clock.times[f"{_PASS}{each.name}"] += each.seconds
        return report

    setattr(lower, "run_pipeline", run_and_tell)  # noqa: B010
    clock.watch(lower, "run_pipeline", lambda *_: "pipeline")
    clock.watch(lower, "translate_module_to_llvmir", lambda *_: "translation")
    clock.watch(lower, "to_llvmlite", lambda *_: "translation")
    clock.watch(target, "MachineCode", lambda *_: "loading")
    clock.watch(llvm, "call", lambda name, *_: _LLVM.get(name, f"code: {kinds[0]}"))
    compile_one = made._compile_one

    def compile_and_tell(views: bool, work: made._Work) -> object:
        kinds[0] = _kind(work.piece.text) if work.part else "kernel"
        return compile_one(views, work)

    setattr(made, "_compile_one", compile_and_tell)  # noqa: B010
    return clock


_PASS = "pass "
_PASSES = {False: "passes of ours", True: "upstream's passes"}
_LLVM = {
    "ParseAssembly": "parsing by LLVM",
    "VerifyModule": "parsing by LLVM",
    "RunNewModulePassManager": "LLVM's passes",
}


def _kind(text: str) -> str:
    """What a part is, by what it defines."""
    if "@graphc_entry(" in text or "@graphc_raise(" in text:
        return "entry"
    return "memory" if "@graphc_release(" in text else "products"


def measure(name: str) -> dict[str, float]:
    """Milliseconds by stage, in this process."""
    import graphc
    from graphc.backends.cpu.compiler import preload
    from graphc.native.parts import forget_parts

    preload(has_scan=True)
    clock, best = _watched(), dict[str, float]()
    for number in range(COMPILATIONS_LARGE if name == LARGE else COMPILATIONS):
        inputs, outputs = _graph(name)
        forget_parts()
        clock.times.clear()
        start = time.process_time()
        graphc.function(inputs, outputs, on_unused_input="ignore")
        times = clock.times
        times["all"] = time.process_time() - start
        times["verification"] = times["pipeline"] - sum(times[stage] for stage in _PASSES.values())
        times["rest"] = times["all"] - sum(times[s] for s in STAGES[:-2])
        for stage in {*STAGES, *times} if number else ():
            best[stage] = min(best.get(stage, 1e9), 1e3 * times[stage])
    return best


def _fresh(name: str) -> dict[str, float]:
    """`measure` in a process of its own."""
    environment = {**os.environ, "GRAPHC_CACHE_DIR": "", "GRAPHC_THREADS": "1"}
    command = [sys.executable, __file__, name]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


def main() -> int:
    """Measures and prints a table."""
    if sys.argv[1:2] == ["--passes"]:
        found = _fresh(sys.argv[2] if len(sys.argv) > 2 else LARGE)
        passes = [(time, key) for key, time in found.items() if key.startswith(_PASS)]
        print(
            "\n".join(f"{time:8.1f} {key.removeprefix(_PASS)}" for time, key in sorted(passes, reverse=True))
        )
        return 0
    if len(sys.argv) > 1:
        print(json.dumps(measure(sys.argv[1])))
        return 0
    names = (*GRAPHS, LARGE)
    rows = [_fresh(name) for name in names]
    print("| processor ms |", " | ".join(names), "|\n|---|" + "---:|" * len(names))
    for stage in STAGES:
        print(f"| {stage} |", " | ".join(f"{row[stage]:.1f}" for row in rows), "|")
    return 0


if __name__ == "__main__":
    sys.exit(main())
