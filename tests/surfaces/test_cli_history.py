"""Sessions in the history, black box: found by name, listed, counted again, forgotten."""

import pytest

from histories import stages
from recorded import keep, listed
from sessions import Story
from witan.deliberation.record import session_to_json
from witan.deliberation.session import Session
from witan.history import History, SessionImport

pytestmark = pytest.mark.usefixtures("place")


class TestNames:
    """A unique prefix of its name identifies a session."""

    @pytest.fixture(autouse=True)
    def _three(self, place):
        keep(place, *(s for name in ("20261121-1a", "20261121-1b", "q7") for s in stages(name)))

    def test_a_unique_prefix_is_enough(self, witan):
        """Even one letter."""
        assert "20261121-1b" in witan("show", "20261121-1b").lines[0]
        assert "q7" in witan("show", "q").lines[0]

    def test_an_ambiguous_prefix_lists_the_candidates(self, witan):
        said = witan("show", "2026")

        assert said.status == 2
        assert "20261121-1a, 20261121-1b" in said.err

    @pytest.mark.parametrize("command", ["show", "recount", "resume"])
    def test_an_unknown_name_suggests_the_nearest(self, witan, place, command):
        """With the location searched."""
        said = witan(command, "20261121-1c")

        assert said.status == 2
        assert said.err.startswith(f"witan: {place}: no session or file is named '20261121-1c'")
        assert "did you mean 20261121-1" in said.err

    @pytest.mark.parametrize("name", ["gone.json", "folder/gone"])
    def test_a_path_is_a_file(self, witan, name):
        """A path or ``.json`` is never looked up in the history."""
        assert witan("show", name).err.startswith(f"witan: {name}: cannot be read")

    def test_a_file_takes_precedence(self, witan, tmp_path):
        """A file may be called like a session."""
        story = Story("a", "b", "c", session="filed").answers(a="Yes.", b="No.", c="Or so.")
        (tmp_path / "q7").write_text(session_to_json(Session.of(story)), encoding="utf-8")

        assert witan("show", "q7").lines[0].startswith("session · filed")

    def test_last_is_the_most_recent_session(self, witan, seats):
        asked = witan("ask", "And now?", "--json", *seats)

        assert witan("show", "last", "--json").out == asked.out

    def test_a_session_is_continued_by_name(self, witan, seats):
        """``--continue`` goes on from a final answer in the history."""
        witan("ask", "Is it so?", *seats)
        said = witan("ask", "And then?", "--continue", "last", "--json", *seats)

        [opened, *_] = said.json["events"]
        assert [turn["text"] for turn in opened["conversation"]] == ["Is it so?", "All told: so."]
        [parent] = (x["session"] for x in listed(witan) if x["question"] == "Is it so?")
        assert (opened["parent"], opened["relation"]) == (parent, "continued")
        assert f"continues {parent}\n" in witan("show", "last").out
        assert f"continued as {said.json['session']}\n" in witan("show", parent).out
        assert witan("plan", "And then?", "--continue", "last", *seats).status == 0

    def test_a_session_in_a_file_is_continued_likewise(self, witan, seats):
        """The record names its session."""
        first = witan("ask", "Is it so?", "--no-history", "--save", "first.json", "--json", *seats)
        said = witan("ask", "And then?", "--continue", "first.json", "--json", *seats)

        assert said.json["events"][0]["parent"] == first.json["session"]

    def test_a_plan_needs_a_history_only_to_continue(self, witan, seats, tmp_path):
        """Otherwise it neither needs nor creates one."""
        none = tmp_path / "none.sqlite"
        planned = witan("plan", "Which?", "--history", none, *seats)
        said = witan("plan", "Which?", "--history", none, "--continue", "last", *seats)

        assert planned.status == 0
        assert (said.status, said.out) == (2, "")
        assert f"{none}: there is no history" in said.err
        assert not none.exists()

    def test_the_category_is_shown(self, witan, seats):
        witan("ask", "Is it so?", "--category", "coding", *seats)

        assert "category coding" in witan("show", "last").lines

    def test_a_session_is_recounted_by_name(self, witan):
        """Under a selected rule."""
        [found] = witan("recount", "q7", "--rule", "schulze", "--json").json["sessions"]

        assert (found["session"], found["rule"]) == ("q7", "schulze")

    @pytest.mark.parametrize(
        ("options", "said"),
        [
            (("--threshold", 3), "threshold has no effect"),
            (("--reliability", "ada=1"), "reliability has no effect"),
            (("--threshold", 3, "--ties", "intervals"), None),
        ],
    )
    def test_a_recount_says_which_setting_has_no_effect(self, witan, options, said):
        """And nothing of one that has."""
        [found] = witan("recount", "q7", *options, "--json").json["sessions"]

        effects = [each for each in found["warnings"] if "has no effect" in each]
        assert [each.partition(":")[0] for each in effects] == ([] if said is None else [said])

    def test_reading_creates_no_history(self, witan, tmp_path):
        """A misspelt path is reported and stays empty."""
        said = witan("sessions", "--history", tmp_path / "none.sqlite")

        assert said.status == 2
        assert "there is no history yet" in said.err
        assert not (tmp_path / "none.sqlite").exists()


