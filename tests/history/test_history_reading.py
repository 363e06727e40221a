"""What a history holds, listed, searched and read back."""

from dataclasses import replace
from datetime import timedelta

import numpy as np
import pytest

from elections import ballots
from histories import ASKED, told
from witan.core.ballot import Ballot
from witan.deliberation.events import BallotCast, GateVerdict, OutcomeChanged
from witan.deliberation.record import event_to_json
from witan.deliberation.session import Session
from witan.errors import HistoryError, UnknownName
from witan.history import Imported, Search
from witan.history.database import percent_style
from witan.history.rows import to_microseconds
from witan.history.schema import bucket_of, code_of


def keep(history, *names, **fields):
    for name in names:
        with history.recording() as recording:
            for event in told(name, **fields):
                recording(event)


class TestFinding:
    """A list of sessions."""

    def test_the_latest_comes_first_and_one_time_goes_by_name(self, history):
        """Sessions are listed by time, backwards; of the same time by name."""
        keep(history, "b", "a")
        keep(history, "later", at=ASKED + timedelta(hours=1))

        assert [found.session for found in history.find()] == ["later", "a", "b"]

    def test_what_came_in_as_ballots_stands_by_its_time_like_all_others(self, history):
        """In a list of all of them and in the beginning of one."""
        keep(history, "s1")
        ballots = (Ballot("ada", (("x",), ("y",))),)
        later = [Imported(name, ASKED + timedelta(days=1), ballots=ballots) for name in ("b", "a")]
        earlier = Imported("old", ASKED - timedelta(days=1), ballots=ballots)
        history.add([*later, earlier], "votes.jsonl", "digest")

        assert [found.session for found in history.find()] == ["a", "b", "s1", "old"]
        assert [found.session for found in history.find(limit=2)] == ["a", "b"]
        assert [found.held for found in history.find()] == [False, False, True, False]
        assert [found.imported for found in history.find()] == [True, True, False, True]

    def test_a_record_that_came_in_from_a_file_was_held_all_the_same(self, history):
        """It has a record, and still says that it was imported."""
        record = Session.of(told("s1"))
        later = Imported("b", ASKED + timedelta(days=1), ballots=(Ballot("ada", (("x",), ("y",))),))
        history.add([Imported("s1", session_record=record), later], "sessions.jsonl", "digest")

        found = history.find()
        assert [(f.session, f.held, f.imported) for f in found] == [
            ("b", False, True),
            ("s1", True, True),
        ]

    def test_page_after_page_each_session_stands_once(self, history):
        """In the order of the list, however many are of one time."""
        keep(history, "c", "a", "b")
        cast = (Ballot("ada", (("x",), ("y",))),)
        brought = [Imported(f"m{n}", ASKED, ballots=cast) for n in range(7)]
        history.add([*brought, Imported("old", ASKED - timedelta(days=1), ballots=cast)], "f", "d")
        whole = [found.session for found in history.find()]

        for size in (1, 2, 3, 11):
            search = Search(until=ASKED + timedelta(days=1))
            found, place = history.page(search, size)
            seen = [each.session for each in found]
            while place is not None:
                found, place = history.page(search, size, place)
                assert len(found) <= size
                seen += [each.session for each in found]
            assert seen == whole
        assert len(whole) == 11

    def test_a_line_says_what_there_is_of_a_session(self, history):
        """Time, status, question, rule, leader and cost stand in its line."""
        keep(history, "s1", category="coding")

        [found] = history.find()

        outcome = Session.of(told("s1")).outcome
        assert (found.at, found.status, found.category) == (ASKED, "complete", "coding")
        assert (found.question, found.rule) == ("Which of the five?", "borda")
        assert (found.cost_usd, found.source, found.simulated) == (0.11, "council", False)
        leaders = [line.candidate for line in outcome.standings if line.rank == 1]
        assert found.leader == (f"test:{leaders[0]}" if len(leaders) == 1 else None)

    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            ("ÉCLAIR", ["s1"]),
            ("the éclair", ["s1"]),
            ("100%", ["s2"]),
            ("1_0", []),
            ("it's", ["s2"]),
            ("éclair 100%", []),
            (None, ["s1", "s2"]),
        ],
    )
    def test_it_is_searched_by_words(self, history, text, expected):
        """Every word has to stand in the question or the final answer, in any case, literally."""
        keep(history, "s1", question="Who ate the éclair?")
        keep(history, "s2", question="Are you sure?", closing="It's 100% sure.")

        assert [found.session for found in history.find(text)] == expected

    def test_it_is_narrowed_by_time_category_and_status(self, history):
        """Since is inclusive, until exclusive; the limit counts from the latest."""
        for hour in range(4):
            at = ASKED + timedelta(hours=hour)
            keep(history, f"s{hour}", at=at, category="even" if hour % 2 == 0 else "odd")

        def names(**given):
            return [found.session for found in history.find(**given)]

        assert names(since=ASKED + timedelta(hours=2)) == ["s3", "s2"]
        assert names(until=ASKED + timedelta(hours=2)) == ["s1", "s0"]
        assert names(category="even") == ["s2", "s0"]
        assert names(status="interrupted") == []
        assert names(limit=1) == ["s3"]


