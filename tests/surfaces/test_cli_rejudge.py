"""``witan rejudge``, black box: stored answers reviewed by another jury; both sessions stay."""

import json

import pytest

from scripts import write_council, write_script
from witan.deliberation.record import event_from_json
from witan.surfaces.live_board import Board

REVERSED = ["Cyd says", "Bob says", "Ada says"]


@pytest.fixture
def session(witan, tmp_path, place):
    """A session in which Ada, Bob and Cyd prefer Ada's answer, and its record in a file."""
    record = tmp_path / "first.json"
    folder = tmp_path / "council"
    folder.mkdir()
    seats = write_council(folder)
    said = witan("ask", "Which?", *seats, "--save", record, "--history", place, "--seed", 1)
    assert said.status == 0
    return record


@pytest.fixture
def jury(tmp_path):
    """The options that seat three jurors who prefer Cyd's answer, and their chairman."""
    options = []
    for name in ("xan", "yma", "zoe"):
        path = write_script(tmp_path / f"{name}.toml", review=[{"prefers": REVERSED}])
        options += ["--member", f"script:{path}"]
    chair = write_script(tmp_path / "judge.toml", synthesis=[{"text": "On reflection: so."}])
    return [*options, "--chairman", f"script:{chair}"]


class TestRejudging:
    """A new session of the same answers."""

    def test_the_jury_has_its_own_outcome(self, witan, session, jury, place):
        """Its final answer is printed; same answers, another leader."""
        said = witan("rejudge", session, *jury, "--history", place)
        again = witan("show", "last", "--history", place, "--json").json
        first = json.loads(session.read_text(encoding="utf-8"))

        assert (said.status, said.out) == (0, "On reflection: so.\n")
        assert "3 of 3 reviewers" in said.err
        assert again["answers"] == first["answers"]
        leaders = [held["outcome"]["standings"][0]["candidate"] for held in (first, again)]
        assert leaders == ["ada", "cyd"]
        assert [ballot["reviewer"] for ballot in again["ballots"]] == ["xan", "yma", "zoe"]

    def test_a_plan_makes_no_call(self, witan, session, jury):
        """The session opens with the same plan."""
        planned = witan("rejudge", session, *jury, "--plan", "--json")
        again = witan("rejudge", session, *jury, "--json", "--no-history").json

        assert planned.status == 0
        assert planned.json["lines"] == again["events"][0]["plan"]["lines"]

    def test_a_session_is_identified_by_name(self, witan, session, jury, place):
        """`last` or a prefix work as well as a file."""
        name = json.loads(session.read_text(encoding="utf-8"))["session"]
        for meant in (name, name[:-3]):
            again = witan("rejudge", meant, *jury, "--history", place, "--json").json

            assert again["events"][0]["parent"] == name
            assert again["events"][0]["relation"] == "rejudged"

    def test_both_sessions_are_stored_and_linked(self, witan, session, jury, place):
        """Each names the other and its reviewers."""
        record = session.read_bytes()
        first = json.loads(record)["session"]
        again = witan("rejudge", "last", *jury, "--history", place, "--json").json["session"]

        shown = witan("show", first, "--history", place).out
        assert f"rejudged as {again}\n" in shown
        shown = witan("show", again, "--history", place).out
        assert f"rejudges {first}\n" in shown
        assert "jury: xan, yma and zoe" in shown
        assert session.read_bytes() == record

        ballots = witan("export", "--kind", "ballots", "--all", "--history", place)
        assert "1 session retried or rejudged" in ballots.err

    def test_without_a_history_a_file_is_enough(self, witan, session, jury, tmp_path):
        """The record goes where --save says, and names its parent."""
        again = tmp_path / "again.json"
        said = witan("rejudge", session, *jury, "--no-history", "--save", again)

        assert said.status == 0
        assert "rejudges" in witan("show", again).out

    def test_an_interrupted_rejudgment_can_be_resumed(self, witan, session, jury, tmp_path):
        """Stored ballots count; the rest is requested, and its chairman writes."""
        again = tmp_path / "again.json"
        witan("rejudge", session, *jury, "--no-history", "--save", again)
        record = json.loads(again.read_text(encoding="utf-8"))
        kinds = [event["event"] for event in record["events"]]
        record["events"] = record["events"][: kinds.index("ballot_cast") + 1]
        again.write_text(json.dumps(record), encoding="utf-8")

        said = witan("resume", again, "--no-history")

        assert (said.status, said.out) == (0, "On reflection: so.\n")
        events = witan("show", again, "--json").json["events"]
        cast = [event["seat"] for event in events if event["event"] == "ballot_cast"]
        assert sorted(cast) == ["xan", "yma", "zoe"]

    def test_an_author_on_the_jury_is_recused(self, witan, session, jury, tmp_path, place):
        """Cyd's script in a juror's seat, whatever it is called, does not see Cyd's answer."""
        author = f"judge=script:{tmp_path / 'council' / 'cyd.toml'}"
        args = [*jury, "--member", author, "--history", place, "--json"]
        record = witan("rejudge", session, *args).json

        [sheet] = [
            event["sheet"]
            for event in record["events"]
            if event["event"] == "sheet_drawn" and event["sheet"]["reviewer"] == "judge"
        ]
        assert sorted(sheet["candidates"]) == ["ada", "bob"]

    @pytest.mark.parametrize("command", ["rejudge", "ask"])
    def test_an_absent_configured_chairman_is_skipped(
        self, witan, session, jury, tmp_path, command
    ):
        """With other members, one of these writes, and a note says so."""
        options = jury[: jury.index("--chairman")]
        for name in ("xan", "yma", "zoe"):
            script = {"review": [{"prefers": REVERSED}], "synthesis": [{"text": f"{name}: so."}]}
            answer = [{"text": f"{name} says so."}]
            write_script(tmp_path / f"{name}.toml", answer=answer, **script)
        config = tmp_path / "witan.toml"
        seats = [str(tmp_path / "council" / f"{name}.toml") for name in ("ada", "bob")]
        members = ", ".join(f'"script:{path}"' for path in seats)
        config.write_text(f'members = [{members}]\nchairman = "ada"\n', encoding="utf-8")

        what = session if command == "rejudge" else "Which?"
        said = witan(command, what, *options, "--config", config, "--no-history")

        assert said.status == 0
        assert said.out.endswith(": so.\n")
        assert "chairman ada has no seat" in said.err

    def test_an_unknown_chairman_is_refused(self, witan, session, jury, tmp_path):
        """If the members are unchanged."""
        config = tmp_path / "witan.toml"
        members = ", ".join(f'"{seat}"' for seat in jury[1:6:2])
        config.write_text(f'members = [{members}]\nchairman = "ada"\n', encoding="utf-8")

        said = witan("rejudge", session, "--config", config, "--no-history")

        assert said.status == 2
        assert "unknown member 'ada'" in said.err

    def test_the_live_view_has_a_line_per_juror(self, witan, session, jury):
        """Reviews are pending from the start, and no answer is."""
        board, phases = Board(), []
        for line in witan("rejudge", session, *jury, "--no-history", "--events").lines:
            board = board.apply_event(event_from_json(line))
            phases.append(board.phase)

        assert [(line.name, line.state) for line in board.seats] == [
            ("xan", "voted"),
            ("yma", "voted"),
            ("zoe", "voted"),
        ]
        assert list(dict.fromkeys(phases)) == ["reviews", "synthesis", "closed"]


