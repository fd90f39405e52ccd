# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Records are dataclasses whose initialisation is compiled with their eighth object."""

from __future__ import annotations

import builtins
import copy
import inspect
import pickle
import subprocess
import sys
import threading
from dataclasses import FrozenInstanceError, dataclass, field, fields, is_dataclass, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphc_runtime.record import record

exec_ = exec


@record(frozen=True)
class Pair:
    a: int
    b: tuple[int, ...] = ()


@dataclass(frozen=True)
class Plain:
    a: int
    b: tuple[int, ...] = ()


@given(st.integers(), st.lists(st.integers()).map(tuple))
def test_records_are_what_dataclasses_are(a, b):
    made, plain = Pair(a, b), Plain(a, b)
    assert repr(made) == repr(plain).replace("Plain", "Pair") and hash(made) == hash(plain)
    assert made == Pair(a, b) and made != plain and made != Pair(a + 1, b)
    assert replace(made, a=0) == Pair(0, b)
    assert pickle.loads(pickle.dumps(made)) == made == copy.deepcopy(made)
    assert [f.name for f in fields(made)] == ["a", "b"]
    with pytest.raises(FrozenInstanceError):
        made.a = 1


def test_nothing_is_compiled_before_the_eighth_object(monkeypatch):
    compiled = []
    monkeypatch.setattr(builtins, "exec", lambda *arguments: compiled.append(arguments) or exec_(*arguments))

    @record(frozen=True)
    class Later:
        a: int = 0
        b: list[int] = field(default_factory=list)

    assert is_dataclass(Later) and not compiled
    first = Later()
    first.b.append(1)
    assert Later(1) == Later(1) != first and repr(first).endswith("Later(a=0, b=[1])")
    assert [Later(i) for i in range(4)][3].a == 3 and not compiled
    assert [Later(i, b=[i]) for i in range(4)][3] == Later(3, [3])
    assert len(compiled) == 1


def test_wrong_arguments_are_refused_by_what_is_compiled():
    def made():
        @record()
        class Wanted:
            a: int
            b: int = field(default=1, kw_only=True)

        return Wanted

    for arguments, named, message in (
        ((), {}, "missing 1 required positional argument: 'a'"),
        ((1, 2), {}, "takes 2 positional arguments but 3 were given"),
        ((1,), {"a": 2}, "multiple values for argument 'a'"),
        ((1,), {"c": 2}, "unexpected keyword argument 'c'"),
    ):
        with pytest.raises(TypeError, match=message):
            made()(*arguments, **named)


def test_fields_may_be_named_made_or_left_out():
    @record(kw_only=True)
    class Base:
        name: str
        rows: list[int] = field(default_factory=list, repr=False)
        note: str = field(default="", init=False, compare=False)
        found: list[int] = field(default_factory=list, init=False)

    @record()
    class Derived(Base):
        a: int

        def __post_init__(self):
            self.twice = 2 * self.a

    for _ in range(10):  # before and after it is compiled
        made = Derived(3, name="x")
        assert (made.twice, made.rows, made.note, made.found) == (6, [], "", [])
        assert made.rows is not made.found
    assert repr(made).endswith("Derived(name='x', note='', found=[], a=3)")
    made.note = "other"
    assert made == Derived(3, name="x") != Derived(3, name="x", rows=[1])
    assert str(inspect.signature(Derived)).startswith("(a, *, name, rows=")
    for wrong in (lambda: Derived(3), lambda: Derived(3, "x"), lambda: Derived(a=1, name="x", found=[])):
        with pytest.raises(TypeError):
            wrong()
    with pytest.raises(TypeError, match="unhashable"):
        hash(made)


