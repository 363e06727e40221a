"""A member with a wrong address is on no leaderboard and in no audit, black box."""

from http.server import BaseHTTPRequestHandler

import pytest

from handlers import QuietHandler, run_handler
from services import write_config

NOWHERE = "lost=http://127.0.0.1:9/v1#x"
"""Nothing listens there."""


pytestmark = pytest.mark.usefixtures("place")


@pytest.fixture
def seats(tmp_path):
    """Two members who play scripts, and one at a wrong address."""
    write_config(tmp_path)
    scripts = (f"--member=script:{tmp_path / name}.toml" for name in ("ada", "bob"))
    return [*scripts, f"--member={NOWHERE}"]


def rows(place, sql):
    from witan.history import History

    with History.open(place, reading=True) as history:
        return history.database.rows(sql)


def test_a_member_with_a_wrong_address_is_excluded_from_reports(witan, seats, place):
    """The others are counted; the record has the reason."""
    said = witan("ask", "Is it so?", *seats)

    assert said.status == 0
    assert "lost did not answer" in said.err
    failed = [e for e in witan("show", "last", "--json").json["events"] if "failed" in e["event"]]
    assert [event["misconfigured"] for event in failed] == [True]
    assert rows(place, "SELECT seat, failed FROM answers ORDER BY seat") == [("ada", 0), ("bob", 0)]
    assert rows(place, "SELECT COUNT(*) FROM ballots") == [(2,)]


def test_a_session_without_answers_is_excluded_from_reports(witan, place):
    """It is in the history."""
    nowhere = NOWHERE.replace("lost", "lost2")
    said = witan("ask", "Is it so?", f"--member={NOWHERE}", f"--member={nowhere}")

    assert said.status == 3
    assert rows(place, "SELECT status FROM sessions") == [("failed",)]
    for table in ("answers", "ballots", "standings"):
        assert rows(place, f"SELECT COUNT(*) FROM {table}") == [(0,)]  # noqa: S608


def test_a_juror_with_a_wrong_address_is_excluded_from_reports(witan, seats, place, tmp_path):
    """The audit has no abstention of it, as no model abstained."""
    jury = [f"--jury=script:{tmp_path / name}.toml" for name in ("ada", "bob")]
    said = witan("ask", "Is it so?", *seats[:2], *jury, NOWHERE.replace("lost", "--jury=lost"))

    assert "lost cast no ballot" in said.err
    assert rows(place, "SELECT abstained FROM ballots") == [(0,), (0,)]


class ModerationServer(QuietHandler, BaseHTTPRequestHandler):
    """A provider that refuses prompts with 403."""

    def do_POST(self):
        self.read_json()
        self.reply(403, {"error": {"message": "Your input was flagged by moderation"}})


def test_a_moderated_question_counts_as_a_failed_answer(witan, seats, place):
    """Moderation is the model's behaviour, so the audit includes the member."""
    with run_handler(ModerationServer) as url:
        said = witan("ask", "Is it so?", *seats[:2], f"--member=strict={url}/v1#x")

    assert "strict did not answer" in said.err
    found = rows(place, "SELECT seat, failed FROM answers ORDER BY seat")
    assert found == [("ada", 0), ("bob", 0), ("strict", 1)]