class TestReadingBack:
    """One session."""

    def test_ballots_and_answers_are_as_they_were(self, history):
        """They are what the session's events say, closed or not."""
        keep(history, "s1")
        with history.recording() as recording:
            for event in told("s2")[:-1]:
                recording(event)

        for name in ("s1", "s2"):
            assert history.ballots(name) == list(Session.of(told(name)).ballots)
            assert history.answers(name)["ada"] == f"ada says {name}."

    @pytest.mark.parametrize("method", ["session", "ballots", "answers", "claim", "forget"])
    def test_an_unknown_session_is_named_with_the_nearest(self, history, method):
        """A misspelt name is answered with the one that was meant."""
        keep(history, "session-one")

        with pytest.raises(UnknownName, match="did you mean 'session-one'"):
            getattr(history, method)("sesion-one")

    def test_all_council_sessions_are_read_a_few_at_a_time(self, history):
        """They come by name, whatever the size of a block."""
        keep(history, "c", "a", "b")

        assert [session.id for session in history.sessions(size=2)] == ["a", "b", "c"]

    def test_text_that_no_column_can_hold_is_kept_in_the_events(self, history):
        """NUL and half a surrogate pair come back from the events, and spoil no list."""
        keep(history, "s1", question="What \0 and \ud83d?")

        assert history.session("s1").question == "What \0 and \ud83d?"
        assert history.find("what")[0].session == "s1"


class TestCountingLater:
    """Sessions are counted under one more rule when somebody asks for it."""

    def test_every_session_is_counted_once(self, history):
        """Its standings are what the rule says, and nothing is left to count."""
        keep(history, "s1", "s2", "s3")

        assert history.recount("schulze") == 3
        assert history.recount("schulze") == 0
        for name in ("s1", "s2", "s3"):
            expected = Session.of(told(name)).recount("schulze").standings
            assert scores(history, name, "schulze") == {
                f"test:{line.candidate}": pytest.approx(line.score) for line in expected
            }

    def test_a_session_keeps_its_own_settings(self, history):
        """An answer that failed the gate wins under no rule, however late it is counted."""
        gated = Session.of(failing("s1", "ada"))
        with history.recording() as recording:
            for event in gated.events:
                recording(event)

        history.recount("schulze")

        expected = {
            f"test:{line.candidate}": line.score for line in gated.recount("schulze").standings
        }
        found = scores(history, "s1", "schulze")
        assert found == pytest.approx(expected)
        assert found["test:ada"] == min(found.values())

    def test_an_imported_session_is_counted_too(self, history):
        """By its ballots, under the settings that are usual."""
        cast = tuple(ballots("a: b > c", "b: c > a", "c: b > a", session="s1"))
        history.add([Imported("s1", ASKED, ballots=cast)], "f", "d")

        assert history.recount("schulze") == 1
        assert set(scores(history, "s1", "schulze")) == {"a", "b", "c"}

    def test_a_session_that_a_rule_cannot_count_is_asked_for_once(self, history):
        """A rule that leaves no row for a session does not count it again and again."""
        cast = tuple(ballots("a: b > c", "b: c > a", session="s1"))
        history.add([Imported("s1", ASKED, ballots=cast)], "f", "d")

        assert history.recount("elo") == 1
        assert scores(history, "s1", "elo") == {}
        assert history.recount("elo") == 0

    def test_simulated_sessions_are_not_counted(self, history):
        """What plays a script is on no leaderboard, so nobody counts it again."""
        keep(history, "s1", simulated=True)

        assert history.recount("schulze") == 0


def scores(history, session, rule):
    """Model to its score under a rule, by the models' ballots."""
    sql = (
        "SELECT n.name, t.score FROM standings t JOIN names n ON n.code = t.model"
        " WHERE t.session = :session AND t.rule = :rule AND t.human = 0"
    )
    return dict(history.database.rows(sql, {"session": session, "rule": rule}))


