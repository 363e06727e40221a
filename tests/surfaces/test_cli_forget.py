"""``witan forget``: what is deleted, what remains and is named, and files beside the history."""

import json
import time

import pytest

from histories import session_events
from recorded import keep
from scripts import write_council
from terminals import run_on_terminal
from witan.deliberation.session import Session
from witan.files.session_files import read_session
from witan.service.history_access import delete_rescued, rescue_session


def aside(tmp_path):
    return sorted(path.name for path in (tmp_path / "state").rglob("*.json"))


def listed(witan):
    return {line["session"] for line in witan("sessions", "--json").json["sessions"]}


@pytest.fixture
def family(place, witan, tmp_path):
    """A session, a rejudgment of its answers, and an unrelated session."""
    seats = write_council(tmp_path)
    parent = witan("ask", "Is it so?", "--json", *seats).json["session"]
    child = witan("rejudge", parent, "--json", *seats).json["session"]
    other = witan("ask", "Is it not?", "--json", *seats).json["session"]
    return parent, child, other


def test_sessions_derived_from_it_stay_and_are_named(witan, family):
    """A rejudgment still has the text of the deleted session."""
    parent, child, other = family

    said = witan("forget", parent, "--yes")

    assert said.status == 0
    assert f"{child} (rejudged) still holds" in said.out
    assert listed(witan) == {child, other}


@pytest.mark.parametrize("more", [[], ["--json"]])
def test_derived_sessions_are_deleted_on_request(witan, family, more):
    """With ``--with-children`` no text of it remains in the history."""
    parent, _, other = family

    said = witan("forget", parent, "--with-children", "--yes", *more)

    assert said.err == ""
    assert listed(witan) == {other}


def test_json_names_the_remaining_sessions(witan, family):
    """Those that still have its text."""
    parent, child, _ = family

    said = witan("forget", parent, "--yes", "--json").json

    assert said["sessions"] == [parent]
    assert said["children"] == {child: "rejudged"}


def test_rescued_records_are_deleted_with_it(witan, place, tmp_path):
    """All of that session, by its full name, and no others."""
    keep(place, session_events("s1"), session_events("s12"))
    for name in ("s1", "s1", "s12"):
        rescue_session(Session.of(session_events(name)))
    assert aside(tmp_path) == ["s1-2.json", "s1.json", "s12.json"]

    said = witan("forget", "s1", "--yes", "--json").json

    assert said["set_aside"] == 2
    assert aside(tmp_path) == ["s12.json"]


@pytest.fixture
def rescued_file(witan, seats, tmp_path, place):
    """The file of a session that was interrupted before its end."""
    record = witan("ask", "Is it so?", "--json", "--no-history", *seats).json
    answered = [e for e in record["events"] if e["event"] != "session_closed"]
    cut = tmp_path / "cut.json"
    cut.write_text(json.dumps({**record, "events": answered}), encoding="utf-8")
    return rescue_session(read_session(cut))


def test_a_rescued_record_is_removed_after_its_import(witan, rescued_file, tmp_path):
    """Once the history has all of it."""
    session = read_session(rescued_file).id

    said = witan("resume", rescued_file, "--trust", "--quiet")

    assert said.status == 0, said.err
    assert aside(tmp_path) == []
    assert listed(witan) == {session}


def test_a_rescued_record_stays_without_a_history(witan, rescued_file, tmp_path):
    """It is the only copy."""
    assert witan("resume", rescued_file, "--trust", "--quiet", "--no-history").status == 0
    assert aside(tmp_path) == [rescued_file.name]


def test_no_deletes_nothing_and_says_so(witan, place):
    """An answer of n keeps the session and is no interrupt."""
    keep(place, session_events("q1"))

    status, shown = run_on_terminal(["forget", "q1"], [("permanently?", "n\n")])

    assert (status, "nothing was deleted" in shown) == (1, True)
    assert listed(witan) == {"q1"}


def test_rescue_files_of_many_sessions_take_one_look_at_the_folder(tmp_path, monkeypatch):
    """For two thousand sessions the search takes little longer than for twenty."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    folder = tmp_path / "witan" / "interrupted"
    folder.mkdir(parents=True)
    for number in range(200):
        (folder / f"other{number}.json").write_text("{}")
    seconds = []
    for n_sessions in (20, 2_000):
        start = time.process_time()
        assert delete_rescued(f"s{number}" for number in range(n_sessions)) == 0
        seconds.append(time.process_time() - start)

    assert seconds[1] < 20 * seconds[0]


@pytest.mark.parametrize("ways", [[], ["last", "--all"]])
def test_sessions_are_named_in_one_way(place, witan, ways):
    """With none, or with two, nothing is deleted."""
    said = witan("forget", *ways)

    assert said.status == 2
    assert said.err == "witan: name the sessions in one way: IDs, --before TIME or --all\n"
