# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The accounts of foreign suites: every test has one place, and the page's sums are those of the lists."""

from __future__ import annotations

import importlib
import sys
from collections import Counter
from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parents[2] / "conformance"
VERSION = "3.3.0"


@pytest.fixture(scope="module")
def modules():
    sys.path.insert(0, str(FOLDER))
    try:
        yield [importlib.import_module(name) for name in ("accounts", "outcomes")]
    finally:
        sys.path.remove(str(FOLDER))


@pytest.fixture
def accounts(modules):
    return modules[0]


@pytest.fixture
def outcomes(modules):
    return modules[1]


def scope_of(outcomes, tmp_path):
    path = tmp_path / "scope.toml"
    path.write_text(
        "quick = []\nstatements = []\ntests = []\nerrors = []\n"
        '[[files]]\npatterns = ["tests/link/*"]\nreason = "backends"\n'
        '[[names]]\npatterns = ["pytensor.link.*"]\nreason = "linkers"\n'
        '[[attributes]]\nnames = ["maker"]\nreason = "optimised graphs"\n'
        '[[attributes]]\nnames = ["*"]\nreason = "parameters of ops"\n'
    )
    return outcomes.Scope.read(path)


RECORDS = {
    "tests/test_a.py::test_one[x]": {"outcome": "passed"},
    "tests/test_a.py::test_one[y]": {"outcome": "failed", "error": "AssertionError", "uses": None},
    "tests/test_a.py::test_two[1]": {"outcome": "failed", "error": "", "uses": "attribute maker"},
    "tests/test_a.py::test_two[2]": {"outcome": "failed", "error": "", "uses": "attribute inplace"},
    "tests/test_a.py::test_gone[NOTSET]": {"outcome": "skipped", "error": "Skipped: got empty parameter set"},
    "tests/test_a.py::test_slow": {"outcome": "skipped", "error": "Skipped: slow"},
}


def test_tests_without_parameters_fail_and_each_test_has_one_place(accounts, outcomes, tmp_path):
    judged = scope_of(outcomes, tmp_path).judge(RECORDS)
    assert Counter(record["outcome"] for record in judged.values()) == {
        "passed": 1,
        "failed": 2,
        "out of scope": 2,
        "skipped": 1,
    }
    reasons = {test: record.get("reason") for test, record in judged.items()}
    assert reasons["tests/test_a.py::test_two[1]"] == "optimised graphs"
    assert reasons["tests/test_a.py::test_two[2]"] == "parameters of ops"
    sums = accounts.Sums.of(judged, listed=2)
    assert sums == accounts.Sums(6, 3, 1, 2, 1, 2) and not sums.is_missing


@pytest.mark.parametrize("rules", ["scope.toml", "linked.toml"])
def test_what_is_left_out_has_a_reason_in_both_ways(outcomes, tmp_path, rules):
    """Each attribute that `internals` says a test reads puts it out of scope, in each file of rules."""
    internals = importlib.import_module("internals")
    left_out = internals.Internal()
    uses = {
        lambda: left_out.anything,
        lambda: left_out(),
        lambda: left_out[0],
        lambda: bool(left_out),
        lambda: list(left_out),
        lambda: getattr(left_out, internals.NOTHING),
    }
    named = set()
    for use in uses:
        with pytest.raises(BaseException, match="graphc has no counterpart of attribute") as caught:
            use()
        named.add(caught.value.name.removeprefix("attribute "))
    assert named == set(internals.ATTRIBUTES)
    scope = outcomes.Scope.read(FOLDER / rules)
    for name in named:
        record = {"outcome": "failed", "error": "", "uses": f"attribute {name}"}
        (judged,) = scope.judge({"tests/test_a.py::test": record}).values()
        assert judged["outcome"] == "out of scope" and name in scope.attributes
    text = (FOLDER / rules).read_text()
    for name in named:
        path = tmp_path / rules
        path.write_text(text.replace(f'"{name}"', '"other"').replace('"*"', '"other"'))
        with pytest.raises(ValueError, match=rf"{rules} has no \[\[attributes\]\] with a reason for {name}"):
            outcomes.Scope.read(path)