class TestRefusals:
    """An invalid request is one sentence."""

    @pytest.mark.usefixtures("session")
    @pytest.mark.parametrize("name", ["nope", "nope.json"])
    def test_an_unknown_session_is_refused(self, witan, jury, place, name):
        """With its name and the location searched."""
        said = witan("rejudge", name, *jury, "--history", place)

        assert (said.status, said.out) == (2, "")
        assert "nope" in said.err
        assert "Traceback" not in said.err

    def test_a_single_answer_is_refused(self, witan, jury, tmp_path, place):
        """Before any call."""
        silent = {"answer": [{"error": "is down"}]}
        folder = tmp_path / "quiet"
        folder.mkdir()
        seats = write_council(folder, bob=silent, cyd=silent)
        witan("ask", "Which?", *seats, "--history", place, "--attempts", 1)
        said = witan("rejudge", "last", *jury, "--history", place)

        assert said.status == 3
        assert "has one answer" in said.err

    @pytest.mark.parametrize("option", ["--debate-rounds", "--enough", "--self-review"])
    def test_options_for_members_are_not_offered(self, witan, jury, session, option):
        """A jury does not answer."""
        assert witan("rejudge", session, *jury, option, 1).status == 2

    def test_json_and_events_exclude_each_other(self, witan, jury, session):
        """They cannot share standard output."""
        assert witan("rejudge", session, *jury, "--json", "--events").status == 2