def test_fixed_records_hash_what_they_compare_and_take_other_attributes_in_subclasses():
    @record(frozen=True)
    class Fixed:
        a: int
        b: list[int] = field(default_factory=list, compare=False)
        c: int = field(default=0, hash=False)

        def __repr__(self):
            return "fixed"

    class Below(Fixed):
        pass

    assert hash(Fixed(1, [2], 3)) == hash(Fixed(1)) and Fixed(1, [2]) == Fixed(1) != Fixed(1, c=3)
    assert Fixed(1) != Below(1) and repr(Fixed(1)) == "fixed"
    below = Below(1)
    below.other = 2
    for change in (
        lambda: setattr(below, "a", 2),
        lambda: delattr(below, "a"),
        lambda: delattr(Fixed(1), "d"),
    ):
        with pytest.raises(FrozenInstanceError):
            change()


def test_no_record_is_given_its_signature_as_documentation(monkeypatch):
    """Its text takes longer than all else."""
    monkeypatch.setattr(inspect, "signature", None)

    @record()
    class Documented:
        """Has one field."""

        a: int = 0

    assert Documented(1).a == 1 and Documented.__doc__ == "Has one field."

    @record()
    class Undocumented:
        a: int = 0

    assert Undocumented.__doc__ is None


def test_subclasses_have_the_fields_of_their_base():
    @record()
    class Base:
        a: int

    @record()
    class Derived(Base):
        b: int = 2

    assert repr(Derived(1)).endswith("Derived(a=1, b=2)")
    assert Base(3) == Base(3)


def test_pickles_open_in_a_process_that_made_no_object():
    code = (
        "import pickle, sys; value = pickle.loads(bytes.fromhex(sys.argv[1])); "
        "print(value, value == type(value)(value.a, value.b))"
    )
    sent = pickle.dumps(Pair(1, (2,))).hex()
    done = subprocess.run(
        [sys.executable, "-c", f"import sys; sys.path.insert(0, {str(sys.path[0])!r}); {code}", sent],
        capture_output=True, text=True, env={"PYTHONPATH": ":".join(sys.path)}, check=True,
    )  # fmt: skip
    assert done.stdout == "Pair(a=1, b=(2,)) True\n"


def test_threads_may_make_the_first_objects_at_once():
    for _ in range(50):

        @record(frozen=True)
        class Shared:
            a: int

        found = []
        start = threading.Barrier(4)

        def first(made=Shared, found=found, start=start):
            start.wait()
            found.append(made(1).a)

        threads = [threading.Thread(target=first) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert found == [1] * 4


def _interrupted(make, line):
    """Calls ``make`` and interrupts it before the line of this count; whether it came so far."""
    passed = 0

    def step(frame, event, _argument):
        nonlocal passed
        if event == "line" and frame.f_code.co_filename.endswith(("record.py", "dataclasses.py")):
            passed += 1
            if passed == line:
                raise KeyboardInterrupt
        return step

    before = sys.gettrace()
    sys.settrace(step)
    try:
        make()
    except KeyboardInterrupt:
        return True
    finally:
        sys.settrace(before)
    return False


@pytest.mark.parametrize("how", ["object", "subclass"])
def test_an_interrupt_anywhere_leaves_a_class_whose_next_object_is_whole(how):
    line, came = 0, True
    while came:
        # Most lines are those of dataclasses, which looks at every field: more steps where there are many.
        line += 1 if line < 60 else 7

        @record(frozen=True)
        class Cut:
            a: int
            b: list[int] = field(default_factory=list)

        if how == "object":
            came = _interrupted(lambda made=Cut: made(1), line)
        else:
            came = _interrupted(lambda made=Cut: record(frozen=True)(type("Below", (made,), {})), line)
        made = Cut(1)
        assert made == Cut(1, []) and repr(made).endswith("Cut(a=1, b=[])")
        assert [f.name for f in fields(Cut)] == ["a", "b"] and not hasattr(Cut, "b")
        with pytest.raises(FrozenInstanceError):
            made.a = 2

        @record(frozen=True)
        class Derived(Cut):
            c: int = 3

        assert Derived(1, [2]) == Derived(1, [2], 3)
    assert line > (20 if how == "object" else 60)


def test_a_class_with_its_own_initialisation_is_refused():
    with pytest.raises(TypeError, match="defines __init__"):

        @record()
        class Own:
            def __init__(self):
                pass