class TestImported:
    """Imported sessions are shown and counted."""

    @pytest.fixture(autouse=True)
    def _imported(self, place):
        from elections import ballot

        cast = ("x: y > z", "y: x > z", "z: x > y")
        ballots = tuple(ballot(line, session="old") for line in cast)
        answers = {"x": "The first.", "y": "The second.", "z": "The third."}
        with History.open(place) as history:
            one = SessionImport("old", question="Which?", ballots=ballots, answers=answers)
            history.add([one], "file.jsonl", "digest")

    def test_it_is_shown_with_its_standings(self, witan):
        """With source, question, answers and outcome."""
        said = witan("show", "old")

        assert said.status == 0
        for part in ("old · imported from file.jsonl", "Which?", "The second.", "x is ahead"):
            assert part in said.out

    def test_it_is_counted_by_another_rule(self, witan):
        """``recount`` counts its ballots, without a reviewer too."""
        [found] = witan("recount", "old", "--rule", "borda", "--json").json["sessions"]
        [less] = witan("recount", "old", "--without", "y", "--json").json["sessions"]

        assert (found["rule"], found["leaders"]) == ("borda", ["x"])
        assert less["n_ballots"] == 2

    @pytest.mark.parametrize(
        "arguments",
        [["resume", "old"], ["show", "old", "--events"], ["recount", "old", "--without", "q"]],
    )
    def test_missing_data_is_reported(self, witan, arguments):
        """It has no events to resume, and absent reviewers are unknown."""
        said = witan(*arguments)

        assert said.status == 2
        assert len(said.err.splitlines()) == 1


class TestSessions:
    """The list can be filtered."""

    @pytest.fixture(autouse=True)
    def _several(self, place):
        from datetime import timedelta

        from histories import ASKED

        questions = ("Which hash map?", "Which array?", "Whose [31mred[0m\nline?")
        for k, question in enumerate(questions):
            at = ASKED + timedelta(days=k)
            told = [*stages(f"s{k}", at=at, question=question, category="coding" if k else None)]
            keep(place, *(told[:-1] if k == 2 else told))

    @pytest.mark.parametrize(
        ("arguments", "found"),
        [
            ([], ["s2", "s1", "s0"]),
            (["which"], ["s1", "s0"]),
            (["HASH", "map"], ["s0"]),
            (["--since", "2026-11-22"], ["s2", "s1"]),
            (["--until", "2026-11-22T00:00:00Z"], ["s0"]),
            (["--category", "coding", "--limit", "1"], ["s2"]),
            (["--status", "interrupted"], ["s2"]),
            (["--simulated"], []),
        ],
    )
    def test_the_list_is_filtered(self, witan, arguments, found):
        """By text, time, category and status, the latest first."""
        said = witan("sessions", "--json", *arguments)

        assert [line["session"] for line in said.json["sessions"]] == found

    def test_each_session_has_one_line(self, witan):
        """Questions with line breaks or escape sequences stay on it, escaped."""
        said = witan("sessions")

        assert len(said.lines) == 6
        assert "\x1b" not in said.out
        assert said.err == ""

    def test_omitted_sessions_are_mentioned(self, witan):
        assert "these 2; --limit NUMBER" in witan("sessions", "--limit", "2").out
        assert "more than this one; --limit" in witan("sessions", "--limit", "1").out

    @pytest.mark.parametrize(
        "arguments",
        [
            ["--since", "yesterday"],
            ["--since", "3x"],
            ["--since", "99999999999d"],
            ["--since", "2026-11-23", "--until", "2026-11-22"],
            ["--limit", "0"],
            ["--limit", "99999999999999999999"],
            ["--status", "done"],
            ["--after", "yesterday"],
        ],
    )
    def test_misuse_is_one_sentence(self, witan, arguments):
        """For an invalid time, number or status."""
        said = witan("sessions", *arguments)

        assert said.status == 2
        assert said.out == ""
        assert len(said.err.splitlines()) == 1


