"""What a history may be asked for, and what it says of anything else."""

from datetime import UTC, datetime

import pytest

from histories import told
from witan.errors import HistoryError, InvalidParameter
from witan.history import History

NAIVE = datetime(2026, 11, 21)


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        ({"limit": 10**20}, "limit cannot be 100000000000000000000; expected a whole number"),
        ({"limit": -1}, "limit cannot be -1; expected a whole number from 0"),
        ({"limit": True}, "limit cannot be True; expected a whole number"),
        ({"limit": 1.5}, "limit cannot be 1.5; expected a whole number"),
        ({"since": "x"}, "since cannot be 'x'; expected a datetime with its zone"),
        ({"until": NAIVE}, "expected a datetime with its zone"),
        ({"simulated": "yes"}, "simulated cannot be 'yes'; expected True, False or None"),
        ({"status": "foo"}, "status cannot be 'foo'; expected one of complete, degraded"),
        ({"category": 5}, "category cannot be 5; expected a text"),
        ({"parent": 5}, "parent cannot be 5; expected a text"),
        ({"text": 5}, "text cannot be 5; expected a text"),
    ],
)
def test_what_cannot_be_searched_by_is_said(history, asked, expected):
    """The value, and what was expected."""
    with pytest.raises(InvalidParameter) as refused:
        history.find(**asked)

    assert expected in str(refused.value)


@pytest.mark.parametrize("at", ["x", NAIVE, None, 5])
@pytest.mark.parametrize("forget", ["forget_before", "forget_added_before"])
def test_what_is_no_time_forgets_nothing(history, forget, at):
    """Only a time with its zone is one to forget before."""
    with pytest.raises(InvalidParameter, match="expected a datetime with its zone"):
        getattr(history, forget)(at)


@pytest.mark.parametrize(
    "ask", ["session", "resolve_name", "ballots", "summary", "forget", "export"]
)
@pytest.mark.parametrize("name", [5, None])
def test_what_is_no_name_is_said(history, ask, name):
    """A session goes by a text."""
    with pytest.raises(InvalidParameter, match="expected the name of a session"):
        getattr(history, ask)(name)


def test_a_history_that_was_closed_says_so(place):
    """It is not opened again behind the caller's back, on a server neither."""
    history = History.open(place)
    history.close()
    history.close()

    for ask in (history.find, history.describe, history.learn):
        with pytest.raises(HistoryError, match="was closed; open the history again"):
            ask()


@pytest.mark.parametrize("words", ["GRÖSSE", "größe", "Grösse", "İSTANBUL", "ΣΊΣΥΦΟΣ", "σίσυφος"])
def test_letters_of_any_case_are_found_alike(history, words):
    """What differs by case alone is the same word, on each database."""
    question = "Welche Größe hat İstanbul, Σίσυφος?"
    with history.recording() as recording:
        for event in told("s1", question=question, at=datetime(2026, 11, 21, tzinfo=UTC)):
            recording(event)

    assert [found.session for found in history.find(words)] == ["s1"]
