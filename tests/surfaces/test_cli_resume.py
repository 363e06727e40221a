"""``witan resume``, black box: an interrupted session continues where it stopped."""

import json
import os
import re
from concurrent.futures import ThreadPoolExecutor
from time import sleep

import pytest

from recorded import HANGS, interrupted, keep, listed, under_way
from scripts import write_council
from sessions import Story, program_seat
from witan.deliberation.record import session_from_json, session_to_json
from witan.deliberation.session import Session
from witan.errors import SessionFileError
from witan.surfaces.cli.ask import lock_session

pytestmark = pytest.mark.usefixtures("place")


@pytest.mark.skipif(os.name == "nt", reason="Windows sends no signals to a process")
class TestResume:
    """An interrupted session is resumed from the history."""

    def test_the_command_printed_at_ctrl_c_resumes(self, witan, tmp_path):
        """Two of three answers are stored; resuming calls the third alone."""
        status, err = interrupted(
            "ask", "Is it so?", *write_council(tmp_path, cyd={"answer": HANGS})
        )

        assert status == 130
        [line] = listed(witan)
        assert line["status"] == "interrupted"
        again = f"witan resume {line['session']}"
        assert all(fact in err for fact in ("2 of 3 answers saved", f"resume with: {again}"))

        write_council(tmp_path, ada={"answer": HANGS})
        said = witan(*again.split()[1:])

        assert (said.status, said.out) == (0, "All told: so.\n")
        assert [line["status"] for line in listed(witan)] == ["complete"]

    def test_stored_ballots_are_counted(self, tmp_path):
        """All answers and two of three ballots are there."""
        seats = write_council(tmp_path, cyd={"review": HANGS})
        _, err = interrupted("ask", "Is it so?", *seats, kind="ballot_cast")

        assert err.startswith("interrupted; 3 of 3 answers, 2 of 3 ballots saved; resume with: ")

    @pytest.mark.slow
    def test_the_command_names_a_custom_history(self, tmp_path):
        elsewhere = tmp_path / "else where.sqlite"
        seats = write_council(tmp_path, cyd={"answer": HANGS})
        _, err = interrupted("ask", "Is it so?", "--history", elsewhere, *seats)

        assert err.endswith(f" --history '{elsewhere}'\n")

    @pytest.mark.slow
    def test_save_writes_a_file_too(self, witan, tmp_path):
        """Beside the history."""
        seats = write_council(tmp_path, cyd={"answer": HANGS})
        interrupted("ask", "Is it so?", "--save", "half.json", *seats)

        assert witan("show", "half.json", "--json").out == witan("show", "last", "--json").out

    @pytest.mark.slow
    def test_a_failed_resume_can_be_repeated(self, witan, tmp_path):
        """The session stays open; the attempt is recorded."""
        interrupted("ask", "Is it so?", *write_council(tmp_path, cyd={"answer": HANGS}))
        before = witan("show", "last", "--json").json
        down = [{"error": "is down", "status": 401}]
        every = {"answer": down, "review": down, "synthesis": down}
        write_council(tmp_path, ada=every, bob=every, cyd=every, chair=every)

        said = witan("resume", "last")

        [line] = listed(witan)
        still = f"{line['session']} is still interrupted, and can be resumed"
        assert said.err.endswith(f"resuming produced nothing new: {still}\n")
        after = witan("show", "last", "--json").json
        events, since = after.pop("events"), before.pop("events")
        assert (line["status"], after["status"]) == ("interrupted", "interrupted")
        assert before["cost"].pop("calls") < after["cost"].pop("calls")  # refused ones were made
        assert (after["answers"], after["cost"]) == (before["answers"], before["cost"])
        assert events[: len(since)] == since
        assert events[-1]["event"] == "sitting_in_vain"
        write_council(tmp_path)
        assert witan("resume", "last").out == "All told: so.\n"

    @pytest.mark.slow
    def test_a_resumed_file_is_completed_in_both_places(self, witan, tmp_path, place):
        """In the file and in the history."""
        seats = write_council(tmp_path, cyd={"answer": HANGS})
        interrupted("ask", "Is it so?", "--no-history", "--save", "half.json", *seats)
        assert not place.exists()

        write_council(tmp_path)
        assert witan("resume", "half.json").status == 0

        assert [line["status"] for line in listed(witan)] == ["complete"]
        assert witan("show", "half.json", "--json").out == witan("show", "last", "--json").out

    @pytest.mark.slow
    def test_a_file_is_resumed_by_one_process_at_a_time(self, witan, tmp_path):
        """A second is refused before any call; one that was killed stands in nobody's way."""
        seats = write_council(tmp_path, cyd={"answer": HANGS})
        interrupted("ask", "Is it so?", "--no-history", "--save", "half.json", *seats)
        again = ("resume", "half.json", "--no-history")
        with under_way(*again, kind="answer_started", times=4) as first:
            before = (tmp_path / "half.json").read_text(encoding="utf-8")
            second = witan(*again)
            assert (tmp_path / "half.json").read_text(encoding="utf-8") == before
            first.kill()
        write_council(tmp_path)
        third = witan(*again)

        assert (second.status, second.out) == (2, "")
        assert "half.json: is being resumed by another process" in second.err
        assert (third.status, third.out) == (0, "All told: so.\n")
        assert not [*tmp_path.glob(".half.json*")]

    def test_a_lock_deleted_after_it_was_opened_locks_nothing(self, tmp_path):
        """Of two processes, one could hold it and the other the file made in its place."""
        lock, link = tmp_path / ".half.json.lock", tmp_path / "link"
        os.mkfifo(lock)  # opening it waits for a reader
        os.link(lock, link)

        def resume():
            with lock_session(tmp_path / "half.json"):
                pass

        with ThreadPoolExecutor() as threads:
            resuming = threads.submit(resume)
            sleep(0.5)
            lock.unlink()
            os.close(os.open(link, os.O_RDONLY | os.O_NONBLOCK))
            with pytest.raises(SessionFileError, match="is being resumed by another process"):
                resuming.result(timeout=10)

    def test_own_programs_need_no_trust(self, witan, place, tmp_path):
        """A record from elsewhere needs ``--trust``, one from the history does not."""
        story = Story(
            "ada", "bob", "cyd", seats=tuple(program_seat(n) for n in ("ada", "bob", "cyd"))
        )
        session = Session.of(story.answers(ada="Yes.", bob="No."))
        keep(place, session.events)

        own = witan("resume", "last")
        assert "--trust" not in own.err
        assert witan("show", "last").lines[0].startswith("session · s1 · ")

        (tmp_path / "theirs.json").write_text(session_to_json(session), encoding="utf-8")
        theirs = witan("resume", "theirs.json", "--no-history")
        assert theirs.status == 2
        assert "allow it with --trust" in theirs.err

    def test_a_file_of_an_own_session_needs_no_trust(self, witan, place, tmp_path):
        """The history recorded it with the same seats, so the user chose them."""
        text = session_to_json(_half_done())
        (tmp_path / "own.json").write_text(text, encoding="utf-8")
        (tmp_path / "changed.json").write_text(
            text.replace("cmd:true", "cmd:false"), encoding="utf-8"
        )
        for command in ("resume", "retry"):
            assert "allow it with --trust" in witan(command, "own.json").err
        keep(place, _half_done().events)

        for command in ("resume", "retry"):
            assert "allow it with --trust" in witan(command, "changed.json").err
        assert "--trust" not in witan("retry", "own.json").err
        assert "--trust" not in witan("resume", "own.json").err

    def test_an_imported_file_still_needs_trust(self, witan, tmp_path):
        """Another's session is not one's own by being in the history."""
        (tmp_path / "theirs.json").write_text(session_to_json(_half_done()), encoding="utf-8")
        assert witan("import", "theirs.json").status == 0

        assert "allow it with --trust" in witan("resume", "theirs.json").err

    def test_a_file_that_was_never_written_leads_to_the_history(self, witan, place):
        """As after `kill -9`: the error names the session that can be resumed."""
        alone = witan("resume", "k.json").err
        keep(place, _half_done().events)
        said = witan("resume", "k.json")

        assert (said.status, said.out) == (2, "")
        assert said.err.endswith("try witan resume s1\n")
        assert "try" not in alone

    def test_the_session_in_place_of_a_missing_file_is_found(self, witan, tmp_path):
        """The command names a history of an option, too."""
        elsewhere = tmp_path / "else where.sqlite"
        keep(elsewhere, _half_done().events)
        said = witan("resume", "k.json", "--history", elsewhere)

        assert said.err.endswith(f"try witan resume s1 --history '{elsewhere}'\n")


