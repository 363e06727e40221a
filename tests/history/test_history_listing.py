"""The list of sessions: searches, pages, names, and unusual characters."""

import time
from datetime import UTC, datetime, timedelta

import pytest

import witan
from councils import members
from elections import ballot, ballots
from histories import ASKED, record_sessions, session_events, stages
from witan.core.ballot import Ballot
from witan.core.rules import RULES
from witan.deliberation.session import Session
from witan.errors import HistoryError, InvalidParameter, UnknownName
from witan.history import History, Search, SessionImport


class TestFinding:
    """A list of sessions."""

    def test_newest_session_comes_first(self, history):
        """Sessions of the same time are in order of name."""
        record_sessions(history, "b", "a")
        record_sessions(history, "later", at=ASKED + timedelta(hours=1))

        assert [found.session for found in history.find()] == ["later", "a", "b"]

    def test_imported_ballots_are_listed_by_their_time(self, history):
        """They are in order in the whole list and on its first page."""
        record_sessions(history, "s1")
        ballots = (Ballot("ada", (("x",), ("y",))),)
        later = [
            SessionImport(name, ASKED + timedelta(days=1), ballots=ballots) for name in ("b", "a")
        ]
        earlier = SessionImport("old", ASKED - timedelta(days=1), ballots=ballots)
        history.add([*later, earlier], "votes.jsonl", "digest")

        assert [found.session for found in history.find()] == ["a", "b", "s1", "old"]
        assert [found.session for found in history.find(limit=2)] == ["a", "b"]
        assert [found.has_events for found in history.find()] == [False, False, True, False]
        assert [found.imported for found in history.find()] == [True, True, False, True]

    def test_imported_record_is_a_recorded_session(self, history):
        """It has a record, and is still marked as imported."""
        record = Session.of(session_events("s1"))
        later = SessionImport(
            "b", ASKED + timedelta(days=1), ballots=(Ballot("ada", (("x",), ("y",))),)
        )
        history.add([SessionImport("s1", session_record=record), later], "sessions.jsonl", "digest")

        found = history.find()
        assert [(f.session, f.has_events, f.imported) for f in found] == [
            ("b", False, True),
            ("s1", True, True),
        ]

    def test_pages_list_each_session_once(self, history):
        """Pages keep the order of the list, however many sessions share a time."""
        record_sessions(history, "c", "a", "b")
        cast = (Ballot("ada", (("x",), ("y",))),)
        brought = [SessionImport(f"m{n}", ASKED, ballots=cast) for n in range(7)]
        history.add(
            [*brought, SessionImport("old", ASKED - timedelta(days=1), ballots=cast)], "f", "d"
        )
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

    def test_page_of_a_large_import_is_as_fast_as_of_a_small_one(self, tmp_path):
        """A page and the latest session are found without reading all sessions of a time."""
        small, large = (_seconds_to_list(tmp_path / f"{n}.sqlite", n) for n in (200, 8_000))

        assert large < 5 * small

    def test_line_describes_the_session(self, history):
        """It has time, status, question, rule, leader and cost."""
        record_sessions(history, "s1", category="coding")

        [found] = history.find()

        outcome = Session.of(session_events("s1")).outcome
        assert (found.at, found.status, found.category) == (ASKED, "complete", "coding")
        assert (found.question, found.rule) == ("Which of the five?", "borda")
        assert (found.cost_usd, found.source, found.simulated) == (0.11, "council", False)
        leaders = [line.candidate for line in outcome.standings if line.rank == 1]
        assert found.leader == (f"test:{leaders[0]}" if len(leaders) == 1 else None)

    @pytest.mark.parametrize(
        "rule", [name for name, each in RULES.items() if each.needs != "history"]
    )
    @pytest.mark.parametrize("order", ["cabde", "ab"])
    def test_listed_leader_is_that_of_the_outcome(self, tmp_path, rule, order):
        """It is the one on the first rank, whether low or high scores are best."""
        path = tmp_path / "history.sqlite"
        seated = [*members("abc", order), *members("de", "edcba")]
        session = witan.ask("Which?", seated, "a", rule=rule, history=str(path))

        with History.open(str(path)) as history:
            [found] = history.find()

        leaders = session.outcome.leaders
        assert found.leader_seat == (leaders[0] if len(leaders) == 1 else None)

    @pytest.mark.parametrize(
        ("cast", "leader"),
        [
            (("ada: x > a > b", "bob: a > b", "cyd: a > b"), "a"),
            (("ada: a = b > x", "bob: b = a > x"), None),
        ],
    )
    def test_listed_leader_has_enough_votes(self, history, cast, leader):
        """A candidate with a single vote does not lead those with more."""
        history.add([SessionImport("s1", ballots=ballots(*cast))], "f", "d")

        [found] = history.find()

        assert found.leader == leader

    def test_search_by_words(self, history):
        """Every word occurs in the question or the final answer, in any case, literally."""
        record_sessions(history, "s1", question="Who ate the éclair?")
        record_sessions(history, "s2", question="Are you sure?", closing="It's 100% sure.")

        texts = ("ÉCLAIR", "the éclair", "100%", "1_0", "it's", "éclair 100%", None)
        found = {text: [each.session for each in history.find(text)] for text in texts}

        assert found == {
            "ÉCLAIR": ["s1"],
            "the éclair": ["s1"],
            "100%": ["s2"],
            "1_0": [],
            "it's": ["s2"],
            "éclair 100%": [],
            None: ["s1", "s2"],
        }

    def test_filter_by_time_category_and_status(self, history):
        """Since is inclusive, until exclusive; the limit counts from the newest."""
        for hour in range(4):
            at = ASKED + timedelta(hours=hour)
            record_sessions(history, f"s{hour}", at=at, category="even" if hour % 2 == 0 else "odd")

        def names(**given):
            return [found.session for found in history.find(**given)]

        assert names(since=ASKED + timedelta(hours=2)) == ["s3", "s2"]
        assert names(until=ASKED + timedelta(hours=2)) == ["s1", "s0"]
        assert names(category="even") == ["s2", "s0"]
        assert names(status="interrupted") == []
        assert names(limit=1) == ["s3"]


