# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The size of the house in numbers, each of which may only become smaller.

Circles of imports and files that name an operation have tests of their own: `test_layering.py`,
`test_one_place.py`; the words by which types give up are counted in `test_types.py`.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections import Counter
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("compiler/graphc", "dialects/graphc_dialects", "runtime/graphc_runtime", "tools/graphc_tools")
COMPILER = ROOT / PACKAGES[0]
IMPORT = re.compile(r"\s*(import|from [\w.]+ import)\b")
# Folders of passes that write kernels, and of what is lowered to nests for them.
DEVICE = ("gpu", "device_code")
QUESTION = re.compile(r'^ *r?"""(?:What|Whether|How|Where|Which)\b', re.MULTILINE)
INDEX_ARITHMETIC = re.compile(r'"(?:addi|subi|muli)"')

# The most there may be, and the room below it for what others are about to land.
MOST = {
    "files of the compiler": (553, 10),
    "files of the compiler under 40 lines": (29, 5),
    "files in one folder of the compiler": (30, 2),
    "lines of code of the compiler": (80523, 1500),
    "files of device code": (25, 2),
    "lines of device code": (10753, 300),
    "docstrings that begin with a question word": (1, 5),
    "names of index arithmetic as strings": (0, 0),
}


def code_lines(text: str) -> int:
    """Lines without docstrings, comments, imports and blank ones.

    Told line by line, since syntax trees of the whole house take seconds. A docstring begins its line, after
    a colon or nothing; an import ends where its parenthesis does.
    """
    found, end, counts, before = 0, "", True, ""
    for line in map(str.strip, text.split("\n")):
        if end:
            end = "" if end in line else end
        else:
            is_docstring = line.startswith(('"""', 'r"""')) and (not before or before.endswith(":"))
            is_import = IMPORT.match(line) is not None
            counts = not is_docstring and not is_import and bool(line) and not line.startswith("#")
            end = (
                '"""'
                if line.count('"""') % 2
                else ")"
                if is_import and "(" in line and ")" not in line
                else ""
            )
            before = line if counts else before
        found += counts and bool(line) and not line.startswith("#")
    return found


@cache
def counts() -> dict[str, int]:
    paths = [path for package in PACKAGES for path in (ROOT / package).rglob("*.py")]
    texts = {path: path.read_text(encoding="utf-8") for path in paths}
    compiler = {path: text for path, text in texts.items() if path.is_relative_to(COMPILER)}
    device = [text for path, text in compiler.items() if path.parent.name in DEVICE]
    everything = "\n".join(texts.values())
    return {
        "files of the compiler": len(compiler),
        "files of the compiler under 40 lines": sum(text.count("\n") < 40 for text in compiler.values()),
        "files in one folder of the compiler": max(Counter(path.parent for path in compiler).values()),
        "lines of code of the compiler": sum(map(code_lines, compiler.values())),
        "files of device code": len(device),
        "lines of device code": sum(text.count("\n") for text in device),
        "docstrings that begin with a question word": len(QUESTION.findall(everything)),
        "names of index arithmetic as strings": len(INDEX_ARITHMETIC.findall(everything)),
    }


@pytest.mark.parametrize("name", MOST)
def test_only_fewer(name):
    most, room = MOST[name]
    found = counts()[name]
    assert found <= most, f"{found} {name}: at most {most}"
    assert found >= most - room, f"lower the number of {name} to {found}"


def test_lines_of_code():
    lines = ['"""Doc."""', "import os", "", "# why", "def f():", '    """A', "    doc", '    """']
    lines += [
        "    from os import (  # why",
        "        path,",
        "    )",
        '    return """',
        "    text",
        '    """',
    ]
    assert code_lines("\n".join(lines)) == 4


# Calls from one file of the packages into another while a function is compiled, the compiler being loaded.
CHANGES_OF_FILE = """
import sys, threading
import graphc, graphc.tensor as pt

x = pt.dvector("x")
first, second, third = pt.exp(x).sum(), pt.exp(x).sum(), pt.tanh(x).sum()
changes, last = 0, ""
def watch(frame, event, argument):
    global changes, last
    name = frame.f_code.co_filename
    if event == "call" and name.startswith(tuple(sys.argv[1:])):
        changes, last = changes + (name != last), name

graphc.function([x], first)
graphc.function([x], second)
threading.setprofile(watch)
sys.setprofile(watch)
graphc.function([x], third)
sys.setprofile(None)
print(changes)
"""
MOST_CHANGES = 995


def test_changes_of_file_in_a_compilation():
    kept = {name: value for name, value in os.environ.items() if not name.startswith("GRAPHC_")}
    kept |= {"GRAPHC_CACHE_DIR": "", "GRAPHC_THREADS": "1"}
    kept["PYTHONPATH"] = os.pathsep.join(str(ROOT / package.split("/")[0]) for package in PACKAGES)
    command = [sys.executable, "-c", CHANGES_OF_FILE, *(f"{ROOT / package}/" for package in PACKAGES)]
    done = subprocess.run(command, env=kept, capture_output=True, text=True, check=True)
    found = int(done.stdout)
    assert found <= MOST_CHANGES
