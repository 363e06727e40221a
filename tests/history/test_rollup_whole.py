"""What an audit of all time summed is kept, and never outlives a write."""

from random import Random

import numpy as np
import pytest
from rolled import START, add, human, imported

from witan.analytics.engines import Reductions, SqlEngine
from witan.analytics.reports import HistorySource, audit
from witan.analytics.rollup import roll_up
from witan.core.sums import BallotSums, LengthSums, ReviewerSums
from witan.core.window import ALWAYS, Window
from witan.errors import NothingToCount
from witan.history import History

KINDS = (BallotSums, LengthSums, ReviewerSums)


def asked(history, window=ALWAYS):
    """What an audit gets, by whichever way."""
    source = HistorySource(history)
    with source.moment():
        return source.reductions(window).tables(*KINDS)


def in_order(table):
    """The columns of a table, its rows in an order that no engine decides."""
    columns = [getattr(table, name) for name in table.__slots__]
    order = np.lexsort(columns[::-1])
    return [column[order] for column in columns]


def assert_true(history, window=ALWAYS):
    """Assert that an audit gets what the rows give, also where it takes what was kept."""
    rows = Reductions(SqlEngine(history.database), window).tables(*KINDS)
    for found in (asked(history, window), asked(history, window)):
        for kind in KINDS:
            for mine, theirs in zip(in_order(found[kind]), in_order(rows[kind]), strict=True):
                np.testing.assert_allclose(mine, theirs, rtol=1e-12)


def held(history):
    """What is kept: category and tables, and how many bytes."""
    return history.database.rows("SELECT asked, LENGTH(body) FROM wholes WHERE asked <> ''")


@pytest.mark.parametrize("seed", range(3))
def test_after_every_kind_of_write_the_audit_is_that_of_the_rows(history, seed):
    """Adding, voting and forgetting, in any order, with the roll-up or before it."""
    draw = Random(seed)  # noqa: S311 - a test draws what happens
    names = add(history, draw, 12)
    for _ in range(12):
        step = draw.random()
        if step < 0.4:
            names += add(history, draw, draw.randint(1, 3))
        elif step < 0.7:
            session = draw.choice(names)
            history.vote(session, [human(history, draw, session)])
        else:
            history.forget(names.pop(draw.randrange(len(names))))
        assert_true(history, draw.choice((ALWAYS, Window(category="coding"))))
    assert held(history)


def test_what_is_kept_is_what_is_read(history):
    """So that the rows need not be: were they gone, the numbers would be the same."""
    add(history, Random(1), 20)  # noqa: S311
    first = audit(history).audit
    history.database.execute("DELETE FROM ballots")

    assert audit(history).audit == first


def test_a_write_while_it_is_summed_is_in_the_next_audit(place):
    """Whether or not it was rolled up before the sums were kept."""
    draw = Random(2)  # noqa: S311
    for rolled in (False, True):
        with History.open(place) as history, History.open(place) as other:
            add(history, draw, 5, prefix=f"{rolled}")
            source = HistorySource(history)
            with source.moment():
                source.reductions(ALWAYS).tables(*KINDS)
                add(other, draw, 5, prefix=f"other-{rolled}")
                if rolled:
                    asked(other)
            assert_true(history)


def test_a_session_that_is_forgotten_while_it_is_summed_is_not_written_back(place):
    """Neither before the next roll-up nor after one of somebody else."""
    draw = Random(6)  # noqa: S311
    for rolled in (False, True):
        with History.open(place) as history, History.open(place) as other:
            [name, *_] = add(other, draw, 6, prefix=f"{rolled}")
            source = HistorySource(history)
            with source.moment():
                source.reductions(ALWAYS).tables(*KINDS)
                other.forget(name)
                if rolled:
                    roll_up(other.database)

            assert not held(history)


def test_what_was_summed_in_vain_is_not_kept_later(history):
    """Where whoever asked failed before the end, the same source keeps nothing of it."""
    add(history, Random(7), 6)  # noqa: S311
    source = HistorySource(history)

    def fails():
        with source.moment():
            source.reductions(ALWAYS).tables(*KINDS)
            raise NothingToCount("nothing")

    with pytest.raises(NothingToCount):
        fails()
    with source.moment():
        pass

    assert not held(history)


def test_an_alias_that_is_new_is_in_the_audit_of_what_was_kept(history):
    """Models are called by their present names after the sums, which are kept under the old."""
    add(history, Random(8), 20)  # noqa: S311
    before = audit(history).audit
    kept = held(history)
    renamed = audit(history, aliases={"a": "b"}).audit
    assert held(history) == kept
    history.database.execute("DELETE FROM wholes WHERE asked <> ''")

    assert renamed == audit(history, aliases={"a": "b"}).audit
    assert renamed != before
    assert audit(history).audit == before


def test_a_session_that_is_forgotten_leaves_nothing_in_what_is_kept(history):
    """In the transaction that forgets it."""
    [name, *_] = add(history, Random(3), 6)  # noqa: S311
    asked(history)
    assert held(history)
    history.forget(name)

    assert not held(history)


def test_what_cannot_be_read_is_summed_again(history):
    """And kept anew."""
    add(history, Random(4), 6)  # noqa: S311
    asked(history)
    spoil = "UPDATE wholes SET body = :spoilt WHERE asked <> ''"
    history.database.execute(spoil, {"spoilt": b"spoilt"})

    assert_true(history)
    assert all(size > 100 for _, size in held(history))


def test_few_windows_are_kept_and_only_of_all_time(history):
    """By category, if sessions have it; that of all stays, whatever else is asked for."""
    draw = Random(5)  # noqa: S311
    new = [imported(draw, f"s{number}", START, f"c{number}") for number in range(20)]
    history.add(new, "file", "digest")
    asked(history)
    [everything] = held(history)
    asked(history, Window(category="what nobody asked about"))
    assert held(history) == [everything]
    for number in range(20):
        asked(history, Window(category=f"c{number}"))
    before = held(history)
    assert everything in before
    assert 1 < len(before) <= 17
    with pytest.raises(NothingToCount):
        audit(history, Window(until=history.find(limit=1)[0].at.replace(year=1999)))

    assert held(history) == before