def test_what_leaves_the_scope_or_vanishes_is_news(accounts, outcomes, tmp_path):
    scope = scope_of(outcomes, tmp_path)
    results = {"tests/test_a.py": scope.judge(RECORDS)}
    outside = accounts.Outside.read(tmp_path / "outside.txt")
    assert len(outside.differences(results)) == 1
    outside.update(results, scope, ["tests/test_a.py", "tests/link/test_b.py"])
    outside = accounts.Outside.read(tmp_path / "outside.txt")
    assert outside.differences(results) == [] and outside.of_file("tests/test_a.py") == 2
    assert outside.reasons["tests/link/test_b.py"] == "backends"
    back = {
        "tests/test_a.py": {
            **results["tests/test_a.py"],
            "tests/test_a.py::test_two[1]": {"outcome": "passed"},
        }
    }
    assert outside.differences(back) == [
        "out of scope 1 times, listed as that 2 times: tests/test_a.py::test_two"
    ]
    counts = tmp_path / "collected.txt"
    counts.write_text("tests/test_a.py 7\n")
    assert accounts.vanished(results, counts) == [
        "PyTensor collects 7 tests, graphc has results of 6: tests/test_a.py"
    ]
    expected = outcomes.Expected.read(tmp_path / "none.txt")
    rows = accounts.accounts(
        ["tests/test_a.py", "tests/test_c.py"], {**results, "tests/test_c.py": {}}, expected, counts
    )
    page = tmp_path / "page.md"
    page.write_text("# Long runs\n\nText.\n\n## Last\n\nMore.\n")
    for _ in range(2):
        accounts.write("1.0", rows, page)
        text = page.read_text()
        assert text.startswith("# Long runs\n\nText.\n") and text.count("## PyTensor 1.0") == 1
        assert "\n## Last\n\nMore.\n" in text
        assert accounts.read_rows("1.0", page)["test_a.py"] == rows["tests/test_a.py"]


def test_the_page_agrees_with_the_lists(accounts, outcomes):
    rows = {f"tests/{file}": sums for file, sums in accounts.read_rows(VERSION).items()}
    total = rows.pop("tests/all")
    assert sum(rows.values(), accounts.Sums()) == total
    counts = accounts.collected(FOLDER / "collected" / f"{VERSION}.txt")
    assert {file: sums.collected for file, sums in rows.items()} == counts
    expected = outcomes.Expected.read(FOLDER / "expected" / f"{VERSION}.txt")
    outside = accounts.Outside.read(FOLDER / "outside" / f"{VERSION}.txt")
    listed = Counter(test.partition("::")[0] for test in expected.reasons)
    for file, sums in rows.items():
        assert sums.in_scope == sums.passed + sums.listed and sums.listed == listed[file], file
        whole = file in outside.reasons
        assert sums.out_of_scope == (sums.collected if whole else outside.of_file(file)), file
        assert whole <= (sums.in_scope == 0), file
    assert {
        test.partition("::")[0] for test in expected.reasons.keys() | outside.reasons.keys()
    } <= rows.keys()
    assert all(reason for reason in (*expected.reasons.values(), *outside.reasons.values()))


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.toml")), ids=lambda path: path.name)
def test_every_file_of_rules_is_read(outcomes, path):
    scope = outcomes.Scope.read(path)
    assert scope.quick
    assert all(rule.reason for rule in (*scope.files, *scope.tests, *scope.names, *scope.errors))


def test_failures_count_if_they_pass_in_the_reference(modules, monkeypatch, tmp_path):
    run = importlib.import_module("run")
    way = run.Way("plugin", "pymc.toml", reference=run.Way("recording", "pymc.toml"))
    suite = run.Suite(tmp_path, tmp_path / "ours", way)
    other = run.Suite(tmp_path, tmp_path / "theirs", way.reference)
    asked = []

    def run_file(suite, file, modules, scope, fingerprint, tests=None):
        asked.append((suite, file, tests))
        modules = importlib.import_module("outcomes")
        for test in tests:
            modules.append(
                suite.result_file(file), test=test, outcome="failed" if "both" in test else "passed"
            )

    monkeypatch.setattr(run, "run_file", run_file)
    names = ["tests/a.py::both", "tests/a.py::ours", "tests/a.py::none"]
    judged = {name: {"outcome": "passed" if "none" in name else "failed"} for name in names}
    for known in (False, False, True):
        found = run.with_reference(suite, other, {"tests/a.py": judged}, None, known)["tests/a.py"]
        assert [found[name]["outcome"] for name in names] == ["out of scope", "failed", "passed"]
    assert asked == [(other, "tests/a.py", names[:2])], "what the reference has done is not run again"