NAIVE = datetime(2026, 11, 21)


def _seconds_to_list(file, n_sessions):
    """List a page, and resolve the latest session, where all have the same time."""
    cast = (Ballot("ada", (("x",), ("y",))),)
    seconds = []
    with History.open(file) as history:
        history.add(
            [SessionImport(f"s{n}", ASKED, ballots=cast) for n in range(n_sessions)], "", ""
        )
        for _ in range(5):
            began = time.process_time()
            history.page(Search(), 5)
            history.resolve_name("last")
            seconds.append(time.process_time() - began)
    return min(seconds)


@pytest.fixture
def in_file(file):
    """An empty history in a file."""
    with History.open(file) as opened:
        yield opened


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        ({"limit": 10**20}, "limit cannot be 100000000000000000000; expected a whole number"),
        ({"limit": -1}, "limit cannot be -1; expected a whole number from 0"),
        ({"limit": True}, "limit cannot be True; expected a whole number"),
        ({"limit": 1.5}, "limit cannot be 1.5; expected a whole number"),
        ({"since": "x"}, "since cannot be 'x'; expected a datetime with a time zone"),
        ({"until": NAIVE}, "expected a datetime with a time zone"),
        ({"simulated": "yes"}, "simulated cannot be 'yes'; expected True, False or None"),
        ({"status": "foo"}, "status cannot be 'foo'; expected one of complete, degraded"),
        ({"category": 5}, "category cannot be 5; expected text"),
        ({"parent": 5}, "parent cannot be 5; expected text"),
        ({"text": 5}, "text cannot be 5; expected text"),
    ],
)
def test_invalid_search_is_refused(in_file, asked, expected):
    """The error names the value and what was expected."""
    with pytest.raises(InvalidParameter) as refused:
        in_file.find(**asked)

    assert expected in str(refused.value)


@pytest.mark.parametrize("at", ["x", NAIVE, None, 5])
@pytest.mark.parametrize("forget", ["forget_before", "forget_added_before"])
def test_invalid_time_forgets_nothing(in_file, forget, at):
    """Only a time with its zone is accepted."""
    with pytest.raises(InvalidParameter, match="a datetime with a time zone"):
        getattr(in_file, forget)(at)


@pytest.mark.parametrize(
    "ask", ["session", "resolve_name", "ballots", "summary", "forget", "export"]
)
@pytest.mark.parametrize("name", [5, None])
def test_invalid_name_is_refused(in_file, ask, name):
    """The name of a session is a text."""
    with pytest.raises(InvalidParameter, match="the name of a session"):
        getattr(in_file, ask)(name)


def test_closed_history_is_an_error(place):
    """It is not reopened implicitly, on a server neither."""
    history = History.open(place)
    history.close()
    history.close()

    for ask in (history.find, history.describe, history.learn):
        with pytest.raises(HistoryError, match="open the history again"):
            ask()


def test_search_ignores_case(history):
    """Words that differ by case alone match, on each database."""
    question = "Welche Größe hat İstanbul, Σίσυφος?"
    with history.recording() as recording:
        for event in session_events("s1", question=question, at=datetime(2026, 11, 21, tzinfo=UTC)):
            recording(event)

    for words in ("GRÖSSE", "größe", "Grösse", "İSTANBUL", "ΣΊΣΥΦΟΣ", "σίσυφος"):
        assert [found.session for found in history.find(words)] == ["s1"], words


LONG = ("20261121-193245-1a", "20261121-193245-1b", "20261121-193246-77", "q1", "q10")


@pytest.fixture
def stored_sessions(tmp_path):
    """Record five sessions, one of them not closed."""
    with History.open(tmp_path / "h.sqlite") as history:
        with history.recording() as recording:
            for name in LONG:
                told = [*stages(name)]
                for stage in told if name != "q10" else told[:-1]:
                    for event in stage:
                        recording(event)
        yield history


