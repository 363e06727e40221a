"""Sessions by a beginning of their name, and a history as a whole."""

import pytest

from histories import stages
from witan.errors import HistoryError, UnknownName
from witan.history import History

LONG = ("20261121-193245-1a", "20261121-193245-1b", "20261121-193246-77", "q1", "q10")


@pytest.fixture
def history(tmp_path):
    """A history of five sessions, one of them not closed."""
    with History.open(tmp_path / "h.sqlite") as held:
        with held.recording() as recording:
            for name in LONG:
                told = [*stages(name)]
                for stage in told if name != "q10" else told[:-1]:
                    for event in stage:
                        recording(event)
        yield held


class TestNamed:
    """A beginning stands for the only session that it begins."""

    @pytest.mark.parametrize(
        ("given", "meant"),
        [
            ("20261121-193245-1a", "20261121-193245-1a"),
            ("20261121-193246", "20261121-193246-77"),
            ("q1", "q1"),
            ("q10", "q10"),
        ],
    )
    def test_it_is_found(self, history, given, meant):
        """A whole name is itself, even where it begins another."""
        assert history.resolve_name(given) == meant

    def test_several_are_refused(self, history):
        """The names that share the beginning are told."""
        with pytest.raises(HistoryError, match="begins the names of 3 sessions"):
            history.resolve_name("2026")

    @pytest.mark.parametrize("name", ["", "q2", "%", "_1", "Q1"])
    def test_what_begins_none_is_unknown(self, history, name):
        """Signs that mean something in SQL mean themselves."""
        with pytest.raises(UnknownName):
            history.resolve_name(name)

    def test_the_last_of_none_is_an_error(self, tmp_path):
        """An empty history has no last session."""
        with History.open(tmp_path / "empty.sqlite") as empty, pytest.raises(HistoryError):
            empty.resolve_name("last")

    def test_a_short_name_leads_back(self, history):
        """What a list shows is a beginning that no other session has."""
        short = history.short_names(LONG)

        assert [history.resolve_name(short[name]) for name in LONG] == list(LONG)
        assert short["20261121-193246-77"] == "20261121-193246"


def test_a_history_is_described(history):
    """Sessions are counted, and the size is that of the file."""
    held = history.describe()

    assert (held.n_sessions, held.n_simulated, held.n_interrupted) == (5, 0, 1)
    assert (held.kind, held.version, held.journal) == ("SQLite", history.version, history.journal)
    assert held.n_bytes > 0


def test_simulated_sessions_can_be_listed_apart(history):
    """`find` leaves them out, or lists them alone."""
    with history.recording() as recording:
        for stage in stages("played", simulated=True):
            for event in stage:
                recording(event)

    assert [found.session for found in history.find(simulated=True)] == ["played"]
    assert len(history.find(simulated=False)) == 5
    assert history.summary("played").simulated is True
