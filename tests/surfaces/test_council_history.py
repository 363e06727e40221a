"""A council with a history, from Python: sessions are recorded without blocking the event loop."""

import time
from contextlib import aclosing, closing
from pathlib import Path
from sqlite3 import connect
from threading import Event, Thread

import anyio
import pytest

import witan
from lessons import MODELS, lessons
from recorded import isolate
from scripts import write_script
from witan import Council, History, Session, ask
from witan.deliberation import events as e
from witan.deliberation.ports import SystemClock
from witan.deliberation.record import session_from_json
from witan.errors import HistoryConflict, HistoryError, InvalidParameter
from witan.history.engines import SqliteDatabase

QUESTION = "Is it so?"


@pytest.fixture(autouse=True)
def place(tmp_path, monkeypatch):
    """The path of the history; nothing is configured."""
    isolate(tmp_path, monkeypatch)
    return tmp_path / "history.sqlite"


@pytest.fixture
def members(tmp_path) -> list[str]:
    """Three scripted seats."""
    order = ["Ada says", "Bob says", "Cyd says"]
    for name in ("ada", "bob", "cyd"):
        write_script(
            tmp_path / f"{name}.toml",
            answer=[{"text": f"{name.title()} says so."}],
            review=[{"prefers": order}],
            synthesis=[{"text": "So it is."}],
        )
    return [f"script:{name}.toml" for name in ("ada", "bob", "cyd")]


def in_history(place) -> list[Session]:
    """Every session in the history."""
    with History.open(place) as history:
        return [history.session(found.session) for found in history.find()]


