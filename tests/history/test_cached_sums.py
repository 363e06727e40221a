"""Cached sums equal the sums of all rows, whatever was written in between."""

import re
import time
from dataclasses import replace
from datetime import timedelta
from random import Random

import pytest
from drawn import (
    A_DAY,
    START,
    add,
    assert_same,
    cached_sums,
    human,
    imported,
    standings,
    stored_sums,
    windows,
)

from witan.analytics.audits import audit
from witan.analytics.leaderboards import leaderboard
from witan.analytics.sources import HistorySource
from witan.analytics.sums import WindowSums
from witan.analytics.views import SqlEngine
from witan.core.stats.leaderboard import ALWAYS, Terms, Window
from witan.core.stats.sums import BallotSums
from witan.errors import NothingToCount
from witan.history import History
from witan.service.json_output import to_json


class TestSameSums:
    """Cached sums beside the sums of all rows."""

    @pytest.mark.parametrize(
        "seed", [0, *(pytest.param(n, marks=pytest.mark.slow) for n in (1, 2))]
    )
    def test_any_writes_keep_the_sums_equal(self, history, seed):
        """Recording, voting, forgetting and recounting, in any order, keep both equal."""
        draw = Random(seed)  # noqa: S311 - a test draws what happens
        names = add(history, draw, 25)
        for _ in range(8):
            step = draw.random()
            if step < 0.35:
                names += add(history, draw, draw.randint(1, 5))
            elif step < 0.65:
                session = draw.choice(names)
                history.vote(session, [human(history, draw, session)])
            elif step < 0.8:
                history.forget(names.pop(draw.randrange(len(names))))
            else:
                history.recount("mean_rank")
            assert_same(history, *windows(draw, 1))
        assert_same(history)

    def test_windows_at_whole_days_and_between_them(self, history):
        """Cells and parts of cells add up to a window, exact to the microsecond."""
        draw = Random(11)  # noqa: S311
        add(history, draw, 30)
        history.recount("mean_rank")
        standings(history)

        noon = START + timedelta(days=33, hours=12)
        moment = timedelta(microseconds=1)
        history.add([imported(draw, "at noon", noon)], "f", "d")
        with_it, without = Window(noon, noon + A_DAY), Window(noon + moment, noon + A_DAY)

        assert len(standings(history, with_it)) > len(standings(history, without))
        assert_same(history, with_it, without, Window(None, noon), Window(None, noon + moment))
        assert_same(history, Window(noon, noon + timedelta(minutes=1)), *windows(draw, 4))

    def test_clock_may_go_backward(self, history):
        """A late session with an earlier time, before 1970 too, is in its cell."""
        draw = Random(3)  # noqa: S311
        for number, day in enumerate((0, -1, -400, -30_000, -30_001, -700_000, 2_900_000)):
            at = START + timedelta(days=day, seconds=-1)
            history.add([imported(draw, f"s{number}", at)], "f", f"d{number}")

            assert_same(history, ALWAYS, Window(at, at + A_DAY), Window(None, START - A_DAY))

    def test_empty_history_has_no_sums(self, history):
        """There is nothing to cache, and no row is stored."""
        assert_same(history, ALWAYS, Window(START, START + A_DAY))
        assert not stored_sums(history)


class TestReading:
    """Which rows are read."""

    def test_unchanged_bucket_is_not_read_again(self, history):
        """A cached session counts even with its rows deleted, until its bucket changes."""
        draw = Random(5)  # noqa: S311
        add(history, draw, 30, days=3)
        before = standings(history)
        history.database.execute("DELETE FROM standings")

        assert standings(history) == before

        history.add([imported(draw, "s", START)], "f", "d")
        changed = standings(history)

        assert standings(history) == changed
        rest = {key for key in before if key[0] != history_bucket(history, "s")}
        assert rest
        assert {key: changed[key] for key in rest} == {key: before[key] for key in rest}

    def test_sums_read_during_a_write_are_stored_without_what_changed(self, place):
        """A server whose sessions never pause would else sum all rows for every leaderboard."""
        draw = Random(6)  # noqa: S311
        with History.open(place) as history, History.open(place) as other:
            if history.journal == "truncate":
                pytest.skip("a reader blocks writers")
            add(history, draw, 30, days=3)
            source = HistorySource(history)
            with source.moment():
                source.sums(ALWAYS).table(BallotSums)
                other.add([imported(draw, "s", START)], "f", "d")
            assert stored_sums(history)
            assert_same(history)

    def test_audit_uses_the_cache(self, history):
        """With the rows deleted, the numbers would be the same."""
        add(history, Random(1), 20)  # noqa: S311
        first = audit(history).lines
        history.database.execute("DELETE FROM ballots")

        assert audit(history).lines == first

    def test_new_alias_applies_to_cached_sums(self, history):
        """Sums are stored under old names; models are renamed afterwards."""
        add(history, Random(8), 20)  # noqa: S311
        before = audit(history).lines
        renamed = audit(history, aliases={"a": "b"}).lines
        history.database.execute("DELETE FROM cached_sums")

        assert renamed == audit(history, aliases={"a": "b"}).lines
        assert renamed != before
        assert audit(history).lines == before

    def test_sessions_to_count_under_a_rule_are_known(self, history):
        """Sessions that a rule cannot count are not among them."""
        draw = Random(15)  # noqa: S311

        def missing(rule):
            return cached_sums(history).count_uncounted(rule)

        add(history, draw, 20)
        assert missing("borda") == 0
        assert missing("mean_rank") == history.recount("mean_rank") > 0
        assert missing("mean_rank") == 0
        names = add(history, draw, 7)
        history.vote(names[0], [human(history, draw, names[0])])
        assert 0 < missing("mean_rank") < missing("range")
        # A rule that wants grades leaves no standing, and is not asked again.
        assert missing("range") == history.recount("range")
        assert missing("range") == 0


