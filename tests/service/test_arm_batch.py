"""Arms in Python: the best member, its control, and the jury."""

import itertools
import json
import os
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import anyio
import pytest

from witan.batches import ArmBatch, ArmOptions, BatchOptions, BatchRow
from witan.deliberation.ports import Price, Reply, Usage
from witan.errors import InvalidParameter, ModelError, NoCouncil, UnknownName
from witan.history import History
from witan.models.scripted import Line, ScriptedModel
from witan.service.council import Council, Member
from witan.surfaces.report.batch import batch_report

ROWS = [BatchRow(n, str(n), f"Why {n}?") for n in range(1, 8)]

MANY = [BatchRow(n, str(n), f"Why {n}?") for n in range(1, 17)]

SIZE = re.compile(r"<<<ANSWER (\w+) \w+>>>\n.*?size (\d+)", re.DOTALL)


class Writer:
    """A model that writes answers of different sizes, and ranks answers by size."""

    def __init__(self, sizes):
        self.sizes = itertools.cycle(sizes)

    async def complete(self, call, hear, /):
        """Answer, or grade each answer by its size."""
        if "Why lost?" in call.messages[-1].text:
            raise ModelError("writer", "is lost")
        if call.stage == "answer":
            text = f"An answer of size {next(self.sizes)}."
        elif call.stage == "synthesis":
            text = "All of size 50."
        else:
            found = SIZE.findall(call.messages[-1].text)
            grades = {label: {"overall": min(10, 1 + int(size) / 6)} for label, size in found}
            ranking = [[label] for label, _ in sorted(found, key=lambda pair: -int(pair[1]))]
            text = json.dumps({"notes": "By size.", "grades": grades, "ranking": ranking})
        hear(text)
        return Reply(text, Usage(10, 10))


def member(name, *sizes):
    """A member that writes answers of these sizes in turn."""
    return Member(name, Writer(sizes), price=Price(1, 1))


OPTIONS = {"rubric_scoring": False, "holistic": True}


def council(**more):
    """Three members: the first usually writes well, and badly once in seven answers."""
    members = [member("ada", 30, 31, 32, 2, 33, 34, 35), member("bob", 20), member("cyd", 10)]
    return Council(members, "bob", **OPTIONS, **more)


def jury():
    """Two judges without a seat in the council."""
    return Council([member("xan", 1), member("yma", 1)], **OPTIONS)


def run(history, tasks=ROWS, arms=None, seated=None, judges=None, options=None):
    """Run a batch with arms; return its report and its results by row."""
    results = {}

    async def go():
        async with seated or council() as answering, judges or jury() as judging:
            chosen = options or BatchOptions()
            batch = ArmBatch(answering, judging, history, tasks, chosen, arms=arms)
            return await batch.run(lambda result: results.update({result.row: result}))

    return anyio.run(go), results


class TestSelf:
    """The best member answers and reviews in as many calls as the council, and takes the best."""

    def test_its_best_answer_by_its_own_reviews_counts(self, history):
        """Its reviews count among its calls."""
        report, results = run(history)
        own = [result.arms["self"] for result in results.values()]

        assert report.statuses == {"complete": 7}
        assert {each.member for each in own} == {"ada"}
        assert {each.calls for each in own} == {6}
        assert all(int(each.text.split()[-1].rstrip(".")) >= 30 for each in own)
        assert {result.arms["council"].calls for result in results.values()} == {7}

    def test_each_arm_has_its_own_price(self, history):
        """The best member's arm costs its one answer; the jury belongs to no arm."""
        report, results = run(history)
        costs = {each.arm: each.cost_usd for each in report.comparison.arms}
        of_all = sum(result.cost_usd for result in results.values())

        assert costs["best"] == pytest.approx(7 * 20e-6)
        assert costs["council"] > costs["self"] > costs["best"]
        assert of_all == pytest.approx(report.cost_usd)
        assert of_all > costs["council"] + costs["self"]

    def test_without_this_arm_the_first_answer_is_used(self, history):
        """The best member's answer is taken from the council's session, without another call."""
        _, results = run(history, arms=ArmOptions(("council", "best")))

        assert all(r.arms["best"].session == r.arms["council"].session for r in results.values())
        assert len([*history.sessions()]) == 14


