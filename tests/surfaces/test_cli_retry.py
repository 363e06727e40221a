"""``witan retry``, black box: the seats that failed are asked again, and both sessions kept."""

import json

import pytest

from recorded import keep, place_of_its_own
from scripts import write_council
from sessions import Story
from witan.deliberation.record import session_to_json
from witan.deliberation.session import Session

DOWN = [{"error": "is down", "status": 401}]


@pytest.fixture(autouse=True)
def place(tmp_path, monkeypatch):
    """A history of the test's own, and no other trace of the machine."""
    return place_of_its_own(tmp_path, monkeypatch)


def degraded(witan, folder, **troubled) -> str:
    """Hold a session in which some fail, then mend them; return its name."""
    said = witan("ask", "Is it so?", *write_council(folder, **troubled), "--json", "--seed", 3)
    write_council(folder)
    return said.json["session"]


class TestRetrying:
    """A new session, in which what does not hang on the failure is kept."""

    def test_all_that_failed_is_asked_again(self, witan, tmp_path):
        """Bob answers, and the session is complete; the answers of the others are the same."""
        first = degraded(witan, tmp_path, bob={"answer": DOWN})
        said = witan("retry", "last")
        before = witan("show", first, "--json").json
        after = witan("show", "last", "--json").json

        assert (said.status, said.out) == (0, "All told: so.\n")
        assert (before["status"], after["status"]) == ("degraded", "complete")
        assert after["answers"] == {**before["answers"], "bob": "Bob says so."}
        opened = after["events"][0]
        assert (opened["parent"], opened["relation"]) == (first, "retried")

    def test_a_plan_says_what_it_would_ask_for_and_asks_nobody(self, witan, tmp_path):
        """It is the plan that the retry opens with; what is said of a session is refused."""
        degraded(witan, tmp_path, bob={"review": DOWN})
        planned = witan("retry", "last", "--plan", "--json")
        text = witan("retry", "last", "--plan")
        refused = witan("retry", "last", "--plan", "--events")
        sessions = witan("sessions", "--json").json
        again = witan("retry", "last", "--json").json

        assert (planned.status, text.status, refused.status) == (0, 0, 2)
        assert planned.json["lines"] == again["events"][0]["plan"]["lines"]
        assert "when nothing fails" in text.out
        assert len(sessions["sessions"]) == 1

    def test_another_ceiling_holds_for_the_new_session_alone(self, witan, tmp_path):
        """It is that of the calls from now on; the session before keeps its own."""
        first = degraded(witan, tmp_path, bob={"review": DOWN})
        planned = witan("retry", "last", "--plan", "--json", "--max-cost", 0.25).json
        again = witan("retry", "last", "--json", "--max-cost", 0.25).json
        before = witan("show", first, "--json").json

        limits = [each["events"][0]["procedure"]["limits"] for each in (before, again)]
        assert planned["max_cost_usd"] == 0.25
        assert [each["max_cost_usd"] for each in limits] == [None, 0.25]

    def test_both_are_kept_and_name_each_other(self, witan, tmp_path):
        """Each of the two sessions says which the other is, and who was asked again."""
        first = degraded(witan, tmp_path, bob={"review": DOWN})
        again = witan("retry", "last", "--json").json["session"]

        assert f"retried as {again}\n" in witan("show", first).out
        assert f"retries {first}: bob asked again\n" in witan("show", again).out
        [row] = [line for line in witan("sessions").lines if "retries" in line]
        assert again.startswith(row.split()[0])
        assert first.startswith(row.rpartition("retries ")[2])

    def test_in_vain_it_says_that_nothing_was_gained(self, witan, tmp_path):
        """On the line of trust; where somebody is heard, nothing of the kind."""
        options = write_council(tmp_path, bob={"review": DOWN})
        said = witan("ask", "Is it so?", *options, "--json", "--seed", 3)
        vain = witan("retry", "last")
        write_council(tmp_path)
        gained = witan("retry", said.json["session"])

        words = "bob failed again; the result is unchanged"
        assert f"{words} · degraded: bob" in " ".join(vain.err.split())
        assert "nothing was gained" not in said.err + gained.err

    def test_one_seat_of_two(self, witan, tmp_path):
        """Who is not named stays silent."""
        degraded(witan, tmp_path, ada={"review": DOWN}, bob={"review": DOWN})
        said = witan("retry", "last", "--seat", "bob", "--json")

        [line] = said.json["missing"]
        assert all(fact in line for fact in ("ada cast no ballot", "is down"))

    def test_a_file_is_left_as_it_was(self, witan, tmp_path):
        """The record of the new session goes where --save says."""
        degraded(witan, tmp_path, bob={"review": DOWN})
        (tmp_path / "first.json").write_text(witan("show", "last", "--json").out, encoding="utf-8")
        record = (tmp_path / "first.json").read_bytes()
        said = witan("retry", "first.json", "--no-history", "--save", "again.json")

        assert said.status == 0
        assert (tmp_path / "first.json").read_bytes() == record
        saved = json.loads((tmp_path / "again.json").read_text(encoding="utf-8"))
        assert saved["status"] == "complete"

    def test_a_record_from_elsewhere_needs_trust(self, witan, tmp_path):
        """What it would run is not the record's to say, as for resume."""
        seats = tuple(_program(name) for name in ("ada", "bob", "cyd"))
        story = Story("ada", "bob", "cyd", seats=seats)
        session = Session.of(story.answers(ada="Yes.", bob="No."))
        (tmp_path / "theirs.json").write_text(session_to_json(session), encoding="utf-8")
        theirs = witan("retry", "theirs.json", "--no-history")

        assert theirs.status == 2
        assert "allow it with --trust" in theirs.err

    def test_one_s_own_programs_need_none(self, witan, place):
        """What the history recorded is asked again as it was."""
        seats = tuple(_program(name) for name in ("ada", "bob", "cyd"))
        story = Story("ada", "bob", "cyd", seats=seats)
        keep(place, Session.of(story.answers(ada="Yes.", bob="No.")).events)

        assert "--trust" not in witan("retry", "last").err


class TestRefusals:
    """One line says what is wrong, and what to do."""

    def test_nothing_failed(self, witan, tmp_path):
        """A complete session has nothing to be retried."""
        name = degraded(witan, tmp_path)
        said = witan("retry", "last")

        assert said.status == 3
        assert all(fact in said.err for fact in ("no seat failed", name))

    def test_a_seat_that_did_not_fail(self, witan, tmp_path):
        """The seats that did are named."""
        degraded(witan, tmp_path, bob={"review": DOWN})
        said = witan("retry", "last", "--seat", "ada")

        assert said.status == 2
        assert "a seat that failed: bob" in said.err


def _program(name: str):
    from witan.deliberation.ports import Seat

    return Seat(name, "cmd:true", "cmd")
