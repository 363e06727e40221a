"""Attributes are computed once, and signatures word the bounds of fields."""

from inspect import signature
from threading import Event, Thread

from witan.core.attributes import cached_property
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


def test_a_signature_words_the_bound_of_a_field():
    """Help shows what a value may be, and no address in memory."""
    assert "Bound(expected='a number, 0 or more')" in str(signature(Ballot))
