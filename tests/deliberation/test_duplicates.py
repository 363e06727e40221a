"""Duplicates: identical answers are recognised before reviews, judged once, and tied."""

import re
from dataclasses import replace
from typing import ClassVar

import pytest

from councils import council, member
from juries import prompts_of, record_calls
from loops import jumping_loop
from witan import Ballot, tally
from witan.core.early_stopping import OFFERED
from witan.core.rules.registry import RULES
from witan.deliberation import events as e
from witan.deliberation.session import Session
from witan.models.scripted import Line
from witan.service.trust import session_trust
from witan.surfaces.cli.live_session import session_status
from witan.surfaces.cli.options import Status
from witan.surfaces.web.rendering import render_session

pytestmark = pytest.mark.anyio

TEXTS = {"ann": "It is four.", "bob": "It is four. \n", "cyd": "It is five.", "dan": "It is six."}


def seated(texts: dict[str, str] = TEXTS, prefers: tuple[str, ...] = ("five", "four", "six")):
    """Members with these answers, who agree on them and whose prompts are recorded."""
    line = Line(prefers=prefers)
    return record_calls([member(n, answers=[t], reviews=[line]) for n, t in texts.items()])


async def ask_members(council_of=None, **options) -> tuple[Session, list]:
    """Ask these members; return the session and the members."""
    members = seated() if council_of is None else council_of
    async with council(members, [member("z", synthesis=["All told [A]."])], **options) as opened:
        return await opened.ask("How many?", seed=4), members


class TestTwoOfFour:
    """Two of four answers differ only in trailing white space."""

    async def test_a_sheet_has_one_of_the_copies(self):
        """Its authors do not see it."""
        session, members = await ask_members()

        drawn = {x.sheet.reviewer: {*x.sheet.candidates}
                 for x in session.events if isinstance(x, e.SheetDrawn)}  # fmt: skip
        assert drawn == {
            "ann": {"cyd", "dan"},
            "bob": {"cyd", "dan"},
            "cyd": {"ann", "dan"},
            "dan": {"ann", "cyd"},
        }
        for prompt in prompts_of(members, "review"):
            assert prompt.count("four") <= 1

    @pytest.mark.parametrize("rule", [n for n, rule in RULES.items() if rule.needs != "history"])
    async def test_copies_are_tied(self, rule):
        """Under every rule both have the same rank and score."""
        session, _ = await ask_members(rule=rule)

        lines = {line.candidate: line for line in session.outcome.standings}
        assert lines["ann"].rank == lines["bob"].rank
        assert lines["ann"].score == pytest.approx(lines["bob"].score)
        assert lines["ann"].votes == lines["bob"].votes
        assert session.status == "complete"

    @pytest.mark.parametrize("options", [{"mirrored": True}, {"review_rounds": 2},
                                         {"rubric_scoring": False}])  # fmt: skip
    async def test_ballots_tie_the_copies(self, options):
        """A ballot ranks them equal in both orders, in second rounds and without grades."""
        session, _ = await ask_members(**options)

        [ballot] = [ballot for ballot in session.ballots if ballot.reviewer == "dan"]
        assert ballot.groups == (("cyd",), ("ann", "bob"))
        if ballot.grades:
            assert ballot.grades["ann"] == ballot.grades["bob"]
        assert session.recount().leaders == session.outcome.leaders

    async def test_a_copy_adds_no_certainty(self):
        """Standard errors and degrees of freedom are those of the distinct answers."""
        plain = {name: text for name, text in TEXTS.items() if name != "bob"}
        grading = [member(f"r{n}", reviews=[Line(prefers=("five", "four", "six"))]) for n in "123"]

        def by_jury(texts: dict[str, str]) -> list[Ballot]:
            sheet = dict(zip(texts, (1, 1, 2, 3) if "bob" in texts else (1, 2, 3), strict=True))
            grades = {"ann": 7, "bob": 7, "cyd": 8, "dan": 5}
            return [
                Ballot(
                    seat.name,
                    grades={
                        name: grades[name] + (turn * place) % 3 for name, place in sheet.items()
                    },
                    positions=sheet,
                )
                for turn, seat in enumerate(grading)
            ]

        copied, single = tally(by_jury(TEXTS)), tally(by_jury(plain))

        errors = {line.candidate: line.std_error for line in copied.standings}
        assert copied.df == single.df
        assert errors["ann"] == errors["bob"]
        assert {line.candidate: line.std_error for line in single.standings} == pytest.approx(
            {name: error for name, error in errors.items() if name != "bob"}
        )

    @pytest.mark.parametrize("rule", ["calibrated", "borda"])
    async def test_leading_copies_share_their_probability(self, rule):
        """Their contrast has no variance; the probabilities sum to 1."""
        session, _ = await ask_members(seated(prefers=("four", "five", "six")), rule=rule)

        chances = {line.candidate: line.p_best for line in session.outcome.standings}
        assert session.outcome.leaders == ("ann", "bob")
        assert chances["ann"] == pytest.approx(chances["bob"], abs=0.01)
        assert sum(chances.values()) == pytest.approx(1)

    async def test_answers_with_different_indentation_are_different(self):
        """Indentation changes the meaning of a program."""
        inside, after = "for x in y:\n    a(x)\n    b(x)", "for x in y:\n    a(x)\nb(x)"

        session, _ = await ask_members(seated({"ann": inside, "bob": after, "cyd": "It is five."}))

        drawn = [x.sheet for x in session.events if isinstance(x, e.SheetDrawn)]
        assert all(len(sheet.candidates) == 2 for sheet in drawn)

    async def test_copies_are_reported(self):
        """The trust line names their authors; a blind page does not."""
        session, _ = await ask_members()

        assert all(fact in session_trust(session) for fact in ("ann and bob", "the same answer"))
        assert "gave the same answer" in render_session(session)
        assert not re.search(r"\bann\b", render_session(session))

    async def test_self_review_joins_no_copies(self):
        """With self_review every answer is judged separately."""
        session, _ = await ask_members(self_review=True)

        [drawn] = [x for x in session.events if isinstance(x, e.SheetDrawn)
                   if x.sheet.reviewer == "dan"]  # fmt: skip
        assert {*drawn.sheet.candidates} == {*TEXTS}


