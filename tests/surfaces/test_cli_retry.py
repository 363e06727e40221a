"""``witan retry``, black box: failed seats are called again; both sessions stay."""

import json

import pytest

from recorded import keep
from scripts import write_council
from sessions import Story, program_seat
from witan.deliberation.record import session_to_json
from witan.deliberation.session import Session

DOWN = [{"error": "is down", "status": 401}]


pytestmark = pytest.mark.usefixtures("place")


def degraded(witan, folder, **troubled) -> str:
    """Run a session with failures, repair the scripts, and return its name."""
    said = witan("ask", "Is it so?", *write_council(folder, **troubled), "--json", "--seed", 3)
    write_council(folder)
    return said.json["session"]


class TestRetrying:
    """A new session with everything that the failure did not affect."""

    def test_every_failed_call_is_repeated(self, witan, tmp_path):
        """Bob answers, and the session is complete; other answers are unchanged."""
        first = degraded(witan, tmp_path, bob={"answer": DOWN})
        said = witan("retry", "last")
        before = witan("show", first, "--json").json
        after = witan("show", "last", "--json").json

        assert (said.status, said.out) == (0, "All told: so.\n")
        assert (before["status"], after["status"]) == ("degraded", "complete")
        assert after["answers"] == {**before["answers"], "bob": "Bob says so."}
        opened = after["events"][0]
        assert (opened["parent"], opened["relation"]) == (first, "retried")

    def test_a_plan_makes_no_call(self, witan, tmp_path):
        """The retry opens with the same plan; options about sessions are refused."""
        degraded(witan, tmp_path, bob={"review": DOWN})
        planned = witan("retry", "last", "--plan", "--json")
        text = witan("retry", "last", "--plan")
        refused = witan("retry", "last", "--plan", "--events")
        sessions = witan("sessions", "--json").json
        again = witan("retry", "last", "--json").json

        assert (planned.status, text.status, refused.status) == (0, 0, 2)
        assert planned.json["lines"] == again["events"][0]["plan"]["lines"]
        assert "if nothing fails" in text.out
        assert len(sessions["sessions"]) == 1

    def test_another_ceiling_applies_to_the_new_session_alone(self, witan, tmp_path):
        """For its own calls; the earlier session keeps its own."""
        first = degraded(witan, tmp_path, bob={"review": DOWN})
        ceilings = ["--max-cost", 0.25, "--max-calls", 9]
        planned = witan("retry", "last", "--plan", "--json", *ceilings).json
        again = witan("retry", "last", "--json", *ceilings).json
        before = witan("show", first, "--json").json

        limits = [each["events"][0]["procedure"]["limits"] for each in (before, again)]
        assert (planned["max_cost_usd"], planned["max_calls"]) == (0.25, 9)
        assert [each["max_cost_usd"] for each in limits] == [None, 0.25]
        assert [each["max_calls"] for each in limits] == [None, 9]

    def test_both_sessions_are_stored_and_linked(self, witan, tmp_path):
        """Each names the other and the seats retried."""
        first = degraded(witan, tmp_path, bob={"review": DOWN})
        again = witan("retry", "last", "--json").json["session"]

        assert f"retried as {again}\n" in witan("show", first).out
        assert f"retries {first}: bob asked again\n" in witan("show", again).out
        [row] = [line for line in witan("sessions").lines if "retries" in line]
        assert again.startswith(row.split()[0])
        assert first.startswith(row.rpartition("retries ")[2])

    def test_a_retry_without_gain_says_so(self, witan, tmp_path):
        """On the trust line, and only if no seat answered."""
        options = write_council(tmp_path, bob={"review": DOWN})
        said = witan("ask", "Is it so?", *options, "--json", "--seed", 3)
        vain = witan("retry", "last")
        write_council(tmp_path)
        gained = witan("retry", said.json["session"])

        words = "bob failed again; the result is unchanged"
        assert f"{words} · degraded: bob" in " ".join(vain.err.split())
        assert "nothing was gained" not in said.err + gained.err

    def test_a_single_seat_can_be_retried(self, witan, tmp_path):
        """The others stay failed."""
        degraded(witan, tmp_path, ada={"review": DOWN}, bob={"review": DOWN})
        said = witan("retry", "last", "--seat", "bob", "--json")

        [line] = said.json["missing"]
        assert all(fact in line for fact in ("ada cast no ballot", "is down"))

    def test_the_file_is_unchanged(self, witan, tmp_path):
        """The new record goes to --save."""
        degraded(witan, tmp_path, bob={"review": DOWN})
        (tmp_path / "first.json").write_text(witan("show", "last", "--json").out, encoding="utf-8")
        record = (tmp_path / "first.json").read_bytes()
        said = witan("retry", "first.json", "--no-history", "--save", "again.json")

        assert said.status == 0
        assert (tmp_path / "first.json").read_bytes() == record
        saved = json.loads((tmp_path / "again.json").read_text(encoding="utf-8"))
        assert saved["status"] == "complete"

    def test_a_record_from_elsewhere_needs_trust(self, witan, tmp_path):
        """As for resume."""
        seats = tuple(program_seat(name) for name in ("ada", "bob", "cyd"))
        story = Story("ada", "bob", "cyd", seats=seats)
        session = Session.of(story.answers(ada="Yes.", bob="No."))
        (tmp_path / "theirs.json").write_text(session_to_json(session), encoding="utf-8")
        theirs = witan("retry", "theirs.json", "--no-history")

        assert theirs.status == 2
        assert "allow it with --trust" in theirs.err

    def test_own_programs_need_no_trust(self, witan, place):
        """Sessions in the history run as before."""
        seats = tuple(program_seat(name) for name in ("ada", "bob", "cyd"))
        story = Story("ada", "bob", "cyd", seats=seats)
        keep(place, Session.of(story.answers(ada="Yes.", bob="No.")).events)

        assert "--trust" not in witan("retry", "last").err


class TestRefusals:
    """One line with the problem and a remedy."""

    def test_a_complete_session_is_refused(self, witan, tmp_path):
        """Nothing failed."""
        name = degraded(witan, tmp_path)
        said = witan("retry", "last")

        assert said.status == 3
        assert all(fact in said.err for fact in ("no seat failed", name))

    def test_a_seat_that_did_not_fail_is_refused(self, witan, tmp_path):
        """With the failed ones."""
        degraded(witan, tmp_path, bob={"review": DOWN})
        said = witan("retry", "last", "--seat", "ada")

        assert said.status == 2
        assert "a seat that failed: bob" in said.err
