"""Attributes are computed once, and fields set by slots are those of plain dataclasses."""

import copy
import pickle
from dataclasses import FrozenInstanceError, astuple, dataclass, field, replace
from inspect import signature
from threading import Event, Thread

import pytest

from witan.core.attributes import cached_property, set_by_slots
from witan.core.ballot import Ballot

SECONDS = 30


class Waiting:
    """An object whose attribute is ready after a signal."""

    def __init__(self) -> None:
        self.begun, self.may_end, self.n_computed = Event(), Event(), 0

    @cached_property
    def value(self) -> int:
        """A number."""
        self.begun.set()
        assert self.may_end.wait(SECONDS)
        self.n_computed += 1
        return self.n_computed


def test_an_attribute_is_computed_once() -> None:
    one = Waiting()
    one.may_end.set()
    assert (one.value, one.value, one.n_computed) == (1, 1, 1)


def test_an_attribute_does_not_wait_for_that_of_another_object() -> None:
    slow, quick = Waiting(), Waiting()
    quick.may_end.set()
    computing = Thread(target=lambda: slow.value)
    computing.start()
    assert slow.begun.wait(SECONDS)
    reading = Thread(target=lambda: quick.value, daemon=True)
    reading.start()
    reading.join(SECONDS / 3)
    is_ready = quick.n_computed == 1
    slow.may_end.set()
    computing.join(SECONDS)
    assert is_ready


@dataclass(frozen=True, slots=True)
class Plain:
    """A dataclass as Python makes it."""

    name: str
    tags: list[str] = field(default_factory=list)
    weight: float = 1.0

    def __post_init__(self) -> None:
        if not self.name:
            raise ValueError


@set_by_slots
@dataclass(frozen=True, slots=True)
class Quick:
    """The same, set by its slots."""

    name: str
    tags: list[str] = field(default_factory=list)
    weight: float = 1.0

    def __post_init__(self) -> None:
        if not self.name:
            raise ValueError


@dataclass(frozen=True, slots=True, kw_only=True)
class Base:
    """A dataclass to inherit from, all of whose fields have to be named."""

    size: int = 1


@set_by_slots
@dataclass(frozen=True, slots=True, kw_only=True)
class Named(Base):
    """A heir, set by its slots and those it inherits."""

    name: str
    weight: float = 1.0


@set_by_slots
@dataclass(frozen=True, slots=True)
class Likely:
    """A dataclass whose fields are called as names that a generated `__init__` may well use."""

    self: int
    set: int
    a: int
    set_a: int
    a_set: int
    _missing: int = 5
    missing: int = 6
    a_default: int = 7
    default_missing: int = 8
    tags: list[str] = field(default_factory=list)
    make_tags: int = 10
    tags_make: int = 11


class TestSlots:
    """Properties that `set_by_slots` preserves."""

    @pytest.mark.parametrize("arguments", [("a",), ("a", ["x"]), ("a", ["x"], 2.0)])
    def test_fields_are_those_of_a_plain_dataclass(self, arguments):
        """Arguments and defaults set the same fields."""
        plain, quick = Plain(*arguments), Quick(*arguments)

        assert (quick.name, quick.tags, quick.weight) == (plain.name, plain.tags, plain.weight)
        assert quick == Quick(*arguments) != Quick("b")

    def test_factories_make_a_new_value_each_time(self):
        """Two objects never share a default list."""
        assert Quick("a").tags is not Quick("a").tags

    def test_fields_may_have_any_name(self):
        """None hides a setter, a factory, a default or the object itself."""
        likely = Likely(0, 1, 2, 3, 4)

        assert astuple(likely) == (0, 1, 2, 3, 4, 5, 6, 7, 8, [], 10, 11)
        assert replace(likely, self=9, tags=["x"]) == Likely(9, 1, 2, 3, 4, tags=["x"])

    def test_the_object_stays_frozen_and_checked(self):
        """No field can be set later, and validation still applies."""
        with pytest.raises(FrozenInstanceError):
            Quick("a").name = "b"
        with pytest.raises(ValueError, match=r"^$"):
            Quick("")
        with pytest.raises(TypeError, match="missing 1 required positional argument: 'name'"):
            Quick()

    def test_copies_are_equal(self):
        """Pickle, `copy` and `replace` give equal objects."""
        quick = Quick("a", ["x"])

        assert pickle.loads(pickle.dumps(quick)) == copy.copy(quick) == replace(quick)  # noqa: S301

    def test_parameters_have_names_and_types(self):
        """A signature names the parameters of the plain class, with their types."""
        expected = {name: of.annotation for name, of in signature(Plain).parameters.items()}

        assert {n: of.annotation for n, of in signature(Quick).parameters.items()} == expected

    def test_a_signature_reads_as_that_of_a_plain_dataclass(self):
        """It shows the same defaults, one that a factory makes as ``<factory>``."""
        assert str(signature(Quick)) == str(signature(Plain))

    def test_inherited_and_named_fields_are_set(self):
        """Fields of a base are set, and fields that have to be named cannot be given otherwise."""
        named = Named(name="a", size=2)

        assert (named.size, named.name, named.weight) == (2, "a", 1.0)
        assert replace(named, name="b") == Named(size=2, name="b") != named
        with pytest.raises(TypeError, match="takes 1 positional argument but 2 were given"):
            Named("a")


def test_a_signature_words_the_bound_of_a_field():
    """Help shows what a value may be, and no address in memory."""
    assert "Bound(expected='a number, 0 or more')" in str(signature(Ballot))