def history_bucket(history, session):
    sql = "SELECT bucket FROM sessions WHERE session = :session"
    return history.database.rows(sql, {"session": session})[0][0]


@pytest.mark.parametrize("window", [ALWAYS, Window(START + A_DAY, None, "coding")])
@pytest.mark.parametrize("kind", [0, 1])
def test_matches_read_in_spans_are_complete(history, window, kind):
    """No match is lost or doubled between spans, wherever these end."""
    draw = Random(5)  # noqa: S311
    names = add(history, draw, 30, days=3)
    noon = START + timedelta(hours=36)
    history.add([imported(draw, f"noon {k}", noon, "coding") for k in range(7)], "at noon", "n")
    for session in [*names[:5], "noon 3"]:
        history.vote(session, [human(history, draw, session)])
    expected = list(WindowSums(SqlEngine(history.database), window).matches(human=kind))

    assert expected
    for size in (1, 2, 3, 7, 8, 37):
        engine = SqlEngine(history.database, sessions_at_once=size)
        assert list(WindowSums(engine, window).matches(human=kind)) == expected


READ_ONLY = {
    "sqlite": "PRAGMA query_only = ON",
    "postgresql": "SET default_transaction_read_only = on",
}


class TestObstacles:
    """Cases in which sums are not stored."""

    def test_read_only_history_is_summed(self, place):
        """It is summed without a message, and nothing is changed."""
        draw = Random(8)  # noqa: S311
        with History.open(place) as history:
            add(history, draw, 20)
            standings(history)
            add(history, draw, 20)
            before = stored_sums(history)
            history.database.execute(READ_ONLY[history.database.dialect])

            assert_same(history, ALWAYS, *windows(draw, 2))
            assert leaderboard(history).lines
            assert stored_sums(history) == before

    def test_locked_history_is_summed(self, file):
        """A leaderboard does not wait for an import to end."""
        with History.open(file) as history, History.open(file) as other:
            add(history, Random(9), 10)  # noqa: S311
            if history.journal == "wal":
                with other.database.transaction():
                    other.database.execute("UPDATE sessions SET question = 'Why?'")
                    began = time.monotonic()
                    assert standings(history)
                    assert time.monotonic() - began < 20
                    assert not stored_sums(history)
            assert standings(history)
            assert stored_sums(history)

    def test_damaged_sums_are_recomputed(self, history):
        """Damaged sums are neither an error nor a number: the rows are read again."""
        draw = Random(12)  # noqa: S311
        add(history, draw, 30)
        for body in (b"", b"nothing", b"x\x9c\x03\x00\x00\x00\x00\x01"):
            history.database.execute("DELETE FROM cached_sums")
            board = leaderboard(history)
            history.database.execute("UPDATE cached_sums SET body = :body", {"body": body})

            assert leaderboard(history) == board
            damaged = "SELECT span FROM cached_sums WHERE body = :body"
            assert history.database.rows(damaged, {"body": body}) == []
            assert_same(history, ALWAYS, *windows(draw, 1))

    def test_sums_of_a_failed_read_are_not_stored_later(self, history):
        """Where the caller fails before the end, the same source stores nothing of it."""
        add(history, Random(7), 6)  # noqa: S311
        source = HistorySource(history)

        def fails():
            with source.moment():
                source.sums(ALWAYS).table(BallotSums)
                raise NothingToCount("nothing")

        with pytest.raises(NothingToCount):
            fails()
        with source.moment():
            pass

        assert not stored_sums(history)