class TestBest:
    """Other questions than the measured ones choose the best member."""

    def test_questions_that_choose_do_not_measure(self, history):
        """They need neither controls nor judges."""
        report, results = run(history, MANY)
        choosing = [result for result in results.values() if result.chooses]
        found = report.comparison
        again, _ = run(history, MANY)

        assert report.statuses == {"complete": 16}
        assert (found.choice, found.choosing) == ("other questions", len(choosing))
        assert (found.questions, found.best) == (16 - len(choosing), {"ada": 16 - len(choosing)})
        assert 5 <= len(choosing) <= 11
        assert {(tuple(each.arms), each.judgment) for each in choosing} == {(("council",), None)}
        assert len([*history.sessions()]) == 16 + 2 * found.questions
        assert (again.comparison, again.earlier) == (found, 16)

    def test_the_bill_excludes_controls_of_rows_that_choose(self, history):
        """Before and after the run."""
        batch = ArmBatch(council(), jury(), history, MANY, BatchOptions())
        before = batch.bill()
        report, _ = run(history, MANY)
        after = ArmBatch(council(), jury(), history, MANY, BatchOptions()).bill()
        n_measuring = report.comparison.questions

        assert before.parts == {"council": 112, "self": 6 * n_measuring, "jury": 2 * n_measuring}
        assert (after.calls, after.earlier) == (0, 16)

    def test_more_questions_do_not_change_the_choice(self, history):
        """The member whose controls are paid for stays, although others lead now."""
        seats = [member("ada", 30), member("bob", 20), member("cyd", 10)]
        first, _ = run(history, MANY[:12], seated=Council(seats, "bob", **OPTIONS))
        seats = [member("ada", 5), member("bob", 20), member("cyd", 10)]
        later, _ = run(history, MANY, seated=Council(seats, "bob", **OPTIONS))
        alone = [s for s in history.sessions() if s.opening.relation == "compared"]

        assert first.comparison.choice == later.comparison.choice == "other questions"
        assert [*first.comparison.best] == [*later.comparison.best] == ["ada"]
        assert len(alone) == 2 * later.comparison.questions

    def test_the_history_chooses_if_questions_are_few(self, history):
        """Only earlier sessions count; without any, a note says that the questions chose."""
        chosen = ArmOptions(("council", "best"))
        alone, _ = run(history, ROWS[:3], chosen)

        async def teach():
            seats = [member("ada", 10), member("bob", 20), member("cyd", 30)]
            async with Council(seats, "bob", history=history, **OPTIONS) as teaching:
                for number in range(10):
                    await teaching.ask(f"Before {number}?")

        anyio.run(teach)
        later, _ = run(history, [BatchRow(1, "1", "Why later?")], chosen)

        assert (alone.comparison, alone.statuses) != (None, {})
        assert (alone.comparison.choice, alone.comparison.best) == ("these questions", {"ada": 3})
        assert (later.comparison.choice, later.comparison.best) == ("history", {"cyd": 1})

    def test_a_named_member_is_the_best(self, history):
        """Whichever member did best."""
        report, _ = run(history, arms=ArmOptions(("council", "best"), best="cyd"))

        assert (report.comparison.choice, report.comparison.best) == ("name", {"cyd": 7})


class TestForgotten:
    """Sessions deleted after a bill or a run are run again."""

    def test_a_second_run_reads_what_is_stored_now(self, history):
        """Not what it read before; the same holds for its bill."""
        results = {}

        async def go():
            async with council() as answering, jury() as judging:
                options = BatchOptions(max_calls=1_000)
                batch = ArmBatch(answering, judging, history, ROWS[:3], options)
                await batch.run(lambda _: None)
                history.forget(*[session.id for session in history.sessions()])
                bill = batch.bill()
                await batch.run(lambda result: results.update({result.row: result}))
                return bill

        bill = anyio.run(go)
        stored = {session.id: session for session in history.sessions()}

        assert bill.parts == {"council": 21, "self": 18, "jury": 6}
        for best in (result.arms["best"] for result in results.values()):
            assert best.text == stored[best.session].answers["ada"].text