class TestAllAlike:
    """All answers are the same, so there is nothing to review or sum up."""

    SAME = dict.fromkeys(("ann", "bob", "cyd"), "It is four.")

    async def test_a_chairman_still_gives_a_verdict(self):
        """In verdict mode it approves or rejects the common answer."""
        text = "It is safe.\n\nVERDICT: APPROVE"
        chair = member("z", synthesis=["Safe.\n\nVERDICT: APPROVE"])
        seats = seated(dict.fromkeys(("ann", "bob", "cyd"), text))
        async with council(seats, [chair], mode="verdict") as opened:
            session = await opened.ask("Is it safe?")

        assert session.synthesis.approved is True
        assert session.status == "complete"

    async def test_no_review_is_requested(self):
        """The answer is the final answer, and nothing is missing."""
        session, members = await ask_members(seated(self.SAME))

        assert prompts_of(members, "review") == prompts_of(members, "synthesis") == []
        assert (session.status, session.missing, session.outcome) == ("complete", (), None)
        assert session.text == "It is four."
        assert session.synthesis.chairman is None
        assert len(session.synthesis.labels) == 1
        assert session_status(session) == Status.ANSWERED
        assert session_status(session, require_winner=True) == Status.TIED

    async def test_missing_reviews_are_explained(self):
        """The trust line and the list of ballots give the reason."""
        session, _ = await ask_members(seated(self.SAME))

        said = "all 3 answers are the same, so none was reviewed"
        assert said in session_trust(session)
        assert "All answers are the same." in render_session(session)
        reasons = {ballot.reason for ballot in session.ballots}
        assert reasons == {"had nothing to review: all answers are the same"}

    async def test_reviews_that_took_place_are_reported(self):
        """Where reviewers judged equal answers, nothing says that none was reviewed."""
        session, _ = await ask_members(seated(self.SAME), self_review=True)
        reviewed = replace(session.opening.procedure, self_review=False)
        opened, *later = session.events

        again = Session.of([replace(opened, procedure=reviewed), *later])

        assert not again.answers_agree