class TestForgetting:
    """Cached sums of a forgotten session."""

    def test_sums_are_deleted_with_the_session(self, history):
        """Every sum that includes it goes in the same transaction."""
        draw = Random(14)  # noqa: S311
        history.add([imported(draw, "s1", START)], "f", "d")
        add(history, draw, 5)
        assert_same(history)
        of_span = {row for row in stored_sums(history) if row[0] == span_of(START)}
        assert of_span

        history.forget("s1")

        assert not of_span & stored_sums(history)
        assert_same(history)

    def test_session_forgotten_while_being_summed_is_not_stored(self, place):
        """Sums from before the deletion are not stored."""
        with History.open(place) as history, History.open(place) as other:
            [name] = add(history, Random(24), 1)  # noqa: S311
            source = HistorySource(history)
            with source.moment():
                assert source.sums(ALWAYS).table(BallotSums).ballots.sum()
                if history.journal != "truncate":
                    other.forget(name)
            if history.journal == "truncate":
                history.forget(name)

            assert not stored_sums(history)
            assert_same(history)


NUMBER = re.compile(r"-?\d+\.?\d*(?:e-?\d+)?")


class TestFreshAudits:
    """Audits and leaderboards by cached sums beside those of a history without any.

    They are equal to the last bit in SQLite. PostgreSQL adds rows in any order that suits it.
    """

    SETTINGS = (
        {},
        {"aliases": {"a": "b"}},
        {"families": {"house": ("b", "c")}, "level": 0.9},
        {"window": Window(START + timedelta(days=9, hours=5), START + timedelta(days=41))},
    )

    def graded(self, draw, name):
        """A session as `imported`, whose ballots also grade."""
        at = START + timedelta(seconds=draw.randrange(60 * 86_400))
        one = imported(draw, name, at)
        cast = [
            replace(each, grades={name: draw.uniform(1, 10) for name in each.candidate_names()})
            for each in one.ballots
        ]
        return replace(one, ballots=tuple(cast))

    def report(self, history, settings):
        """An audit, and a leaderboard of the same window, as JSON."""
        terms = Terms(window=settings.get("window", ALWAYS), min_sessions=1)
        board = leaderboard(history, terms, aliases=settings.get("aliases", {}))
        return to_json(audit(history, **settings)) + to_json(board)

    def check(self, history, settings):
        reused = self.report(history, settings)
        with history.database.transaction():
            history.database.execute("DELETE FROM cached_sums")
        fresh = self.report(history, settings)
        if history.database.dialect == "sqlite":
            assert reused == fresh
        else:
            assert NUMBER.sub("#", reused) == NUMBER.sub("#", fresh)
            numbers, expected = (
                [float(number) for number in NUMBER.findall(text)] for text in (reused, fresh)
            )
            assert numbers == pytest.approx(expected, rel=1e-9, abs=1e-9)

    def test_audits_stay_equal_after_a_change_of_each_kind(self, history):
        """A session, a vote, a deletion or another rule changes both alike, each by a setting."""
        draw = Random(4)  # noqa: S311
        history.add([self.graded(draw, f"q{number}") for number in range(20)], "file", "digest")
        for settings in self.SETTINGS:
            audit(history, **settings)
        of_families, of_aliases, plain, of_a_window = (self.SETTINGS[n] for n in (2, 1, 0, 3))

        history.add([self.graded(draw, "more")], "f", "d")
        self.check(history, of_families)
        history.vote("q3", [human(history, draw, "q3")])
        self.check(history, of_aliases)
        history.forget("q7")
        self.check(history, of_a_window)
        history.recount("mean_rank")
        self.check(history, plain)

    @pytest.mark.slow
    @pytest.mark.parametrize("seed", [0, 1, 2])
    def test_audits_stay_equal_after_any_change(self, history, seed):
        """A session, a vote, a deletion, another rule or setting change both alike."""
        draw = Random(seed)  # noqa: S311
        names = [f"q{number}" for number in range(30)]
        history.add([self.graded(draw, name) for name in names], "file", "digest")
        for settings in self.SETTINGS:
            audit(history, **settings)
        for number, settings in enumerate(self.SETTINGS):
            history.add([self.graded(draw, f"more {number}")], f"f{number}", f"d{number}")
            self.check(history, settings)
            session = draw.choice(names)
            history.vote(session, [human(history, draw, session)])
            self.check(history, settings)
            history.forget(names.pop(draw.randrange(len(names))))
            self.check(history, settings)
        history.recount("mean_rank")
        self.check(history, {})


def span_of(at):
    return (at - START.replace(year=1970, month=1, day=1)).days // 8


def test_concurrent_write_is_in_the_next_sums(place):
    """Sums taken before the write are not used after it."""
    draw = Random(2)  # noqa: S311
    with History.open(place) as history, History.open(place) as other:
        add(history, draw, 5)
        source = HistorySource(history)
        with source.moment():
            source.sums(ALWAYS).table(BallotSums)
            if history.journal != "truncate":
                add(other, draw, 5, days=2, prefix="other")
        assert_same(history)