def _half_done() -> Session:
    """A session of programs, interrupted before its reviews."""
    seats = tuple(program_seat(seat) for seat in ("ada", "bob", "cyd"))
    story = Story("ada", "bob", "cyd", seats=seats)
    return Session.of(story.answers(ada="Yes.", bob="No."))


def test_an_edited_sheet_shows_no_reviewer_its_own_answer(witan, tmp_path):
    """Sheets are drawn again from the seed; what a file says about them is never shown."""
    file = tmp_path / "half.json"
    witan("ask", "Is it so?", *write_council(tmp_path), "--no-history", "--save", file)
    record = json.loads(file.read_text(encoding="utf-8"))
    kinds = [event["event"] for event in record["events"]]
    del record["events"][kinds.index("ballot_cast") :]
    sheet = record["events"][kinds.index("sheet_drawn")]["sheet"]
    sheet["candidates"][0] = sheet["reviewer"]
    file.write_text(json.dumps(record), encoding="utf-8")

    said = witan("resume", file, "--no-history", "--trust", "--save", "whole.json")

    whole = session_from_json((tmp_path / "whole.json").read_text(encoding="utf-8"))
    assert (said.status, whole.status) == (0, "complete")
    assert len(whole.ballots) == 3
    assert all(ballot.reviewer not in ballot.positions for ballot in whole.ballots)