def failing(name, seat):
    """A session in which all put one seat first, whose answer failed the gate."""
    events = []
    for event in told(name):
        if isinstance(event, BallotCast):
            others = tuple(group for group in event.ballot.groups if group != (seat,))
            first = () if event.seat == seat else ((seat,),)
            cast = replace(event.ballot, groups=(*first, *others), grades={})
            events.append(replace(event, ballot=cast))
        elif isinstance(event, OutcomeChanged):
            events.append(GateVerdict(seq=0, at=event.at, seat=seat, flags=("self_harm",)))
        else:
            events.append(event)
    return [replace(event, seq=number) for number, event in enumerate(events, start=1)]


class TestRows:
    """What stands in the tables."""

    def test_codes_buckets_and_times_are_integers_of_fixed_meaning(self, history):
        """A name's code is 53 bits of its hash; buckets and days follow from name and time."""
        keep(history, "s1")

        [row] = history.database.rows("SELECT at_us, day, bucket, simulated FROM sessions")
        names = dict(history.database.rows("SELECT name, code FROM names"))

        assert row == (to_microseconds(ASKED), 20778, bucket_of("s1"), 0)
        assert names["test:ada"] == code_of("test:ada") < 2**53

    def test_two_names_of_one_code_are_refused(self, history):
        """A code that stands for another name already keeps the session out of the sums."""
        row = (code_of("test:ada"), "somebody else")
        history.database.insert("names", ("code", "name"), [row])

        with pytest.raises(HistoryError, match="share a code"):
            keep(history, "s1")


class TestBodies:
    """How an event is stored."""

    @pytest.mark.parametrize("question", ["Which?", "A\u2028B \x85 \ud83d \0 é"])
    def test_it_is_the_line_that_a_record_has(self, history, question):
        """Each event is stored as the very line that a record has of it."""
        keep(history, "s1", question=question)

        stored = history.database.rows("SELECT body FROM events ORDER BY seq")
        lines = [event_to_json(event) for event in told("s1", question=question)]
        assert [body for (body,) in stored] == lines


class TestDatabase:
    """SQL, the same on both."""

    def test_columns_are_arrays_by_name(self, history):
        """Whole numbers, numbers with NaN for NULL, and texts."""
        database = history.database
        database.execute("CREATE TABLE t (a INTEGER, b DOUBLE PRECISION, c TEXT)")
        database.insert("t", ("a", "b", "c"), [(1, 0.5, "x"), (2, None, "y")])

        found = database.columns("SELECT a, b, c FROM t WHERE a < :most ORDER BY a", {"most": 9})

        assert found["a"].dtype == np.int64
        assert found["b"].dtype == np.float64
        assert found["a"].tolist() == [1, 2]
        assert found["b"][0] == 0.5
        assert np.isnan(found["b"][1])
        assert found["c"].tolist() == ["x", "y"]

    def test_sums_are_numbers(self, history):
        """A sum of wide integers is a number on each database, not a decimal of the driver's."""
        database = history.database
        database.execute("CREATE TABLE t (a BIGINT)")
        database.insert("t", ("a",), [(2**40,), (1,)])

        assert database.columns("SELECT SUM(a) AS total FROM t")["total"].tolist() == [2**40 + 1]

    def test_nothing_found_is_empty_columns(self, history):
        """Names are there, values are not."""
        found = history.database.columns("SELECT session, at_us FROM sessions")

        assert {name: len(values) for name, values in found.items()} == {"session": 0, "at_us": 0}

    def test_a_transaction_is_all_or_nothing(self, history):
        """What fails in the middle leaves nothing, and one inside another joins it."""
        database = history.database

        def fail():
            with database.transaction():
                with database.transaction():
                    database.insert("names", ("code", "name"), [(1, "x")])
                raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            fail()

        assert database.rows("SELECT * FROM names") == []

    def test_a_statement_that_is_wrong_is_our_error(self, history):
        """The driver's words are kept, in an error of ours."""
        with pytest.raises(HistoryError, match="nowhere"):
            history.database.rows("SELECT 1 FROM nowhere")

    def test_the_percent_style_spares_texts_and_casts(self):
        """Parameters are rewritten; quoted text, casts and percent signs mean what they did."""
        sql = "SELECT ':x', \"a:b\", y::text, 5 % 2 FROM t WHERE a = :a1 AND b LIKE 'x%'"

        assert percent_style(sql) == (
            "SELECT ':x', \"a:b\", y::text, 5 %% 2 FROM t WHERE a = %(a1)s AND b LIKE 'x%%'"
        )
