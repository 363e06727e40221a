"""``witan show``, ``recount`` and ``resume``, black box."""

import json

import pytest

from scripts import write_council
from sessions import Story
from witan.deliberation import events as e
from witan.deliberation.ports import Seat
from witan.deliberation.procedure import Procedure
from witan.deliberation.record import session_from_json, session_to_json
from witan.deliberation.session import Session


@pytest.fixture
def record(tmp_path):
    """Write a recorded session to a file."""

    def to(story: Story):
        path = tmp_path / "session.json"
        path.write_text(session_to_json(Session.of(story)), encoding="utf-8")
        return path

    return to


def council() -> Story:
    """Four reviewers: three put a first, the last one puts c first; one seat failed."""
    story = Story("a", "b", "c", "d").answers(a="Yes.", b="No.", c="Perhaps.", d="Never.")
    for line in ("a: b > c > d", "b: a > c > d", "c: a > b > d", "d: c > a > b"):
        story.casts(line)
    return story


class TestShow:
    """A stored session, unchanged."""

    def test_it_shows_everything(self, witan, record):
        """Question, answers, standings and final answer."""
        said = witan("show", record(council().closing("So: yes.").closed()))

        assert said.status == 0
        assert said.err == ""
        for part in (
            "Which?",
            "Perhaps.",
            "The rule borda counted 4 ballots",
            "a: b > c > d",
            "So: yes.",
            "4 of 4",
        ):
            assert part in said.out

    def test_json_prints_the_record(self, witan, record):
        """It can be read as the same session."""
        path = record(council().closed())

        shown = witan("show", path, "--json").out

        stored = path.read_text(encoding="utf-8")
        assert session_from_json(shown) == session_from_json(stored)
        assert json.loads(shown)["events"] == json.loads(stored)["events"]

    def test_events_prints_the_stream(self, witan, record):
        """Every stored event, in order."""
        story = council().closed()
        said = witan("show", record(story), "--events")

        assert [json.loads(line)["event"] for line in said.lines] == [e.kind for e in story]

    def test_json_and_events_exclude_each_other(self, witan, record):
        assert witan("show", record(council()), "--json", "--events").status == 2

    @pytest.mark.parametrize("command", ["show", "recount", "resume"])
    @pytest.mark.parametrize(
        "content", [None, b"", b"{}", b"[1]", b"\xff", b'{"witan_session": 99, "events": []}']
    )
    def test_an_invalid_file_is_one_sentence(self, witan, tmp_path, command, content):
        """It is named, nothing is printed, and it is unchanged."""
        path = tmp_path / "broken.json"
        if content is not None:
            path.write_bytes(content)
        said = witan(command, path)

        assert said.status == 2
        assert said.out == ""
        assert "broken.json" in said.err
        assert "Traceback" not in said.err
        assert (path.read_bytes() if path.exists() else None) == content


