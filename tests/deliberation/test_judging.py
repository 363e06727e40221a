"""A jury judges texts: sheets, verdicts, records and refusals."""

import json
from contextlib import asynccontextmanager
from dataclasses import replace

import anyio
import pytest

from councils import council, member
from histories import send
from juries import prompts_of, record_calls, sheets
from witan import leaderboard
from witan.deliberation import events as e
from witan.deliberation.ports import REFERENCE, Price
from witan.deliberation.record import session_from_json, session_to_json
from witan.deliberation.session import Session
from witan.errors import InvalidParameter, OverBudget, UnknownName
from witan.history import History
from witan.models.scripted import Line
from witan.stats import Terms

pytestmark = pytest.mark.anyio

CRITERIA = ("accuracy", "relevance", "completeness", "conciseness", "clarity")

TEXTS = {"new.md": "The newer text says moraine.", "old.md": "The older text says glacier."}


def grades(**words):
    """A review that grades texts by the words in them, alike on every criterion."""
    return Line(grades={word: dict.fromkeys(CRITERIA, grade) for word, grade in words.items()})


def jury(names="xyz", **words):
    """Jurors of these names, who grade alike."""
    return [member(name, reviews=[grades(**words)]) for name in names]


async def judged(texts, seated=None, question=None, options=None, **what) -> Session:
    """Have a jury judge texts; it finds the newer good and the older bad."""
    seated = jury(moraine=9, glacier=3) if seated is None else seated
    with anyio.fail_after(60):
        async with council(seated, **(options or {})) as opened:
            return await opened.judge(texts, question, seed=3, **what)


async def test_the_slot_is_free_before_ballots_are_counted():
    """A waiting session can make calls meanwhile."""
    order = []

    @asynccontextmanager
    async def slot():
        yield
        order.append("left")

    async with council(jury(moraine=9)) as opened:
        opening = await opened.open_judgment("So says the moraine.")
        begun = Session.of((opening,))
        await opened.resume(begun, slot=slot(), listener=lambda event: order.append(event.kind))

    assert order.index("ballot_cast") < order.index("left") < order.index("outcome_changed")
    assert order.count("left") == 1


class TestVerdict:
    """Nobody answers; the jury grades, and the verdict follows."""

    async def test_one_text_passes(self):
        """Its session is complete, though there is one text and no final answer."""
        session = await judged("So says the moraine.", pass_mark=6)

        assert (session.status, session.missing, session.text) == ("complete", (), None)
        assert session.verdict.decision == "passed"
        assert session.verdict.reviewers == ("x", "y", "z")
        assert not any(isinstance(event, e.AnswerStarted) for event in session.events)

    async def test_without_a_question_criteria_concern_the_subject_of_the_text(self):
        """Only then does the prompt say so."""
        seated = record_calls(jury(moraine=9))
        await judged("So says the moraine.", seated)
        await judged("So says the moraine.", seated, "What says so?")
        sheets_shown = prompts_of(seated, "review")

        assert ["take the text's own subject" in shown for shown in sheets_shown] == [
            shown.count("What says so?") == 0 for shown in sheets_shown
        ]
        assert sum("take the text's own subject" in shown for shown in sheets_shown) == 3

    async def test_the_better_of_two_texts_leads(self):
        """Texts have the caller's names."""
        session = await judged(TEXTS, expected="new.md")

        assert (session.verdict.decision, session.verdict.leader) == ("passed", "new.md")
        assert {name: answer.text for name, answer in session.answers.items()} == TEXTS

    async def test_texts_without_names_are_numbered(self):
        """In the order of the list."""
        session = await judged([*TEXTS.values()])

        assert [*session.answers] == ["text 1", "text 2"]

    async def test_equal_texts_are_judged_once(self):
        """Both have the same grades."""
        session = await judged({"a": "moraine", "b": "moraine"}, pass_mark=6)

        assert [len(shown) for shown in sheets(session).values()] == [1, 1, 1]
        first, second = session.verdict.texts
        assert first.overall == second.overall

    async def test_too_few_ballots_give_no_verdict(self):
        """The session says what is missing."""
        silent = [member(name, reviews=["no"], repairs=["no"]) for name in "yz"]
        session = await judged("moraine", [*jury("x", moraine=9), *silent], pass_mark=6)

        assert session.verdict is None
        assert session.status == "degraded"

    async def test_a_lost_ballot_degrades_the_session(self):
        """The verdict uses the others."""
        silent = member("z", reviews=["no"], repairs=["no"])
        session = await judged("moraine", [*jury("wxy", moraine=9), silent], pass_mark=6)

        assert session.status == "degraded"
        assert session.verdict.reviewers == ("w", "x", "y")


class TestSheets:
    """Jurors see labels and the material of the question."""

    async def test_names_of_texts_are_not_shown(self):
        """A name may say which text is new."""
        heard = record_calls(jury(moraine=9, glacier=3))
        await judged(TEXTS, heard, "Which do you prefer?")

        prompts = prompts_of(heard, "review")
        assert len(prompts) == 3
        assert all("Which do you prefer?" in prompt for prompt in prompts)
        assert not any(".md" in prompt for prompt in prompts)

    async def test_a_common_word_as_a_name_is_not_masked(self):
        """A text called ``the`` may contain the word."""
        heard = record_calls(jury(moraine=9))
        await judged({"the": "the moraine"}, heard)

        assert all("the moraine" in prompt for prompt in prompts_of(heard, "review"))

    async def test_a_reference_is_shown_as_the_right_answer(self):
        """Reviewers compare the texts with it."""
        heard = record_calls(jury(moraine=9))
        await judged("moraine", heard, files={REFERENCE: "It is a moraine."})

        for prompt in prompts_of(heard, "review"):
            assert "It is a moraine." in prompt
            assert "an answer that is right" in prompt

    async def test_a_juror_named_like_a_text_judges_it(self):
        """It gets another name."""
        session = await judged({"x": "moraine"}, pass_mark=6)

        assert [seat.name for seat in session.opening.jury] == ["x (2)", "y", "z"]
        assert session.verdict.texts[0].overall.n_ballots == 3


