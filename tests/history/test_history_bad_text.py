"""Text, numbers and places that no database can hold: a sentence, or simply no match."""

import pytest

from elections import ballot
from histories import told
from witan.errors import HistoryError, UnknownName
from witan.history import History, Imported

STRANGE = ["\udcff", "a\0b"]


def keep(history, name, **fields):
    with history.recording() as recording:
        for event in told(name, **fields):
            recording(event)


@pytest.mark.parametrize("text", STRANGE)
class TestSearching:
    """Words and names that stand nowhere."""

    def test_a_search_finds_what_was_stored_of_them(self, history, text):
        """A question is searched as it could be stored, and no statement fails."""
        keep(history, "s1", question=f"What is {text}?")
        keep(history, "s2", question="Plain.")

        assert [found.session for found in history.find(text)] == ["s1"]
        assert history.find(category=text) == []

    @pytest.mark.parametrize(
        "method", ["session", "summary", "resolve_name", "claim", "forget", "vote"]
    )
    def test_no_session_has_such_a_name(self, history, text, method):
        """It is unknown, as any other name would be."""
        keep(history, "?")
        more = ([ballot("eve: ada > bo", kind="human")],) if method == "vote" else ()

        with pytest.raises(UnknownName):
            getattr(history, method)(text, *more)
        assert not history.has_record(text)

    def test_no_session_comes_in_under_it(self, history, text):
        """An import with such a name is refused, and leaves nothing."""
        brought = Imported(f"q{text}", ballots=(ballot("a: b > c"),))

        with pytest.raises(HistoryError, match="cannot be the name of a session"):
            history.add([brought], "f", "d")
        assert history.find_import("d") is None


class TestFolding:
    """Letters in any case, on any server."""

    QUESTION = "Was kostet Öl in der École an der STRASSE?"

    @pytest.mark.parametrize("word", ["Öl", "öl", "ÖL", "école", "Straße"])
    def test_letters_beyond_ascii_are_found(self, history, word):
        """Whoever folds, folds them alike."""
        keep(history, "s1", question=self.QUESTION)

        assert [found.session for found in history.find(word)] == ["s1"]

    def test_they_are_found_on_a_server_that_knows_ascii_alone(self, postgresql_url):
        """A database whose LC_CTYPE is C folds no such letter itself."""
        base, _, name = postgresql_url.rpartition("/")
        with History.open(postgresql_url) as history:
            history.database.execute(
                f"CREATE DATABASE {name}_c TEMPLATE template0 LC_COLLATE 'C' LC_CTYPE 'C'"
            )
            with History.open(f"{base}/{name}_c") as plain:
                keep(plain, "s1", question=self.QUESTION)
                assert [found.session for found in plain.find("ÖL école")] == ["s1"]
            history.database.execute(f"DROP DATABASE {name}_c WITH (FORCE)")


class TestNumbers:
    """Lengths beyond what a column holds."""

    def test_a_length_of_more_than_32_bits_is_kept(self, history):
        """Every whole number that SQLite holds, PostgreSQL holds."""
        one = Imported("s1", ballots=(ballot("a: b > c"),), lengths={"b": 2**31})
        history.add([one], "f", "d")

        assert history.database.rows("SELECT chars FROM answers WHERE seat = 'b'") == [(2**31,)]

    def test_a_length_that_no_column_holds_is_refused(self, history):
        """A sentence, and nothing of the file stays."""
        one = Imported("s1", ballots=(ballot("a: b > c"),), lengths={"b": 10**20})

        with pytest.raises(HistoryError):
            history.add([one], "f", "d")
        assert history.find() == []


@pytest.mark.parametrize("place", ["~nosuch-user/x", "x" * 300, "a\0b", "x" * 300 + "/h.sqlite"])
def test_a_place_that_cannot_be_is_said(place):
    """An unknown user's home, a name that is too long, a byte that no path has."""
    with pytest.raises(HistoryError):
        History.open(place)