class TestScripts:
    """Simulated sessions are listed, marked, and can be left out."""

    def test_simulated_sessions_are_marked(self, witan, place):
        """A history with only these is not called empty."""
        keep(place, *stages("s1", simulated=True))

        assert "simulated, complete" in witan("sessions").out
        assert "No matching sessions" in witan("sessions", "--no-simulated").out


class TestForget:
    """Deleted sessions leave no trace."""

    @pytest.fixture(autouse=True)
    def _two(self, place):
        keep(place, *stages("s1", question="Who is Mallory?"), *stages("s2"))

    def test_no_text_of_it_remains(self, witan, place):
        """Neither in the list nor in the file."""
        said = witan("forget", "s1", "--yes")

        assert (said.status, said.lines[1]) == (0, "1 session forgotten.")
        assert [line["session"] for line in listed(witan)] == ["s2"]
        assert all(b"Mallory" not in path.read_bytes() for path in place.parent.iterdir())

    def test_without_a_terminal_yes_is_required(self, witan):
        """Piped, nothing is deleted without ``--yes``."""
        said = witan("forget", "--all")

        assert said.status == 2
        assert "2 sessions would be deleted" in said.err
        assert len(listed(witan)) == 2

    def test_the_confirmation_shows_the_full_name(self, witan):
        """For a prefix or `last`."""
        said = witan("forget", "s2")

        assert said.status == 2
        assert all(fact in said.err for fact in ("1 session (s2)", "add --yes"))

    @pytest.mark.parametrize(
        ("arguments", "left"),
        [(["--before", "2026-11-21"], 2), (["--before", "2026-11-22"], 0), (["--all"], 0)],
    )
    def test_many_are_deleted_at_once(self, witan, arguments, left):
        """By age, or all of them."""
        said = witan("forget", "--yes", "--json", *arguments)

        assert len(said.json["sessions"]) == 2 - left
        assert len(listed(witan)) == left

    @pytest.mark.parametrize("arguments", [[], ["s1", "--all"], ["nobody", "--yes"]])
    def test_misuse_deletes_nothing(self, witan, arguments):
        """No name, too many names, or an unknown one."""
        assert witan("forget", *arguments).status == 2
        assert len(listed(witan)) == 2


class TestDoctor:
    """The report about the history."""

    def test_it_names_the_history(self, witan, place):
        """With location, kind and size."""
        keep(place, *stages("s1"), next(stages("s2")))
        said = witan("doctor", "--offline", "--json").json["history"]

        assert said["place"] == str(place)
        assert said["found"]["version"] >= 1
        assert (said["found"]["n_sessions"], said["found"]["n_interrupted"]) == (2, 1)
        assert f"History at {place}" in witan("doctor", "--offline").out

    def test_it_creates_no_history(self, witan, place):
        assert "does not exist yet" in witan("doctor", "--offline").out
        assert not place.exists()

    def test_an_unreadable_history_is_a_problem(self, witan, place, monkeypatch):
        """A question would be refused; no password is shown."""
        place.parent.mkdir()
        place.write_text("This is a text, and no history at all.", encoding="utf-8")
        said = witan("doctor", "--offline")
        assert said.status == 2
        assert "is not a SQLite file" in said.out

        monkeypatch.setenv("WITAN_HISTORY", "postgresql://me:hush@127.0.0.1:1/x")
        assert "hush" not in witan("doctor").out
