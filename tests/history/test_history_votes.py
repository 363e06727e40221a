"""Votes by people: added, taken back, brought by a file, and given away with the session."""

from dataclasses import replace

import pytest

from elections import ballot, ballots
from histories import ASKED, MODELS, told
from witan.core.ballot import Ballot
from witan.deliberation.session import Session
from witan.errors import HistoryError, InvalidBallot, UnknownName
from witan.history import ImportCounts, SessionImport

VOTE = ballot("ines: a > b > c", session="s1", kind="human")


def imported(*more, **fields):
    """A session of three reviewers, and what else is cast on it."""
    cast = ballots("a: b > c", "b: c > a", "c: b > a", session="s1")
    texts = {"a": "A!", "b": "B!"}
    said = {"ballots": (*cast, *more), "answers": texts, "lengths": {"c": 7}, "category": "law"}
    return SessionImport("s1", ASKED, "Which?", **({"closing": "So."} | said | fields))


def council(*votes):
    """A council's session, and votes on it."""
    held = Session.of(told("s1"))
    return SessionImport("s1", ASKED, ballots=votes, session_record=held)


def people(history):
    return [one for one in history.ballots("s1") if one.kind == "human"]


class TestTakingBack:
    """A second ballot of the same person."""

    def test_it_takes_the_place_of_the_first(self, history):
        """One ballot is left, and the standings are those of the last one."""
        history.add([imported()], "f", "d")
        other = ballot("jo: a > b > c", session="s1", kind="human")
        history.vote("s1", [VOTE, other])
        changed = replace(VOTE, groups=(("c",), ("b",), ("a",)))
        history.vote("s1", [changed], replace_earlier=True)

        assert people(history) == [other, changed]
        sql = "SELECT DISTINCT score FROM standings WHERE human = 1 AND rule = 'borda'"
        assert history.database.rows(sql) == [(0.5,)]

    def test_without_being_asked_to_it_is_refused(self, history):
        """A person votes once."""
        history.add([imported()], "f", "d")
        history.vote("s1", [VOTE])

        with pytest.raises(InvalidBallot, match="votes once"):
            history.vote("s1", [VOTE])

    def test_a_candidate_s_name_is_refused(self, history):
        """Whoever has it would be recused from the answer of that name."""
        history.add([imported()], "f", "d")

        with pytest.raises(InvalidBallot, match="name of a candidate"):
            history.vote("s1", [replace(VOTE, reviewer="a")])

    def test_an_answer_that_nobody_ranked_can_be_voted_on(self, history):
        """Where all reviewers abstained, people may still vote on what was answered."""
        silent = Ballot("r", abstained=True, session="s1")
        history.add([imported(ballots=(silent,))], "f", "d")
        history.vote("s1", [ballot("ines: a > b", session="s1", kind="human")])

        assert len(people(history)) == 1


class TestFiles:
    """What a file brings of votes, and a history gives away."""

    def test_a_vote_on_a_session_that_is_there_is_added(self, history):
        """Once; the session itself is left alone."""
        vote = Ballot("ines", tuple((name,) for name in MODELS), session="s1", kind="human")
        history.add([council()], "f", "d1")

        assert history.add([council(vote)], "g", "d2") == ImportCounts(0, 1, 1, 1)
        assert history.add([council(vote)], "h", "d3") == ImportCounts(0, 1, 0, 0)
        assert people(history) == [vote]

    @pytest.mark.parametrize(
        ("vote", "problem"),
        [
            (Ballot("ines", (("ada",), ("zoe",)), session="s1", kind="human"), "names zoe"),
            (Ballot("ada", (("bo",), ("cy",)), session="s1", kind="human"), "of a candidate"),
            (Ballot("ines", (("bo",), ("cy",)), session="s2", kind="human"), "of the session s2"),
            (Ballot("ines", (("bo",),), session="s1", kind="human", weight=-1), "weight"),
        ],
    )
    def test_a_vote_that_does_not_belong_refuses_its_session(self, history, vote, problem):
        """A whole session comes in with votes that could be cast here, or not at all."""
        with pytest.raises(HistoryError, match=problem) as refused:
            history.add([council(vote)], "f", "d")

        assert "the session s1" in str(refused.value)
        assert history.find() == []

    def test_a_vote_on_a_session_that_broke_off_is_refused(self, history):
        """Nobody votes on what is not closed."""
        broken = Session.of(told("s1")[:6])
        vote = Ballot("ines", (("ada",), ("bo",)), session="s1", kind="human")

        with pytest.raises(HistoryError, match="not closed"):
            history.add(
                [SessionImport("s1", ASKED, ballots=(vote,), session_record=broken)], "f", "d"
            )

    def test_an_earlier_state_of_a_session_brings_nothing(self, history):
        """A record that breaks off where the history's goes on is there already."""
        history.add([council()], "f", "d1")
        broken = Session.of(told("s1")[:4])

        assert history.add(
            [SessionImport("s1", ASKED, session_record=broken)], "g", "d2"
        ) == ImportCounts(0, 1, 0)
        assert history.session("s1").status == "complete"

    def test_an_imported_session_comes_out_as_it_came_in(self, history):
        """Question, category, time, ballots, texts, lengths and final answer."""
        one = imported(VOTE)
        history.add([one], "f", "d")

        assert history.export("s1") == one

    def test_a_council_s_session_comes_out_with_its_votes(self, history):
        """Its events are those of the record, and people's ballots follow its own."""
        vote = Ballot("ines", (("ada",), ("bo",)), session="s1", kind="human")
        history.add([council(vote)], "f", "d")
        out = history.export("s1")

        assert out.session_record == Session.of(told("s1"))
        assert out.ballots == (*out.session_record.ballots, vote)

    def test_a_closing_text_that_was_imported_is_searched(self, history):
        """It is found by a word of it."""
        history.add([imported(closing="A needle.")], "f", "d")

        assert [found.session for found in history.find("needle")] == ["s1"]

    def test_a_session_that_is_not_there(self, history):
        """It is named."""
        with pytest.raises(UnknownName, match="s9"):
            history.export("s9")

    def test_a_digest_is_known_once_its_file_came_in(self, history):
        """How many sessions it held; None before."""
        assert history.find_import("d") is None
        history.add([imported()], "f", "d")
        assert history.find_import("d") == 1