NARROW = ("hybrid", "range", "kemeny", "irv")
"""Rules whose bounds are so careful that they wait for the last of these ballots."""


class TestStoppingWhenDecided:
    """Early stopping with equal answers, or before a jury."""

    TEXTS: ClassVar = dict(
        zip("abcdefg", ["four", "four", "five", "six", "seven", "eight", "nine"], strict=True)
    )
    FIVE = ("five", "four", "six", "seven", "eight", "nine")

    @pytest.fixture
    def anyio_backend(self):
        """Slow reviews take no time on a simulated clock."""
        return jumping_loop()

    def seats(self, slow: str, prefers: tuple[str, ...], *, answers: bool = True) -> list:
        """Members or jurors who agree; the slow one takes seconds for its review."""
        return [
            member(
                name,
                answers=[f"It is {text}."] if answers else [],
                reviews=[Line(prefers=prefers, seconds=1.5 if name == slow else 0.0)],
            )
            for name, text in self.TEXTS.items()
        ]

    @pytest.mark.parametrize("rule", OFFERED)
    @pytest.mark.parametrize("slow", ["g"])
    async def test_the_leader_is_that_of_all_ballots(self, rule, slow):
        """The copies stay tied, whichever reviewers are skipped."""
        options = {"rule": rule, "synthesis": False}
        async with council(self.seats(slow, self.FIVE), spend="until_decided", **options) as opened:
            session = await opened.ask("How many?", seed=4)

        decided = [event for event in session.events if isinstance(event, e.Decided)]
        assert [(x.leader, x.cancelled) for x in decided] in ([], [("c", (slow,))])
        assert decided or rule in NARROW
        assert (session.status, session.outcome.leaders) == ("complete", ("c",))
        assert session.recount().leaders == ("c",)
        if rule not in ("kemeny", "irv"):  # above six candidates they follow one order alone
            lines = {line.candidate: line for line in session.outcome.standings}
            assert lines["a"].rank == lines["b"].rank
            assert lines["a"].score == pytest.approx(lines["b"].score)

    async def test_tied_copies_in_the_lead_are_never_decided(self):
        """All ballots are awaited, and both lead."""
        four = ("four", "five", "six", "seven", "eight", "nine")
        seats = self.seats("", four)
        async with council(seats, spend="until_decided", synthesis=False) as opened:
            session = await opened.ask("How many?", seed=4)

        decided = [x for x in session.events if isinstance(x, e.Decided)]
        assert [x.cancelled for x in decided] in ([], [()])
        assert session.outcome.leaders == ("a", "b")

    @pytest.mark.parametrize("rule", OFFERED)
    async def test_a_jury_stops_early_like_members(self, rule):
        """A slow juror is not awaited; jurors see both copies as one answer."""
        jurors = [replace(each, name=f"j{each.name}", source=f"test:j{each.name}")
                  for each in self.seats("g", self.FIVE, answers=False)]  # fmt: skip
        async with council(
            self.seats("", ()), jury=jurors, spend="until_decided", rule=rule, synthesis=False
        ) as opened:
            session = await opened.ask("How many?", seed=4)

        decided = [event for event in session.events if isinstance(event, e.Decided)]
        assert [(x.leader, x.cancelled) for x in decided] in ([], [("c", ("jg",))])
        assert decided or rule in NARROW
        drawn = [x.sheet for x in session.events if isinstance(x, e.SheetDrawn)]
        assert {len(sheet.candidates) for sheet in drawn} == {6}
        assert (session.status, session.outcome.leaders) == ("complete", ("c",))
