"""Votes by people: cast, replaced, imported, and exported with the session."""

from dataclasses import replace

import pytest

from elections import ballot, ballots
from histories import ASKED, MODELS, crowd, send, session_events, stages
from witan.core.ballot import Ballot
from witan.core.profile import MAX_CANDIDATES
from witan.deliberation.ports import Seat
from witan.deliberation.session import Session
from witan.errors import HistoryConflict, HistoryError, InvalidBallot, UnknownName
from witan.history import History, ImportCounts, SessionImport
from witan.history.ballots import prepare_paper, reveal

VOTE = ballot("ines: a > b > c", session="s1", kind="human")


def imported(*more, **fields):
    """A session of three reviewers, and what else is cast on it."""
    cast = ballots("a: b > c", "b: c > a", "c: b > a", session="s1")
    texts = {"a": "A!", "b": "B!"}
    said = {"ballots": (*cast, *more), "answers": texts, "lengths": {"c": 7}, "category": "law"}
    return SessionImport("s1", ASKED, "Which?", **({"closing": "So."} | said | fields))


def council(*votes):
    """A council's session, and votes on it."""
    held = Session.of(session_events("s1"))
    return SessionImport("s1", ASKED, ballots=votes, session_record=held)


def people(history):
    return [one for one in history.ballots("s1") if one.kind == "human"]


class TestReplacing:
    """A second ballot of the same person."""

    def test_new_vote_replaces_the_first(self, history):
        """One ballot is left, and the standings are those of the last one."""
        history.add([imported()], "f", "d")
        other = ballot("jo: a > b > c", session="s1", kind="human")
        history.vote("s1", [VOTE, other])
        changed = replace(VOTE, groups=(("c",), ("b",), ("a",)))
        history.vote("s1", [changed], replace_earlier=True)

        assert people(history) == [other, changed]
        sql = "SELECT DISTINCT score FROM standings WHERE human = 1 AND rule = 'borda'"
        assert history.database.rows(sql) == [(0.5,)]

    def test_second_vote_is_refused_by_default(self, history):
        """A person votes once."""
        history.add([imported()], "f", "d")
        history.vote("s1", [VOTE])

        with pytest.raises(InvalidBallot, match="votes once"):
            history.vote("s1", [VOTE])

    def test_name_of_a_candidate_is_refused(self, history):
        """A voter of that name would be recused from that answer."""
        history.add([imported()], "f", "d")

        with pytest.raises(InvalidBallot, match="name of a candidate"):
            history.vote("s1", [replace(VOTE, reviewer="a")])

    @pytest.mark.parametrize("name", ["", " ", " ines", "human", "people"])
    def test_name_that_cannot_be_read_back_is_refused(self, history, name):
        """Nothing is stored, and the session can still be read."""
        history.add([imported()], "f", "d")
        with pytest.raises(InvalidBallot, match="cannot be"):
            history.vote("s1", [replace(VOTE, reviewer=name)])

        assert people(history) == []

    def test_name_of_a_seat_is_refused(self, history):
        """Even where it gave no answer, as a juror."""
        events = session_events("s1")
        juror = Seat("judy", "test:judy", "test")
        opened = replace(events[0], jury=(juror,))
        record = Session.of([opened, *events[1:]])
        history.add([SessionImport("s1", ASKED, session_record=record)], "f", "d")

        with pytest.raises(InvalidBallot, match="name of a seat"):
            history.vote("s1", [replace(rank_all("ines"), reviewer="judy")])

    def test_unranked_answers_can_be_voted_on(self, history):
        """Where all reviewers abstained, people may still vote."""
        silent = Ballot("r", abstained=True, session="s1")
        history.add([imported(ballots=(silent,))], "f", "d")
        history.vote("s1", [ballot("ines: a > b", session="s1", kind="human")])

        assert len(people(history)) == 1


COUNTED = (
    "SELECT human, rule, model, score, z, votes, offered, wins FROM standings ORDER BY 1, 2, 3",
    "SELECT human, models, wins, losses, ties, p_beats FROM matchups ORDER BY human",
    "SELECT reviewer, human, shares, positions, body FROM ballots ORDER BY ballot",
)
"""What a session counted, without when."""