class TestRecount:
    """The stored ballots under another rule, or without some of them."""

    def test_without_options_nothing_changes(self, witan, record):
        """The session's own settings reproduce its outcome."""
        path = record(council().closed())
        [again] = witan("recount", path, "--json").json["sessions"]

        assert again["leaders"] == ["a"]
        assert again["n_ballots"] == 4

    def test_another_rule_is_named_in_the_outcome(self, witan, record):
        """The text is that of ``witan tally``, under the rule asked for."""
        said = witan("recount", record(council().closed()), "--rule", "schulze")

        assert said.lines[2].startswith("The rule schulze counted ")

    def test_a_reviewer_is_left_out(self, witan, record):
        """Its ballot does not count; its answer stays."""
        path = record(council().closed())
        [found] = witan("recount", path, "--without", "d", "--json").json["sessions"]

        assert found["n_ballots"] == 3
        assert "d" in [line["candidate"] for line in found["standings"]]

    def test_other_settings_are_those_of_the_session(self, witan, record):
        """A given level applies; the rule stays the session's."""
        path = record(council().closed())
        [held] = witan("recount", path, "--json").json["sessions"]
        [found] = witan("recount", path, "--level", "0.8", "--json").json["sessions"]

        assert (held["level"], found["level"]) == (0.95, 0.8)
        assert found["rule"] == held["rule"]

    def test_parameters_reach_the_rule(self, witan, record):
        """``--param`` sets what the rule named beside it offers."""
        path = record(council().closed())
        said = witan("recount", path, "--rule", "borda", "--param", "variant=roster", "--json")

        assert said.json["sessions"][0]["parameters"]["variant"] == "roster"

    def test_a_simulated_session_stays_marked(self, witan, record):
        """Whatever rule counts them, ballots of scripts are called simulated."""
        story = Story("a", "b", "c", simulated=True).answers(a="Yes.", b="No.", c="Perhaps.")
        path = record(story.casts("a: b > c").casts("b: a > c").casts("c: a > b").closed())

        said = witan("recount", path, "--rule", "schulze")
        [found] = witan("recount", path, "--json").json["sessions"]

        assert said.lines[0].startswith("simulated outcome · ")
        assert found["simulated"] is True

    @pytest.mark.parametrize(
        ("arguments", "words"),
        [
            (["--rule", "schultze"], "did you mean 'schulze'?"),
            (["--without", "e"], "unknown reviewer 'e'"),
            (["--weight", "nobody=2"], "unknown reviewer 'nobody'"),
        ],
    )
    def test_misspelt_names_are_refused(self, witan, record, arguments, words):
        """The nearest rule is named, and the reviewers there are."""
        said = witan("recount", record(council().closed()), *arguments)

        assert said.status == 2
        assert words in said.err

    def test_no_ballot_left_is_no_quorum(self, witan, record):
        """Leaving everyone out counts nothing."""
        said = witan(
            "recount", record(council()), *(part for r in "abcd" for part in ("--without", r))
        )

        assert said.status == 3


