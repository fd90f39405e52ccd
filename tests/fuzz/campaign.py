# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A run over many seeds: counts, findings, scripts of shrunk programs.

python tests/fuzz/campaign.py --minutes 30             until the time is over
python tests/fuzz/campaign.py --seed 1234              one seed, shown
python tests/fuzz/campaign.py --ways reference,device      on the machine's CUDA device, if it has one
python tests/fuzz/campaign.py --results folder         where the summary and failing scripts go
python tests/fuzz/campaign.py --sources tree/compiler:tree/dialects:tree/runtime:tree/tools
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [
    str(ROOT / name) for name in ("tests/fuzz", "tests/numeric", "compiler", "dialects", "runtime", "tools")
]
os.environ.setdefault("GRAPHC_VERIFY_MEMORY", "1")
os.environ.setdefault("GRAPHC_CACHE_DIR", tempfile.gettempdir() + "/graphc-fuzz-cache")

from checked import Finding  # noqa: E402
from processes import Answer, Dead, Worker  # noqa: E402
from program import COMPLEX_IN, LARGE, Program  # noqa: E402
from script import script  # noqa: E402
from shrinking import Shrinker  # noqa: E402
from ways import OPTIONAL  # noqa: E402

FURTHER = (
    *("donated", "out", "tightened", "loosened", "resized", "eager", "lazy", "poisoned", "transposed"),
    *("sloped", "alone"),
    *(
        "small clusters",
        "products by gemm",
        "without all",
        "substituted",
        "vectorized",
        "artifact",
        "c",
        "device",
        "device in parts",
    ),
)


def first_seed() -> int:
    """A seed that each commit has one of: a run of each commit sees new programs."""
    command = ["git", "-C", str(ROOT), "rev-parse", "HEAD"]
    try:
        commit = subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        commit = "no commit"
    return int(hashlib.sha256(commit.encode()).hexdigest()[:8], 16) * 1000


def ways_of(seed: int, program: Program, thorough: bool = True) -> list[str]:
    """The ways in which a seed's program is evaluated: the six, and some of the others.

    Args:
        seed: of the program.
        program: large ones are run on several threads.
        thorough: the six and two others; else NumPy, the reference, and one other in rotation.
    """
    r = random.Random(seed)
    differentiated = any(step.kind in ("constants_with_shapes", "taken_apart") for step in program.steps)
    by_slopes = ["sloped"] if seed % COMPLEX_IN == 1 or differentiated else []
    left_out = f"without {r.choice(OPTIONAL)}"
    if any(x.value.size > LARGE for x in program.inputs):
        return ["numpy", "reference", "threads", "fast_compile"]
    if thorough:
        ways = ["numpy", "reference", "interpret", "fast_run", "fast_compile"]
        return [*ways, left_out, *by_slopes, *r.sample(FURTHER, 2)]
    if seed % 8 == 0:
        return ["numpy", "reference", "interpret"]  # eight programs then take the time of seven
    compiled = ["fast_run"] * 8 + ["fast_compile"] * 3 + [left_out] * 3 + [r.choice(FURTHER)] * 4
    # The interpreter costs little, and says whether passes on graphs are at fault or what comes below.
    interpreted = ["interpret"] if seed % 4 == 1 else []
    return ["numpy", "reference", *interpreted, *by_slopes, r.choice(compiled)]