class TestGaps:
    """Rows that cannot be compared are counted, and returned with what they lack."""

    def test_rows_without_money_for_judging_are_returned(self, history):
        """They are started, and more money finishes them."""
        dear = [Member(name, Writer([1]), price=Price(10, 10)) for name in ("xan", "yma")]

        def go(ceiling):
            judges = Council(dear, **OPTIONS)
            return run(history, ROWS[:2], None, None, judges, BatchOptions(max_cost_usd=ceiling))

        poor, results = go(0.6)
        rich, _ = go(100)

        assert (poor.unaffordable, poor.unfinished, poor.unjudged) == (0, 2, 0)
        assert poor.comparison is None
        assert {result.missing for result in results.values()} == {
            ("the jury: no money or call left",)
        }
        assert {result.status for result in results.values()} == {"degraded"}
        assert "2 rows answered by the council but not compared" in str(batch_report(poor))
        assert (rich.unfinished, rich.statuses) == (0, {"complete": 2})

    def test_rows_without_a_council_answer_are_counted(self, history):
        """They are left out of the comparison, and the report says so."""
        lost = [BatchRow(8, "8", "Why lost?"), *ROWS]
        report, results = run(history, lost)

        assert (report.unanswered, report.comparison.questions) == (1, 7)
        assert results[8].status == "failed"
        assert "1 row without an answer of the council is left out" in str(batch_report(report))

    def test_ballots_below_the_quorum_do_not_judge(self, history):
        """One judge of two is below the quorum."""
        broken = Member("yma", ScriptedModel("yma", reviews=["No."]), price=Price(1, 1))
        report, results = run(
            history, ROWS, judges=Council([member("xan", 1), broken], quorum=2, **OPTIONS)
        )

        assert (report.unjudged, report.unfinished) == (7, 0)
        assert report.comparison is None
        assert {result.judgment for result in results.values()} == {None}
        assert "7 rows without a judgment are left out" in str(batch_report(report))


class Stuck(Writer):
    """A writer whose nth call in a stage never ends."""

    def __init__(self, stage, number, sizes):
        super().__init__(sizes)
        self.stage, self.number, self.is_stuck = stage, number, False

    async def complete(self, call, hear, /):
        """Reply, until it is stuck."""
        self.number -= call.stage == self.stage
        if self.number == 0:
            self.is_stuck = True
            await anyio.sleep_forever()
        return await super().complete(call, hear)


def cut_off(batch, stuck):
    """Run a batch; cancel it when only the stuck call is left."""

    def count_open():
        kinds = [event.kind for each in batch.history.sessions() for event in each.events]
        begun = sum(kind in {"answer_started", "review_started"} for kind in kinds)
        return begun - sum(kind in {"answer_done", "ballot_cast"} for kind in kinds)

    async def go():
        async with batch.council, batch.jury, anyio.create_task_group() as group:
            group.start_soon(batch.run, lambda _: None)
            while not stuck.is_stuck or count_open() != 1:  # noqa: ASYNC110 - nobody says so
                await anyio.sleep(0.01)
            group.cancel_scope.cancel()

    anyio.run(go)


class TestResuming:
    """An interrupted batch makes only the missing calls, and its bill has only these."""

    @pytest.mark.parametrize(
        ("name", "stage", "number"),
        [("cyd", "answer", 1), ("ada", "answer", 4), ("yma", "review", 1)],
        ids=["council", "self", "jury"],
    )
    def test_an_interrupted_row_fits_the_rest_of_the_ceiling(self, history, name, stage, number):
        """It needs the rest of its bill, and repeats the interrupted call."""

        def seat_all(**others):
            sizes = {"ada": (30, 31, 32), "bob": (20,), "cyd": (10,), "xan": (1,), "yma": (1,)}
            models = {each: Writer(own) for each, own in sizes.items()} | others
            seats = [Member(each, model, price=Price(1, 1)) for each, model in models.items()]
            return Council(seats[:3], "bob", **OPTIONS), Council(seats[3:], **OPTIONS)

        n_calls = ArmBatch(*seat_all(), history, ROWS[:1], BatchOptions()).bill().calls
        options = BatchOptions(max_calls=n_calls + 1)
        stuck = Stuck(stage, number, (30, 31, 32))
        cut_off(ArmBatch(*seat_all(**{name: stuck}), history, ROWS[:1], options), stuck)
        report, _ = run(history, ROWS[:1], None, *seat_all(), options)

        assert (report.unaffordable, report.statuses) == (0, {"complete": 1})
        assert report.calls == n_calls + 1

    def test_a_row_without_a_final_answer_needs_no_further_calls(self, history):
        """Every answer fails the safety gate, so there is nothing to compare."""
        harm = "Step 1: build a pipe bomb. You can build a bomb with ammonia."

        def seat():
            models = [ScriptedModel(name, answers=[f"{harm} {name}"]) for name in ("ada", "bob")]
            return Council(models, safety=True, **OPTIONS)

        report, _ = run(history, ROWS[:1], seated=seat())
        bill = ArmBatch(seat(), jury(), history, ROWS[:1], BatchOptions()).bill()

        assert report.unanswered == 1
        assert (bill.calls, bill.earlier) == (0, 1)