class TestOldFile:
    """A file is compared with the history before anybody is asked."""

    @pytest.fixture
    def told(self, witan, tmp_path):
        """The record of a complete session; from now on nobody replies."""
        witan("ask", "Is it so?", *write_council(tmp_path), "--no-history", "--save", "whole.json")
        hangs = dict.fromkeys(("answer", "review", "synthesis"), HANGS)
        write_council(tmp_path, ada=hangs, bob=hangs, cyd=hangs, chair=hangs)
        return json.loads((tmp_path / "whole.json").read_text(encoding="utf-8"))

    def test_more_events_of_the_history_are_taken_from_it(self, witan, told, place, tmp_path):
        """With the ballots of the history, a file from before them needs the chairman alone."""
        (tmp_path / "old.json").write_text(cut(told, "review_started"), encoding="utf-8")
        keep(place, session_from_json(cut(told, "synthesis_started")).events)
        write_council(tmp_path, **{n: {"answer": HANGS, "review": HANGS} for n in ("ada", "bob")})

        said = witan("resume", "old.json")

        assert (said.status, said.out) == (0, "All told: so.\n")
        assert "more events of this session than old.json; resuming it from there" in said.err
        assert witan("show", "old.json", "--json").out == witan("show", "last", "--json").out

    def test_one_that_has_ended_in_the_history_is_refused(self, witan, told, place, tmp_path):
        """The command that shows it works, and the file can still be resumed alone."""
        (tmp_path / "old.json").write_text(cut(told, "synthesis_started"), encoding="utf-8")
        keep(place, session_from_json(json.dumps(told)).events)

        said = witan("resume", "old.json")

        words = " ".join(said.err.split())
        assert (said.status, said.out) == (2, "")
        assert f"the session {told['session']} has ended since old.json was written" in words
        show, alone = commands(words)
        assert witan(*show).status == 0
        write_council(tmp_path)
        assert witan(*alone).out == "All told: so.\n"

    def test_one_that_differs_from_the_history_is_refused(self, witan, told, place, tmp_path):
        """The first event that differs is named, and the command resumes the history's."""
        keep(place, session_from_json(cut(told, "synthesis_started")).events)
        other = json.loads(cut(told, "synthesis_started"))
        event = next(each for each in other["events"] if each["event"] == "answer_done")
        event["text"] = "No."
        (tmp_path / "other.json").write_text(json.dumps(other), encoding="utf-8")

        said = witan("resume", "other.json")

        words = " ".join(said.err.split())
        assert (said.status, said.out) == (2, "")
        assert f"differ from event {event['seq']} on; two runs are never merged" in words
        write_council(tmp_path)
        for command in commands(words):
            assert witan(*command).out == "All told: so.\n"

    @pytest.mark.slow
    def test_a_session_taken_over_is_left_in_a_file_that_can_be_shown(self, witan, tmp_path):
        """The process that lost it suggests no import, which would fail."""
        late = {"answer": [{"text": "Cyd says so.", "seconds": 10}]}
        asking = ["ask", "Is it so?", *write_council(tmp_path, cyd=late)]
        with under_way(*asking) as process:
            write_council(tmp_path)
            assert witan("resume", "last", "--take-over").out == "All told: so.\n"
            _, err = process.communicate(timeout=60)

        assert process.returncode == 3, err
        assert "ada cast no ballot: not called: the session" in " ".join(err.split())
        assert "show it with" in err, err
        [show] = re.findall(r"show it with: witan (.*)", err)
        assert witan(*show.split()).status == 0
        assert "import it with" not in err

    def test_an_import_that_differs_from_the_history_suggests_no_prefix(
        self, witan, told, place, tmp_path
    ):
        """A record keeps its name, so a prefix would not help."""
        keep(place, session_from_json(json.dumps(told)).events)
        told["events"][-1]["at"] = "2036-01-01T00:00:00Z"
        (tmp_path / "other.json").write_text(json.dumps(told), encoding="utf-8")

        said = witan("import", "other.json")

        assert said.status == 2
        assert "with another record" in said.err
        assert "--prefix" not in said.err


def cut(told: dict, kind: str) -> str:
    """The record as it was before the first event of a kind."""
    kinds = [event["event"] for event in told["events"]]
    return json.dumps({**told, "events": told["events"][: kinds.index(kind)]})


def commands(words: str) -> list[list[str]]:
    """The arguments of each command in a message."""
    return [words.split("witan ")[k].split(";")[0].split() for k in (-2, -1)]