class TestResume:
    """An interrupted session continues; a finished one does not."""

    def test_a_finished_session_is_shown(self, witan, tmp_path, monkeypatch):
        """No call is made, and the record is unchanged byte for byte."""
        monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
        monkeypatch.chdir(tmp_path)
        path = tmp_path / "whole.json"
        witan("ask", "Is it so?", "--save", path, *write_council(tmp_path))
        before = path.read_bytes()
        write_council(tmp_path, ada={"answer": [{"error": "is down", "status": 401}]})
        said = witan("resume", path)

        assert said.status == 0
        assert said.out == "All told: so.\n"
        assert path.read_bytes() == before

    def test_a_finished_session_needs_neither_keys_nor_members(self, witan, record, monkeypatch):
        """It is shown though none of its seats could be used now."""
        monkeypatch.delenv("OPENAI_API_KEY", raising=False)
        story = council_of(Seat("a", "openai:m", "openai"), Seat("b", "cmd:x", "cmd"))
        said = witan("resume", record(story.answers(a="A.", b="B.").closing("So.").closed()))

        assert (said.out, said.err.count("Traceback")) == ("So.\n", 0)

    def test_legend_and_trust_of_real_models_are_printed_in_a_pipe(self, witan, record):
        """On stderr, for a complete session off a terminal."""
        story = council_of(Seat("a", "openai:m", "openai"), Seat("b", "cmd:x", "cmd"))
        story.answers(a="A.", b="B.").closing("So says [A].", labels={"A": "a", "B": "b"})
        path = record(story.closed())

        legend, trust = witan("resume", path).err.splitlines()
        assert legend == "[A] a, [B] b"
        assert trust.startswith("0 of ")
        assert witan("resume", path, "--quiet").err == ""

    def test_a_gate_prints_the_vote(self, witan, record):
        """The trust line of a verdict begins with it, unless --quiet."""
        story = Story("a", "b", procedure=Procedure(mode="verdict"))
        story.answers(a="VERDICT: APPROVE", b="VERDICT: REJECT").casts("a: b").casts("b: a")
        path = record(story.closing("So.", mode="verdict", approved=False).closed())

        assert witan("resume", path).err.startswith("rejected · 1 of 2 members approves · ")
        assert witan("resume", path, "--quiet").err == ""

    def test_an_answer_that_failed_the_safety_gate_is_named(self, witan, record):
        """Also in a pipe and for a complete session."""
        story = council().tell(e.GateVerdict, seat="a", flags=("personal data",))
        said = witan("resume", record(story.closing("So.").closed()))

        assert " · a failed the safety gate · " in said.err

    @pytest.mark.parametrize("until", ["session_opened", "answer_done", "ballot_cast"])
    def test_a_failed_resume_can_be_repeated(self, witan, tmp_path, monkeypatch, until):
        """While all seats are down the record only notes the attempt; later it is completed."""
        monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
        path = tmp_path / "cut.json"
        witan("ask", "Is it so?", "--no-history", "--save", path, *write_council(tmp_path))
        whole = session_from_json(path.read_text(encoding="utf-8"))
        kinds = [event.kind for event in whole.events]
        cut = Session.of(whole.events[: len(kinds) - kinds[::-1].index(until)])
        path.write_text(session_to_json(cut) + "\n", encoding="utf-8")
        before = json.loads(path.read_text(encoding="utf-8"))
        down = [{"error": "is down", "status": 401}]
        every = {"answer": down, "review": down, "synthesis": down}
        write_council(tmp_path, ada=every, bob=every, cyd=every, chair=every)

        said = witan("resume", path)

        assert said.err.endswith(
            f"resuming produced nothing new: {path} is still interrupted, and can be resumed\n"
        )
        assert said.status == (0 if until == "ballot_cast" else 3)
        after = json.loads(path.read_text(encoding="utf-8"))
        assert after["cost"].pop("calls") > before["cost"].pop("calls")  # refused ones count
        for unchanged in ("status", "answers", "synthesis", "cost"):
            assert after[unchanged] == before[unchanged]
        stood = len(before["events"])
        assert after["events"][:stood] == before["events"]
        assert after["events"][-1]["event"] == "sitting_in_vain"
        assert after["events"][-1]["since"] == before["events"][-1]["seq"]
        write_council(tmp_path)
        assert witan("resume", path).out == "All told: so.\n"
        assert json.loads(path.read_text(encoding="utf-8"))["status"] == "complete"

    def test_the_session_keeps_its_procedure(self, witan, tmp_path, monkeypatch):
        """Whatever is configured now."""
        monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
        monkeypatch.chdir(tmp_path)
        path = tmp_path / "cut.json"
        council_options = write_council(tmp_path)
        witan("ask", "So?", "--rule", "schulze", "--no-history", "--save", path, *council_options)
        whole = session_from_json(path.read_text(encoding="utf-8"))
        path.write_text(session_to_json(Session.of(whole.events[:6])), encoding="utf-8")
        (tmp_path / "witan.toml").write_text('quorum = 9\nrule = "borda"\nmode = "best"')

        said = witan("resume", path)

        assert (said.status, said.out) == (0, "All told: so.\n")
        assert session_from_json(path.read_text(encoding="utf-8")).settings.rule == "schulze"

    @pytest.mark.parametrize(
        ("source", "refused"),
        [
            ("cmd:sh -c x", "would run cmd:sh -c x"),
            (" x = cmd:sh -c x", "would run"),
            ("http://cmd/v1#sh -c x", "would call http://cmd/v1"),
            ("http://openai/v1#m", "would call http://openai/v1"),
        ],
    )
    def test_a_record_runs_and_calls_nothing_untrusted(self, witan, record, source, refused):
        """A seat is judged by how it is parsed, whatever else the record says."""
        story = council_of(Seat("a", source, "openai"), Seat("b", source, "script"))
        said = witan("resume", record(story))

        assert said.status == 2
        assert refused in said.err
        assert "--trust" in said.err


def council_of(*seats: Seat) -> Story:
    """A session opened with these seats."""
    return Story(*(seat.name for seat in seats), seats=seats)
