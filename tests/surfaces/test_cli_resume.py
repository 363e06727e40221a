"""``witan resume``, black box: an interrupted session goes on where it stopped."""

import os

import pytest

from recorded import HANGS, interrupted, keep, listed, place_of_its_own
from scripts import write_council
from sessions import Story
from witan.deliberation.record import session_to_json
from witan.deliberation.session import Session


@pytest.fixture(autouse=True)
def place(tmp_path, monkeypatch):
    """A history of the test's own, and no other trace of the machine."""
    return place_of_its_own(tmp_path, monkeypatch)


@pytest.mark.skipif(os.name == "nt", reason="Windows sends no signals to a process")
class TestResume:
    """An interrupted session is taken up from the history."""

    def test_ctrl_c_says_how_to_go_on_and_that_works(self, witan, tmp_path):
        """Two of three answers are kept; resuming asks the third alone, and ends the session."""
        status, err = interrupted(
            "ask", "Is it so?", *write_council(tmp_path, cyd={"answer": HANGS})
        )

        assert status == 130
        [line] = listed(witan)
        assert line["status"] == "interrupted"
        again = f"witan resume {line['session']}"
        assert all(fact in err for fact in ("2 of 3 answers kept", f"resume with: {again}"))

        write_council(tmp_path, ada={"answer": HANGS})
        said = witan(*again.split()[1:])

        assert (said.status, said.out) == (0, "All told: so.\n")
        assert [line["status"] for line in listed(witan)] == ["complete"]

    def test_once_reviewing_has_begun_ballots_are_counted_too(self, tmp_path):
        """All answers and two of three ballots are there."""
        seats = write_council(tmp_path, cyd={"review": HANGS})
        _, err = interrupted("ask", "Is it so?", *seats, kind="ballot_cast")

        assert err.startswith("interrupted; 3 of 3 answers, 2 of 3 ballots kept; resume with: ")

    @pytest.mark.slow
    def test_the_command_it_names_finds_the_place(self, tmp_path):
        """Where the history was named by hand, the command to go on names it, too."""
        elsewhere = tmp_path / "else where.sqlite"
        seats = write_council(tmp_path, cyd={"answer": HANGS})
        _, err = interrupted("ask", "Is it so?", "--history", elsewhere, *seats)

        assert err.endswith(f" --history '{elsewhere}'\n")

    @pytest.mark.slow
    def test_a_file_is_written_as_well_where_one_is_named(self, witan, tmp_path):
        """``--save`` keeps its word beside the history."""
        seats = write_council(tmp_path, cyd={"answer": HANGS})
        interrupted("ask", "Is it so?", "--save", "half.json", *seats)

        assert witan("show", "half.json", "--json").out == witan("show", "last", "--json").out

    @pytest.mark.slow
    def test_in_vain_it_can_be_taken_up_again(self, witan, tmp_path):
        """Where nothing was added the session is not closed; that it was tried is recorded."""
        interrupted("ask", "Is it so?", *write_council(tmp_path, cyd={"answer": HANGS}))
        before = witan("show", "last", "--json").json
        down = [{"error": "is down", "status": 401}]
        every = {"answer": down, "review": down, "synthesis": down}
        write_council(tmp_path, ada=every, bob=every, cyd=every, chair=every)

        said = witan("resume", "last")

        [line] = listed(witan)
        words = f"nothing more came of it: {line['session']} stays interrupted, to be resumed\n"
        assert said.err.endswith(words)
        after = witan("show", "last", "--json").json
        events, since = after.pop("events"), before.pop("events")
        assert (line["status"], after["status"]) == ("interrupted", "interrupted")
        assert (after["answers"], after["cost"]) == (before["answers"], before["cost"])
        assert events[: len(since)] == since
        assert events[-1]["event"] == "sitting_in_vain"
        write_council(tmp_path)
        assert witan("resume", "last").out == "All told: so.\n"

    @pytest.mark.slow
    def test_what_was_kept_in_a_file_comes_into_the_history(self, witan, tmp_path, place):
        """A file that is taken up is completed in both places."""
        seats = write_council(tmp_path, cyd={"answer": HANGS})
        interrupted("ask", "Is it so?", "--no-history", "--save", "half.json", *seats)
        assert not place.exists()

        write_council(tmp_path)
        assert witan("resume", "half.json").status == 0

        assert [line["status"] for line in listed(witan)] == ["complete"]
        assert witan("show", "half.json", "--json").out == witan("show", "last", "--json").out

    @pytest.mark.slow
    def test_one_s_own_programs_need_no_trust(self, witan, place, tmp_path):
        """What the history recorded is resumed; a record from elsewhere needs ``--trust``."""
        story = Story("ada", "bob", "cyd", seats=tuple(_program(n) for n in ("ada", "bob", "cyd")))
        session = Session.of(story.answers(ada="Yes.", bob="No."))
        keep(place, session.events)

        own = witan("resume", "last")
        assert "--trust" not in own.err
        assert witan("show", "last").lines[0].startswith("session · s1 · ")

        (tmp_path / "theirs.json").write_text(session_to_json(session), encoding="utf-8")
        theirs = witan("resume", "theirs.json", "--no-history")
        assert theirs.status == 2
        assert "allow it with --trust" in theirs.err


def _program(name: str):
    from witan.deliberation.ports import Seat

    return Seat(name, "cmd:true", "cmd")