class TestRecording:
    """Every session of a council is in its history."""

    def test_without_a_history_nothing_is_written(self, members, tmp_path):
        before = sorted(tmp_path.rglob("*"))
        ask(QUESTION, members)

        assert sorted(tmp_path.rglob("*")) == before

    def test_a_read_only_history_is_refused_before_the_first_call(self, members, place):
        with History.open(place) as history:
            history.require_writable(creating=True)
        told = []
        reading = SqliteDatabase(place, str(place), mode="ro")
        with (
            History(reading, SystemClock()) as history,
            pytest.raises(HistoryError, match="is open read-only"),
        ):
            ask(QUESTION, members, history=history, listener=told.append)

        assert told == []

    def test_a_renamed_member_keeps_its_record(self, members, place):
        """Aliases join both names."""
        with History.open(place) as history:
            history.add(lessons(40, people=40), "x", "x")
        options = {"history": place, "rule": "weighted_borda"}

        stranger = ask(QUESTION, members, **options)
        now = [f"script:{place.with_name(name)}" for name in ("ada.toml", "bob.toml", "cyd.toml")]
        known = ask(QUESTION, members, **options, aliases=dict(zip(MODELS, now, strict=False)))

        weights = [each.opening.procedure.counting.reliability for each in (stranger, known)]
        assert weights[0] is None
        assert len({*weights[1].values()}) > 1

    def test_a_session_is_durable_when_it_is_returned(self, members, place):
        """The stored session is equal, including its category."""
        session = ask(QUESTION, members, history=place, category="coding")

        assert in_history(place) == [session]
        assert session.opening.category == "coding"

    @pytest.mark.parametrize("backend", ["asyncio", "trio"])
    def test_an_open_history_is_shared_and_stays_open(self, members, place, backend):
        """Several questions use it at once on either event loop; the caller closes it."""

        async def several(history: History) -> list[Session]:
            found: list[Session] = []
            async with Council(members, history=history) as council:

                async def ask(number: int) -> None:
                    found.append(await council.ask(f"{QUESTION} {number}"))

                async with anyio.create_task_group() as group:
                    for number in range(4):
                        group.start_soon(ask, number)
            return found

        with History.open(place) as history:
            held = anyio.run(several, history, backend=backend)
            assert len(history.find()) == 4
        assert {s.id for s in in_history(place)} == {s.id for s in held}

    def test_an_abandoned_stream_can_be_resumed(self, members, place):
        """Its events are stored, and resuming completes the session."""

        async def abandon() -> None:
            async with (
                Council(members, history=place) as council,
                aclosing(council.deliberate(QUESTION)) as events,
            ):
                async for event in events:
                    if event.kind == "ballot_cast":
                        break

        async def resume(history: History) -> Session:
            [found] = history.find(status="interrupted")
            async with Council(members, history=history) as council:
                return await council.resume(history.claim(found.session))

        anyio.run(abandon)
        with History.open(place) as history:
            session = anyio.run(resume, history)

        assert session.status == "complete"
        assert in_history(place) == [session]

    def test_an_outdated_record_is_refused_before_any_call(self, members, place):
        """The history has more events, or different ones."""
        whole = ask(QUESTION, members, history=place)
        events = [event for event in whole.events if event.seq < whole.events[-1].seq // 2]
        told: list[e.Event] = []

        async def resume() -> None:
            async with Council(members, history=place) as council:
                await council.resume(Session.of(events), listener=told.append)

        with pytest.raises(HistoryConflict, match="has ended in the history"):
            anyio.run(resume)
        assert told == []

    def test_a_refused_record_leaves_the_session_to_its_writer(self, members, place):
        """The writer can continue."""
        whole = ask(QUESTION, members)

        async def resume() -> None:
            async with Council(members, history=place) as council:
                await council.resume(Session.of(whole.events[:8]))

        with History.open(place) as history, history.recording() as recording:
            for event in whole.events[:-1]:
                recording(event)
            recording.flush()
            with pytest.raises(HistoryConflict, match="has more events in the history"):
                anyio.run(resume)
            recording(whole.events[-1])

        assert in_history(place) == [whole]

    def test_a_configured_council_accepts_a_history(self, members, place, tmp_path):
        """`from_config` and `ask` record likewise."""
        seats = ", ".join(f'"{seat}"' for seat in members)
        (tmp_path / "witan.toml").write_text(f"members = [{seats}]", encoding="utf-8")

        session = ask(QUESTION, history=f"sqlite:///{place}")

        assert in_history(place) == [session]


class TestParent:
    """A follow-up names the session that it continues."""

    def test_a_follow_up_is_recorded_with_its_parent(self, members, place):
        """The history lists it below the parent."""
        first = ask(QUESTION, members, history=place)
        ask("And then?", members, conversation=first.conversation, parent=first.id, history=place)

        with History.open(place) as history:
            [found] = history.find(parent=first.id)
        assert (found.question, found.relation) == ("And then?", "continued")

    def test_an_invalid_parent_is_refused(self, members):
        """A session is not the name of one."""
        with pytest.raises(InvalidParameter, match="the name of a session"):
            ask(QUESTION, members, parent=ask(QUESTION, members))


class TestOrder:
    """Calls and events follow the commit of what came before."""

    @pytest.mark.parametrize("ceiling", [None, 1.0])
    def test_a_locked_history_delays_the_calls(self, members, place, ceiling):
        """No review is requested until the lock is released."""
        other = History.open(place)
        taken = Event()

        def write() -> None:
            with other, other.database.transaction():
                taken.set()
                time.sleep(2.0)

        writing = Thread(target=write)

        def keep_busy(event: witan.Event) -> None:
            if event.kind == "answer_started" and not taken.is_set():
                writing.start()
                taken.wait()

        with History.open(place) as history:
            options = {"history": history, "max_cost_usd": ceiling, "stage_seconds": 0.8}
            held = ask(QUESTION, members, listener=keep_busy, **options)
            again = ask(QUESTION, members, history=history, max_cost_usd=ceiling)
        writing.join()

        assert len(held.answers) == len(members)
        assert all(ballot.abstained for ballot in held.ballots)
        assert again.status == "complete"

    @pytest.mark.anyio
    async def test_yielded_events_are_in_the_history(self, members, place):
        """Another connection finds each at that moment."""
        async with Council(members, history=place) as council:
            with History.open(place) as history:
                async for event in council.deliberate(QUESTION):
                    if isinstance(event, e.SessionOpened):
                        session = event.session
                    if not isinstance(event, e.AnswerDelta | e.SynthesisDelta):
                        assert event in history.session(session).events
                        assert not event.provisional
        assert history.url


class TestConfigured:
    """A configured history is used from Python, too."""

    @pytest.fixture
    def configure(self, members, tmp_path):
        """Write the project's configuration."""

        def write(*lines: str) -> None:
            seats = ", ".join(f'"{seat}"' for seat in members)
            text = "\n".join([f"members = [{seats}]", *lines])
            (tmp_path / "witan.toml").write_text(text, encoding="utf-8")

        return write

    def test_a_configured_history_is_used(self, configure, place):
        """It does not matter who seats the council."""
        configure("[history]", f'url = "{place.name}"')

        session = ask(QUESTION)

        assert in_history(place) == [session]

    def test_a_variable_can_name_the_history(self, configure, place, monkeypatch):
        """``WITAN_HISTORY`` applies to every program."""
        configure()
        monkeypatch.setenv("WITAN_HISTORY", str(place))

        session = ask(QUESTION)

        assert in_history(place) == [session]

    def test_an_enabled_history_is_that_of_the_commands(self, configure, tmp_path):
        """``enabled = true`` is required; by default Python records nothing."""
        configure()
        ask(QUESTION)
        assert not (tmp_path / "data").exists()

        configure("[history]", "enabled = true")
        session = ask(QUESTION)
        assert in_history(tmp_path / "data" / "witan" / "history.sqlite") == [session]

    @pytest.mark.parametrize("way", ["configured", "by hand"])
    def test_recording_can_be_switched_off(self, configure, place, way):
        """A setting or an argument does."""
        off = ["enabled = false"] if way == "configured" else []
        configure("[history]", f'url = "{place.name}"', *off)

        ask(QUESTION, **({} if off else {"history": False}))

        assert not place.exists()

    def test_an_argument_overrides_the_configuration(self, configure, place, tmp_path):
        configure("[history]", f'url = "{place.name}"')

        session = ask(QUESTION, history=tmp_path / "other.sqlite")

        assert not place.exists()
        assert in_history(tmp_path / "other.sqlite") == [session]


class TestFailure:
    """A failed history is reported, and no paid reply is lost."""

    def test_an_unopenable_history_is_refused(self, members, tmp_path):
        """No call is made."""
        with pytest.raises(HistoryError, match="is a folder"):
            ask(QUESTION, members, history=tmp_path)

    def test_a_refused_question_creates_no_history(self, members, tmp_path):
        """Nor does an open council; its first session does."""
        place = tmp_path / "made" / "history.sqlite"

        async def refuse_then_ask() -> None:
            async with Council(members, history=place, max_calls=100) as council:
                with pytest.raises(InvalidParameter):
                    await council.ask("")
                assert not place.parent.exists()
                await council.ask(QUESTION)

        anyio.run(refuse_then_ask)

        assert len(in_history(place)) == 1

    def test_a_history_that_cannot_be_created_is_an_error_before_any_call(self, members, tmp_path):
        """Its folder became impossible while the council was open."""
        events: list[witan.Event] = []

        async def ask_without_folder() -> None:
            async with Council(members, history=tmp_path / "made" / "history.sqlite") as council:
                (tmp_path / "made").touch()
                await council.ask(QUESTION, listener=events.append)

        with pytest.raises(HistoryError, match="cannot be written"):
            anyio.run(ask_without_folder)

        assert events == []

    def test_a_new_file_that_is_removed_leaves_the_record_in_another(self, members, place):
        """Its removal is noticed at the end of the session that created it."""

        def remove(event: witan.Event) -> None:
            if event.kind == "answer_done":
                place.unlink(missing_ok=True)

        with pytest.raises(HistoryError, match="was removed or replaced while in use"):
            ask(QUESTION, members, history=place, listener=remove)

    def test_a_file_that_was_removed_is_an_error_before_any_call(self, members, place):
        """Until it is back; what is written to a removed file is lost."""
        events: list[witan.Event] = []
        away = place.with_name("away.sqlite")
        with History.open(place) as history:
            ask(QUESTION, members, history=history)
            place.rename(away)
            with pytest.raises(HistoryError, match="was removed or replaced while in use"):
                ask(QUESTION, members, history=history, listener=events.append)
            assert events == []
            away.rename(place)
            ask(QUESTION, members, history=history)

        assert len(in_history(place)) == 2

    def test_an_open_council_checks_the_file_before_each_question(self, members, place):
        """One question may wait for the next for days."""
        events: list[witan.Event] = []
        away = place.with_name("away.sqlite")

        async def go() -> None:
            async with Council(members, history=place) as council:
                await council.ask(QUESTION)
                place.rename(away)
                with pytest.raises(HistoryError, match="was removed or replaced while in use"):
                    await council.ask(QUESTION, listener=events.append)
                away.rename(place)
                await council.ask(QUESTION)

        anyio.run(go)

        assert events == []
        assert len(in_history(place)) == 2

    def test_a_session_taken_over_makes_no_further_call(self, place, tmp_path):
        """Calls under way end, and all paid replies are in a file, which the error names."""
        members = []
        for name, seconds in (("ada", 0.0), ("bob", 0.5), ("cyd", 0.5)):
            answer = {"text": f"{name.title()} says so.", "seconds": seconds}
            members.append(f"script:{write_script(tmp_path / f'{name}.toml', answer=[answer])}")

        def take_over(event: witan.Event) -> None:
            if event.kind == "answer_done" and event.seat.startswith("ada"):
                with History.open(place) as history:
                    history.claim(history.find()[0].session, force=True)

        with pytest.raises(HistoryError, match="was resumed by another process") as caught:
            ask(QUESTION, members, history=place, listener=take_over)

        path = caught.value.remedy.removeprefix("the record of the session is in ")
        left = session_from_json(Path(path).read_text())
        assert (len(left.answers), left.cost.calls) == (3, 3)
        assert len(left.ballots) == 3
        assert all("was resumed by another process" in ballot.reason for ballot in left.ballots)
        [stored] = in_history(place)
        assert (stored.status, len(stored.answers)) == ("interrupted", 1)

    def test_a_history_that_fails_leaves_the_record_in_a_file(self, members, place, tmp_path):
        """The error names the file, which holds the whole session."""
        with History.open(place) as history:
            history.require_writable(creating=True)
            with closing(connect(place)) as spoilt:
                spoilt.execute("ALTER TABLE events RENAME TO gone")
            with pytest.raises(HistoryError) as caught:
                ask(QUESTION, members, history=history)

        path = caught.value.remedy.removeprefix("the record of the session is in ")
        assert path.startswith(str(tmp_path / "state"))
        with open(path, encoding="utf-8") as file:  # noqa: PTH123
            assert session_from_json(file.read()).status == "complete"