class Campaign:
    """Evaluates seeds, shrinks what fails, and keeps count.

    Attributes:
        counts: graphs, mismatches, errors, crashes, hangs, by name.
        failures: scripts of what failed.
    """

    def __init__(
        self,
        results: Path | None = None,
        sources: str = "",
        seconds_to_shrink: float = 60.0,
        thorough: bool = True,
        tier: str = "",
        ways: Sequence[str] = (),
    ) -> None:
        self.worker, self.ways = Worker(sources, tier), ways
        self.results, self.seconds_to_shrink, self.thorough = results, seconds_to_shrink, thorough
        self.counts: Counter[str] = Counter()
        self.seconds: Counter[str] = Counter()
        self.failures: list[str] = []
        self.seen: Counter[tuple[str, ...]] = Counter()

    def close(self) -> None:
        """End the process."""
        self.worker.close()

    def run(self, seed: int) -> list[str]:
        """Evaluate a seed; the scripts of what failed."""
        self.counts["graphs"] += 1
        answer, program = self._ask("grow", seed), None
        if isinstance(answer, Program):
            program = answer
            self.counts["lines"] += len(program.steps)
            self.counts["that fail on purpose"] += program.raises
            answer = self.evaluate(program, self.ways or ways_of(seed, program, self.thorough))
        if isinstance(answer, Exception):
            return [self._report(seed, program, Finding("generator", "error", str(answer)))]
        self.seconds.update(answer.seconds)
        self.counts["results"] += answer.evidence[1]
        self.counts["results without evidence"] += answer.evidence[1] - answer.evidence[0]
        return [self._failed(seed, answer.program, finding) for finding in _distinct(answer.findings)]

    def _ask(self, *request: Any) -> Any:
        try:
            return self.worker.ask(*request)
        except Dead as error:
            return error

    def evaluate(self, program: Program, ways: Sequence[str]) -> Answer | Exception:
        """The findings of some ways; where the process dies, each way in a process of its own."""
        answer = self._ask("check", program, ways)
        if not isinstance(answer, Dead):
            return answer
        if len(ways) == 1:
            kind, _, message = str(answer).partition(": ")
            return Answer(program, [Finding(ways[0], kind, message)])
        whole = Answer(program)
        for way in ways:
            part = self.evaluate(program, [way])
            if isinstance(part, Exception):
                return part
            whole.findings += part.findings
        return whole

    # -- failures ------------------------------------------------------------------------------------

    def _failed(self, seed: int, program: Program, finding: Finding) -> str:
        stage = "crashes" if finding.kind == "crash" else "hangs" if finding.kind == "hang" else "mismatches"
        self.counts[stage if finding.kind != "error" else "errors"] += 1
        self.counts[f"in {finding.way}"] += 1
        budget = self.seconds_to_shrink / (1 + self.seen[finding.signature])
        self.seen[finding.signature] += 1
        small, shown = self.shrunk(program, finding, budget)
        return self._report(seed, small, shown)

    def shrunk(self, program: Program, finding: Finding, seconds: float) -> tuple[Program, Finding]:
        """The shortest program with the same kind of failure in the same way."""
        latest = [finding]

        def fails(candidate: Program) -> bool:
            answer = self.evaluate(candidate, [finding.way])
            if isinstance(answer, Exception):
                return False
            same = [f for f in answer.findings if f.signature == finding.signature]
            latest[:] = same or latest
            return bool(same)

        patience, self.worker.timeout = self.worker.timeout, 30.0
        try:
            return Shrinker(fails, seconds).run(program), latest[0]
        except Exception as error:
            return program, Finding(finding.way, finding.kind, f"{finding.message}\nnot shrunk: {error!r}")
        finally:
            self.worker.timeout = patience

    def _report(self, seed: int, program: Program | None, finding: Finding) -> str:
        text = f"# seed {seed}: {finding}\n" if program is None else script(program, finding, seed)
        self.failures.append(text)
        if self.results is not None:
            self.results.mkdir(parents=True, exist_ok=True)
            way = "".join(c if c.isalnum() else "-" for c in finding.way)
            (self.results / f"{finding.kind.replace(' ', '-')}-{way}-{seed}.py").write_text(
                text, encoding="utf-8"
            )
        return text


def _distinct(findings: Sequence[Finding]) -> list[Finding]:
    """One finding of each kind: several ways that fail alike are most likely one error."""
    found: dict[str, Finding] = {}
    for finding in findings:
        found.setdefault(finding.signature[1], finding)
    return list(found.values())


def main() -> int:
    """Run; the exit status is 1 when something failed."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--minutes", type=float, default=30.0, help="how long to run")
    parser.add_argument("--start", type=int, help="first seed; by default that of the commit")
    parser.add_argument("--jobs", type=int, default=1, help="processes at a time")
    parser.add_argument("--count", type=int, default=10**9, help="how many programs at most")
    parser.add_argument("--seed", type=int, help="run this seed only, and print its program")
    parser.add_argument("--results", type=Path, default=Path("results/fuzz"), help="folder of what is found")
    parser.add_argument(
        "--sources", default="", help="PYTHONPATH of the compiler to try, instead of this one"
    )
    parser.add_argument("--ways", default="", help="evaluate in these ways alone, with commas between")
    options = parser.parse_args()
    ways = [way for way in options.ways.split(",") if way]
    if options.seed is not None:
        campaign = Campaign(options.results, options.sources, ways=ways)
        print(campaign.worker.ask("grow", options.seed))
        texts = campaign.run(options.seed)
        print("\n".join(texts) or "agrees")
        return int(bool(texts))
    start = first_seed() if options.start is None else options.start
    campaigns = [Campaign(options.results, options.sources, ways=ways) for _ in range(options.jobs)]
    with ThreadPoolExecutor(options.jobs) as pool:
        loops = [
            pool.submit(_until, campaign, options, range(start + i, 10**15, options.jobs), campaigns)
            for i, campaign in enumerate(campaigns)
        ]
        for loop in loops:
            loop.result()
    print(summary(campaigns))
    return int(any(campaign.failures for campaign in campaigns))


def _until(
    campaign: Campaign, options: argparse.Namespace, seeds: range, all_of_them: list[Campaign]
) -> None:
    """Run seeds until the time is over."""
    end = time.monotonic() + 60 * options.minutes
    for seed in seeds:
        if time.monotonic() > end or sum(c.counts["graphs"] for c in all_of_them) >= options.count:
            break
        for text in campaign.run(seed):
            print(text, flush=True)
        if campaign.counts["graphs"] % 20 == 0:
            _write(options.results, all_of_them)
    campaign.close()
    _write(options.results, all_of_them)


def _write(folder: Path, campaigns: Sequence[Campaign]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "summary.json").write_text(summary(campaigns), encoding="utf-8")


def summary(campaigns: Sequence[Campaign]) -> str:
    """Counts, and seconds of each way."""
    counts: Counter[str] = Counter()
    seconds: Counter[str] = Counter()
    for campaign in campaigns:
        counts.update(campaign.counts)
        for way, spent in campaign.seconds.items():
            seconds["without a pass" if way.startswith("without") else way] += spent
    return json.dumps({"counts": counts, "seconds": {k: round(v, 1) for k, v in seconds.items()}}, indent=1)


if __name__ == "__main__":
    sys.exit(main())