def rank_all(person):
    """A person's ballot on a council's session."""
    return Ballot(person, tuple((name,) for name in MODELS), session="s1", kind="human")


class TestOpenSession:
    """A vote cast while ballots of the panel still arrive."""

    def test_it_counts_at_the_end_as_if_cast_afterwards(self, place, history):
        """Another process may cast it, and the recorder knows nothing of it."""
        opened, answers, ballots, closed = stages("s1")
        with history.recording() as recording:
            send(recording, opened + answers + ballots[:2])
            recording.flush()
            with History.open(place) as other:
                other.vote("s1", [rank_all("ines")])
                assert people(other) == [rank_all("ines")]
            assert history.database.rows("SELECT * FROM ballots") == []
            send(recording, ballots[2:] + closed)
        counted = [history.database.rows(sql) for sql in COUNTED]

        assert people(history) == [rank_all("ines")]
        assert history.database.rows("SELECT * FROM waiting_votes") == []
        history.forget("s1")
        with history.recording() as recording:
            send(recording, session_events("s1"))
        history.vote("s1", [rank_all("ines")])
        assert [history.database.rows(sql) for sql in COUNTED] == counted

    def test_it_waits_for_a_session_that_is_interrupted_and_resumed(self, place, history):
        """A restart between vote and end loses nothing."""
        opened, answers, ballots, closed = stages("s1")
        with history.recording() as recording:
            send(recording, opened + answers + ballots[:1])
        history.vote("s1", [rank_all("ines"), rank_all("jo")])
        with History.open(place) as later:
            events = [*later.claim("s1", force=True).events]
            with later.recording() as recording:
                send(recording, events + ballots[1:] + closed)

            assert people(later) == [rank_all("ines"), rank_all("jo")]
            assert later.database.rows("SELECT * FROM waiting_votes") == []

    def test_it_is_refused_before_all_answers_are_there(self, history):
        """Nothing of it is stored."""
        opened, answers, *_ = stages("s1")
        with history.recording() as recording:
            send(recording, opened + answers)
        with pytest.raises(HistoryConflict, match="still lacks answers"):
            prepare_paper(history, "s1", "ines")
        with pytest.raises(HistoryConflict, match="still lacks answers"):
            history.vote("s1", [rank_all("ines")])

        assert people(history) == []

    def test_a_person_votes_once_and_may_replace_it(self, history):
        """As on a closed session."""
        opened, answers, ballots, _ = stages("s1")
        with history.recording() as recording:
            send(recording, opened + answers + ballots[:1])
        history.vote("s1", [rank_all("ines")])
        with pytest.raises(InvalidBallot, match="votes once"):
            history.vote("s1", [rank_all("ines")])
        changed = replace(rank_all("ines"), groups=rank_all("ines").groups[::-1])
        history.vote("s1", [changed], replace_earlier=True)

        assert people(history) == [changed]

    def test_comparisons_of_pairs_wait_beside_a_vote_on_all(self, history):
        """A person has as many as were cast, and replacing a vote leaves them."""
        opened, answers, ballots, closed = stages("s1")
        with history.recording() as recording:
            send(recording, opened + answers + ballots[:1])
        pairs = [
            Ballot("ines", ((one,), ("ed",)), session="s1", kind="human", paired=True)
            for one in ("ada", "bo")
        ]
        history.vote("s1", [*pairs, rank_all("ines")])
        changed = replace(rank_all("ines"), groups=rank_all("ines").groups[::-1])
        history.vote("s1", [changed], replace_earlier=True)

        assert people(history) == [changed, *pairs]
        assert [each.ballot for each in history.votes_of("ines")] == [changed]
        events = [*history.claim("s1", force=True).events]
        with history.recording() as recording:
            send(recording, events + ballots[1:] + closed)
        assert people(history) == [changed, *pairs]
        assert history.database.rows("SELECT * FROM waiting_votes") == []

    def test_vote_that_cannot_be_counted_says_why(self, history):
        """It stays with its session, which is not open any more."""
        events = crowd(MAX_CANDIDATES + 1)
        last = len(events) - 1
        with history.recording() as recording:
            send(recording, events[:last])
        vote = Ballot("ines", (("m1",), ("m2",)), session="s1", kind="human")
        history.vote("s1", [vote])
        [waiting] = history.votes_of("ines")
        stored = [*history.claim("s1", force=True).events]
        with history.recording() as recording:
            send(recording, [*stored, events[last]])

        [found] = history.votes_of("ines")
        assert (waiting.is_open, waiting.why) == (True, None)
        assert not found.is_open
        assert "candidates in session 's1'" in found.why
        assert people(history) == [vote]

    def test_nothing_of_the_panel_is_revealed(self, history):
        """Authors are, to whoever has voted."""
        opened, answers, ballots, _ = stages("s1")
        with history.recording() as recording:
            send(recording, opened + answers + ballots)
        paper = prepare_paper(history, "s1", "ines")
        result = reveal(history, paper, rank_all("ines").groups)

        assert (result.is_open, result.panel, result.match) == (True, None, None)
        assert {each.panel_rank for each in result.answers} == {None}

    def test_an_exported_session_carries_the_vote(self, history):
        """It waits there, too, and is added once."""
        opened, answers, ballots, _ = stages("s1")
        with history.recording() as recording:
            send(recording, opened + answers + ballots[:1])
        history.vote("s1", [rank_all("ines")])
        copy = history.export("s1")
        history.forget("s1")
        assert history.database.rows("SELECT * FROM waiting_votes") == []
        history.add([copy], "f", "d1")
        assert people(history) == [rank_all("ines")]
        assert history.add([copy], "g", "d2") == ImportCounts(0, 1, 0, 0)