class TestRecord:
    """The session is stored, resumed and judged again like any other."""

    async def test_the_record_has_the_verdict(self):
        """It round-trips."""
        session = await judged("moraine", pass_mark=6)
        record = session_to_json(session)

        assert json.loads(record)["verdict"]["decision"] == "passed"
        assert session_from_json(record) == session
        assert session_from_json(record).verdict == session.verdict

    async def test_judging_is_resumed(self):
        """Stored ballots are kept; only the others are requested."""
        whole = await judged("moraine", pass_mark=6)
        until = [event.kind for event in whole.events].index("ballot_cast") + 1
        heard = record_calls(jury(moraine=9))
        async with council(heard, [member("chair")]) as opened:
            resumed = await opened.resume(Session.of(whole.events[:until]))

        assert resumed.verdict == whole.verdict
        assert len(prompts_of(heard, "review")) == 2

    async def test_another_jury_judges_the_same_texts(self):
        """It uses the same pass mark and writes no final answer."""
        first = await judged("moraine", pass_mark=6)
        async with council(jury("uvw", moraine=2)) as opened:
            again = await opened.rejudge(first)

        assert (again.status, again.missing) == ("complete", ())
        assert again.verdict.decision == "failed"
        assert again.opening.parent == first.id

    async def test_a_failed_juror_is_retried(self):
        """The other ballots are kept."""
        silent = member("z", reviews=["no"], repairs=["no"])
        first = await judged("moraine", [*jury("xy", moraine=9), silent], pass_mark=6)
        async with council(jury("xyz", moraine=9)) as opened:
            again = await opened.retry(first)

        assert again.status == "complete"
        assert again.verdict.texts[0].overall.n_ballots == 3

    async def test_texts_are_on_leaderboards(self, tmp_path):
        """They are listed by name, as compared systems."""
        seated = [replace(seat, simulated=False) for seat in jury(moraine=9, glacier=3)]
        session = await judged(TEXTS, seated)
        with History.open(tmp_path / "history.sqlite") as history:
            with history.recording() as recording:
                send(recording, session.events)
            found = leaderboard(history, Terms(min_sessions=1))

        assert {line.model for line in found.lines} == set(TEXTS)


class TestMoney:
    """The plan knows the prompts, and the ceiling holds."""

    async def test_the_plan_equals_that_of_the_session(self):
        """Planning makes no call."""
        session = await judged(TEXTS, question="Which?")
        async with council(jury()) as opened:
            plan = opened.plan_judge(TEXTS, "Which?")

        assert [replace(line, seat="") for line in plan.lines] == [
            replace(line, seat="") for line in session.opening.plan.lines
        ]

    async def test_a_cost_above_the_ceiling_is_refused(self):
        """No call is made."""
        dear = [replace(seat, price=Price(1e6, 1e6)) for seat in jury(moraine=9)]
        with pytest.raises(OverBudget):
            await judged("moraine", dear, options={"max_cost_usd": 0.01})


class TestRefusals:
    """Texts that cannot be judged are named in an error."""

    @pytest.mark.parametrize(
        ("texts", "said"),
        [
            ("  ", "^the text is empty"),
            (["moraine", " "], "^the text 2 is empty"),
            ([], "1 to 26 texts"),
            (["moraine"] * 27, "1 to 26 texts"),
            ({"a": ""}, "the text a"),
            (5, "a text, a list of texts, or a table"),
            (b"moraine", "a text, a list of texts, or a table"),
            ({" ": "moraine"}, "the name of a text"),
        ],
    )
    async def test_no_text_and_too_many_texts_are_refused(self, texts, said):
        """The error says what is expected."""
        with pytest.raises(InvalidParameter, match=said):
            await judged(texts)

    @pytest.mark.parametrize("options", [{"rubric_scoring": False}, {"pairs": 1}])
    async def test_two_reviewers_that_only_rank_judge_texts_but_no_answers(self, options):
        """Both see all texts, while each would see only one answer."""
        session = await judged(TEXTS, jury("xy", moraine=9, glacier=3), options=options)
        async with council(jury("xy"), **options) as opened:
            with pytest.raises(InvalidParameter, match=r"two members.* one answer alone"):
                opened.plan("Which?")
            with pytest.raises(InvalidParameter, match=r"two members.* one answer alone"):
                await opened.ask("Which?")

        assert session.outcome.n_ballots == 2

    async def test_pairs_of_a_single_text_are_refused(self):
        """It has none, with or without a pass mark."""
        for mark in (None, 6):
            with pytest.raises(InvalidParameter, match="a single text, which makes no pair"):
                await judged("moraine", options={"pairs": 1}, pass_mark=mark)

    async def test_a_pass_mark_without_grades_is_refused(self):
        """Reviewers who only rank cannot say that a text is good."""
        with pytest.raises(InvalidParameter, match="without grades no text can pass"):
            await judged("moraine", options={"rubric_scoring": False}, pass_mark=6)

    async def test_an_unknown_expected_text_is_named(self):
        """No call is made."""
        with pytest.raises(UnknownName, match="newer"):
            await judged(TEXTS, expected="newer.md")