class TestPrefixes:
    """A prefix stands for its only session."""

    @pytest.mark.parametrize(
        ("given", "meant"),
        [
            ("20261121-193245-1a", "20261121-193245-1a"),
            ("20261121-193246", "20261121-193246-77"),
            ("q1", "q1"),
            ("q10", "q10"),
        ],
    )
    def test_full_name_or_prefix_is_resolved(self, stored_sessions, given, meant):
        """A full name is itself, even where it begins another."""
        assert stored_sessions.resolve_name(given) == meant

    def test_ambiguous_prefix_is_refused(self, stored_sessions):
        """The error lists the names with that prefix."""
        with pytest.raises(HistoryError, match="matches 3 sessions"):
            stored_sessions.resolve_name("2026")

    @pytest.mark.parametrize("name", ["", "q2", "%", "_1", "Q1"])
    def test_unknown_prefix_is_refused(self, stored_sessions, name):
        """Special characters of SQL are literal."""
        with pytest.raises(UnknownName):
            stored_sessions.resolve_name(name)

    def test_last_session_of_an_empty_history_is_an_error(self, tmp_path):
        """An empty stored_sessions has no last session."""
        with History.open(tmp_path / "empty.sqlite") as empty, pytest.raises(HistoryError):
            empty.resolve_name("last")

    def test_short_name_resolves_to_its_session(self, stored_sessions):
        """The list shows a prefix that no other session has."""
        short = stored_sessions.short_names(LONG)

        assert [stored_sessions.resolve_name(short[name]) for name in LONG] == list(LONG)
        assert short["20261121-193246-77"] == "20261121-193246"


def test_description_of_a_history(stored_sessions):
    """Sessions are counted, and the size is that of the file."""
    held = stored_sessions.describe()

    assert (held.n_sessions, held.n_simulated, held.n_interrupted) == (5, 0, 1)
    assert (held.kind, held.version, held.journal) == (
        "SQLite",
        stored_sessions.version,
        stored_sessions.journal,
    )
    assert held.n_bytes > 0


def test_simulated_sessions_can_be_listed_separately(stored_sessions):
    """`find` leaves them out, or lists them alone."""
    with stored_sessions.recording() as recording:
        for stage in stages("played", simulated=True):
            for event in stage:
                recording(event)

    assert [found.session for found in stored_sessions.find(simulated=True)] == ["played"]
    assert len(stored_sessions.find(simulated=False)) == 5
    assert stored_sessions.summary("played").simulated is True


STRANGE = ["\udcff", "a\0b"]


@pytest.mark.parametrize("text", STRANGE)
class TestSearching:
    """Words and names that no column can hold."""

    def test_search_matches_the_stored_text(self, history, text):
        """A question is searched as it could be stored, and no statement fails."""
        record_sessions(history, "s1", question=f"What is {text}?")
        record_sessions(history, "s2", question="Plain.")

        assert [found.session for found in history.find(text)] == ["s1"]
        assert history.find(category=text) == []

    def test_unstorable_name_is_unknown(self, history, text):
        """It is unknown, as any other name would be."""
        record_sessions(history, "?")

        for method in ("session", "summary", "resolve_name", "claim", "forget", "vote"):
            more = ([ballot("eve: ada > bo", kind="human")],) if method == "vote" else ()
            with pytest.raises(UnknownName):
                getattr(history, method)(text, *more)
        assert not history.has_record(text)

    def test_import_with_an_unstorable_name_is_refused(self, history, text):
        """The import stores nothing."""
        brought = SessionImport(f"q{text}", ballots=(ballot("a: b > c"),))

        with pytest.raises(HistoryError, match="cannot name a session"):
            history.add([brought], "f", "d")
        assert history.find_import("d") is None


class TestFolding:
    """Letters in any case, on any server."""

    QUESTION = "Was kostet Öl in der École an der STRASSE?"

    def test_letters_beyond_ascii_match_in_any_case(self, history):
        """SQLite and PostgreSQL fold them alike."""
        record_sessions(history, "s1", question=self.QUESTION)

        for word in ("Öl", "öl", "ÖL", "école", "Straße"):
            assert [found.session for found in history.find(word)] == ["s1"], word

    def test_letters_match_on_a_server_with_ascii_only(self, postgresql_url):
        """A database whose LC_CTYPE is C does not fold such letters itself."""
        base, _, name = postgresql_url.rpartition("/")
        with History.open(postgresql_url) as history:
            history.database.execute(
                f"CREATE DATABASE {name}_c TEMPLATE template0 LC_COLLATE 'C' LC_CTYPE 'C'"
            )
            with History.open(f"{base}/{name}_c") as plain:
                record_sessions(plain, "s1", question=self.QUESTION)
                assert [found.session for found in plain.find("ÖL école")] == ["s1"]
            history.database.execute(f"DROP DATABASE {name}_c WITH (FORCE)")