class TestFiles:
    """Votes in imported and exported files."""

    def test_vote_on_a_stored_session_is_added(self, history):
        """It is added once; the session is unchanged."""
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
            (
                Ballot("ines", (("bo",), ("cy",)), session="s2", kind="human"),
                "belongs to the session s2",
            ),
            (Ballot("ines", (("bo",),), session="s1", kind="human", weight=-1), "weight"),
        ],
    )
    def test_invalid_vote_refuses_its_session(self, history, vote, problem):
        """A session is imported only with votes that could be cast here."""
        with pytest.raises(HistoryError, match=problem) as refused:
            history.add([council(vote)], "f", "d")

        assert "the session s1" in str(refused.value)
        assert history.find() == []

    def test_vote_before_all_answers_is_refused(self, history):
        """The session may still get others."""
        broken = Session.of(session_events("s1")[:6])
        vote = Ballot("ines", (("ada",), ("bo",)), session="s1", kind="human")

        with pytest.raises(HistoryError, match="still open"):
            history.add(
                [SessionImport("s1", ASKED, ballots=(vote,), session_record=broken)], "f", "d"
            )

    def test_earlier_state_of_a_session_adds_nothing(self, history):
        """A shorter record of a stored session counts as known."""
        history.add([council()], "f", "d1")
        broken = Session.of(session_events("s1")[:4])

        assert history.add(
            [SessionImport("s1", ASKED, session_record=broken)], "g", "d2"
        ) == ImportCounts(0, 1, 0)
        assert history.session("s1").status == "complete"

    def test_imported_session_is_exported_unchanged(self, history):
        """Question, category, time, ballots, texts, lengths and final answer."""
        one = imported(VOTE)
        history.add([one], "f", "d")

        assert history.export("s1") == one

    def test_council_session_is_exported_with_its_votes(self, history):
        """Its events are those of the record, and people's ballots follow its own."""
        vote = Ballot("ines", (("ada",), ("bo",)), session="s1", kind="human")
        history.add([council(vote)], "f", "d")
        out = history.export("s1")

        assert out.session_record == Session.of(session_events("s1"))
        assert out.ballots == (*out.session_record.ballots, vote)

    def test_imported_final_answer_is_searched(self, history):
        """A word of it finds the session."""
        history.add([imported(closing="A needle.")], "f", "d")

        assert [found.session for found in history.find("needle")] == ["s1"]

    def test_missing_session_is_named(self, history):
        """It is named."""
        with pytest.raises(UnknownName, match="s9"):
            history.export("s9")

    def test_digest_is_known_after_the_import(self, history):
        """It gives the number of sessions; None before."""
        assert history.find_import("d") is None
        history.add([imported()], "f", "d")
        assert history.find_import("d") == 1