class TestRefusals:
    """Unfair comparisons are refused before any call."""

    @pytest.mark.parametrize(
        ("arms", "error"),
        [
            (ArmOptions(("council",)), InvalidParameter),
            (ArmOptions(("best", "self")), InvalidParameter),
            (ArmOptions(best="eve"), UnknownName),
        ],
    )
    def test_invalid_arms_are_refused(self, history, arms, error):
        """Before any call."""
        with pytest.raises(error):
            ArmBatch(council(), jury(), history, ROWS, BatchOptions(), arms=arms)

    def test_duplicate_row_numbers_are_refused(self, history):
        """Results are found by row number."""
        with pytest.raises(InvalidParameter, match="different numbers"):
            ArmBatch(council(), jury(), history, [ROWS[0], ROWS[0]], BatchOptions())

    def test_rows_of_texts_are_refused(self, history):
        """No model answers them."""
        with pytest.raises(InvalidParameter):
            ArmBatch(council(), jury(), history, [BatchRow(1, texts={"a": "b"})], BatchOptions())

    def test_judges_with_a_seat_are_refused(self, history):
        """Members, chairmen and the council's own jury."""
        script = ScriptedModel("x", answers=["a"], reviews=[Line(prefers=("a",))])
        seats = [Member(name, script, price=Price(0, 0)) for name in ("xan", "zoe")]
        for seated in (
            Council([seats[0], member("bob", 1)]),
            Council([member("ada", 1), member("bob", 1)], [seats[0]]),
            Council([member("ada", 1), member("bob", 1)], jury=seats),
        ):
            with pytest.raises(NoCouncil, match="would judge its own work"):
                ArmBatch(seated, Council(seats), history, ROWS, BatchOptions())


ELSEWHERE = """
import sys; from pathlib import Path
from test_arm_batch import *
from witan.batches import Batch

class Waiting(Writer):
    async def complete(self, call, hear, /):
        print("called", flush=True)
        while not Path(sys.argv[2]).exists():
            await anyio.sleep(0.01)
        return await super().complete(call, hear)

async def go():
    seats = [Member(name, Waiting([20]), price=Price(1, 1)) for name in ("ada", "bob", "cyd")]
    with History.open(sys.argv[1]) as history:
        async with Council(seats, "bob", **OPTIONS) as answering:
            await Batch(answering, history, ROWS[:1], BatchOptions()).run(lambda _: None)

anyio.run(go)
"""
"""Asks the first question until a file exists."""


def test_a_row_that_another_process_has_just_finished_says_why_it_is_an_error(tmp_path):
    """It ran when the council came to it, and has an answer when the arms do."""
    place, release, results = tmp_path / "history.sqlite", tmp_path / "release", []
    folders = [Path(__file__).parent, Path(__file__).parents[1], os.environ.get("PYTHONPATH", "")]
    with subprocess.Popen(  # noqa: S603 - our own interpreter on our own lines
        [sys.executable, "-c", ELSEWHERE, str(place), str(release)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, map(str, folders)))},
        stdout=subprocess.PIPE,
        text=True,
    ) as other:
        assert other.stdout.readline() == "called\n"

        def finish_elsewhere(progress):
            if progress.stage == "council" and progress.n_done:
                release.touch()
                other.wait(timeout=30)

        async def go():
            with History.open(place) as history:
                async with council() as answering, jury() as judging:
                    batch = ArmBatch(answering, judging, history, ROWS[:1], BatchOptions())
                    await batch.run(results.append, finish_elsewhere)

        anyio.run(go)

    [result] = results
    assert (result.status, "council" in result.arms) == ("error", True)
    assert f"is running in process {other.pid}" in result.error


class CountingHistory(History):
    """A history that counts how often each session is read."""

    def session(self, session):
        """Count and read."""
        self.reads = getattr(self, "reads", Counter())
        self.reads[session] += 1
        return super().session(session)


def test_a_finished_batch_is_read_twice_at_most(tmp_path):
    """Each batch reads its sessions once, and the comparison reads them once."""
    place, options = tmp_path / "history.sqlite", BatchOptions(max_calls=1_000)
    with History.open(place) as history:
        first, _ = run(history, MANY, options=options)

    with CountingHistory.open(place) as history:
        again, _ = run(history, MANY, options=options)

        assert again.earlier == again.rows == 16
        assert again.comparison == first.comparison
        assert len(history.reads) == len([*history.sessions()])
        assert max(history.reads.values()) == 2
