"""Duplicates: identical answers are recognised before reviews, judged once, and tied."""

import re
from dataclasses import replace
from typing import ClassVar

import pytest

from councils import council, member
from juries import asked, overheard
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
    """Members with these answers, of one mind on them, who are overheard."""
    line = Line(prefers=prefers)
    return overheard([member(n, answers=[t], reviews=[line]) for n, t in texts.items()])


async def held(council_of=None, **options) -> tuple[Session, list]:
    """A session of these members, and the members."""
    members = seated() if council_of is None else council_of
    async with council(members, [member("z", synthesis=["All told [A]."])], **options) as opened:
        return await opened.ask("How many?", seed=4), members


class TestSomeAreTheSame:
    """Two of four answers differ in white space at the end alone."""

    async def test_a_sheet_holds_one_of_them(self):
        """Reviewers see the answer once, and its authors not at all."""
        session, members = await held()

        drawn = {x.sheet.reviewer: {*x.sheet.candidates}
                 for x in session.events if isinstance(x, e.SheetDrawn)}  # fmt: skip
        assert drawn == {
            "ann": {"cyd", "dan"},
            "bob": {"cyd", "dan"},
            "cyd": {"ann", "dan"},
            "dan": {"ann", "cyd"},
        }
        for prompt in asked(members, "review"):
            assert prompt.count("four") <= 1

    @pytest.mark.parametrize("rule", [n for n, rule in RULES.items() if rule.needs != "history"])
    async def test_they_are_tied(self, rule):
        """Under every rule both have the same rank and score."""
        session, _ = await held(rule=rule)

        lines = {line.candidate: line for line in session.outcome.standings}
        assert lines["ann"].rank == lines["bob"].rank
        assert lines["ann"].score == pytest.approx(lines["bob"].score)
        assert lines["ann"].votes == lines["bob"].votes
        assert session.status == "complete"

    @pytest.mark.parametrize("options", [{"mirrored": True}, {"review_rounds": 2},
                                         {"rubric_scoring": False}])  # fmt: skip
    async def test_ballots_tie_the_copies(self, options):
        """In both orders, in second rounds and without grades, a ballot places them equal."""
        session, _ = await held(**options)

        [ballot] = [ballot for ballot in session.ballots if ballot.reviewer == "dan"]
        assert ballot.groups == (("cyd",), ("ann", "bob"))
        if ballot.grades:
            assert ballot.grades["ann"] == ballot.grades["bob"]
        assert session.recount().leaders == session.outcome.leaders

    async def test_a_copy_adds_no_certainty(self):
        """Errors and freedom are those of the answers that were judged, copies aside."""
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
    async def test_copies_in_the_lead_share_their_chances(self, rule):
        """Their contrast has no variance; the chances of all add up to 1."""
        session, _ = await held(seated(prefers=("four", "five", "six")), rule=rule)

        chances = {line.candidate: line.p_best for line in session.outcome.standings}
        assert session.outcome.leaders == ("ann", "bob")
        assert chances["ann"] == pytest.approx(chances["bob"], abs=0.01)
        assert sum(chances.values()) == pytest.approx(1)

    async def test_indentation_makes_another_answer(self):
        """Indentation changes the meaning of a program."""
        inside, after = "for x in y:\n    a(x)\n    b(x)", "for x in y:\n    a(x)\nb(x)"

        session, _ = await held(seated({"ann": inside, "bob": after, "cyd": "It is five."}))

        drawn = [x.sheet for x in session.events if isinstance(x, e.SheetDrawn)]
        assert all(len(sheet.candidates) == 2 for sheet in drawn)

    async def test_copies_are_reported(self):
        """The trust line names who gave the same answer; a blind page does not."""
        session, _ = await held()

        assert all(fact in session_trust(session) for fact in ("ann and bob", "the same answer"))
        assert "gave the same answer" in render_session(session)
        assert not re.search(r"\bann\b", render_session(session))

    async def test_who_measures_self_preference_judges_all(self):
        """With self_review every answer stands for itself."""
        session, _ = await held(self_review=True)

        [drawn] = [x for x in session.events if isinstance(x, e.SheetDrawn)
                   if x.sheet.reviewer == "dan"]  # fmt: skip
        assert {*drawn.sheet.candidates} == {*TEXTS}


class TestAllAreTheSame:
    """Nothing is left to review, or to sum up."""

    SAME = dict.fromkeys(("ann", "bob", "cyd"), "It is four.")

    async def test_a_verdict_is_still_given(self):
        """In the mode verdict a chairman approves or rejects what all say."""
        text = "It is safe.\n\nVERDICT: APPROVE"
        chair = member("z", synthesis=["Safe.\n\nVERDICT: APPROVE"])
        seats = seated(dict.fromkeys(("ann", "bob", "cyd"), text))
        async with council(seats, [chair], mode="verdict") as opened:
            session = await opened.ask("Is it safe?")

        assert session.synthesis.approved is True
        assert session.status == "complete"

    async def test_no_review_is_paid_for(self):
        """No member is called again; the answer itself is the final one, and nothing is missing."""
        session, members = await held(seated(self.SAME))

        assert asked(members, "review") == asked(members, "synthesis") == []
        assert (session.status, session.missing, session.outcome) == ("complete", (), None)
        assert session.text == "It is four."
        assert session.synthesis.chairman is None
        assert len(session.synthesis.labels) == 1
        assert session_status(session) == Status.ANSWERED
        assert session_status(session, require_winner=True) == Status.TIED

    async def test_missing_reviews_are_explained(self):
        """The trust line and the ballots say why there are none."""
        session, _ = await held(seated(self.SAME))

        said = "all 3 answers are the same, so none was reviewed"
        assert said in session_trust(session)
        assert "All answers are the same." in render_session(session)
        reasons = {ballot.reason for ballot in session.ballots}
        assert reasons == {"had nothing to review: all answers are the same"}

    async def test_reviews_that_were_asked_for_are_not_denied(self):
        """Where reviewers judged answers that are the same, nothing says that none was reviewed."""
        session, _ = await held(seated(self.SAME), self_review=True)
        reviewed = replace(session.opening.procedure, self_review=False)
        opened, *later = session.events

        again = Session.of([replace(opened, procedure=reviewed), *later])

        assert not again.answers_agree


NARROW = ("hybrid", "range", "kemeny", "irv")
"""Rules whose bounds are so careful that they wait for the last of these ballots."""


class TestStoppingWhenDecided:
    """Identical answers, or a jury, where nobody waits for ballots that change nothing."""

    TEXTS: ClassVar = dict(
        zip("abcdefg", ["four", "four", "five", "six", "seven", "eight", "nine"], strict=True)
    )
    FIVE = ("five", "four", "six", "seven", "eight", "nine")

    @pytest.fixture
    def anyio_backend(self):
        """Slow reviews take no time on a clock that jumps."""
        return jumping_loop()

    def seats(self, slow: str, prefers: tuple[str, ...], *, answers: bool = True) -> list:
        """Members or jurors of one mind; the slow one takes seconds for its review."""
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
    async def test_leader_is_that_of_all_ballots(self, rule, slow):
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

    async def test_copies_in_the_lead_are_never_decided_between(self):
        """All ballots are waited for, and both lead."""
        four = ("four", "five", "six", "seven", "eight", "nine")
        seats = self.seats("", four)
        async with council(seats, spend="until_decided", synthesis=False) as opened:
            session = await opened.ask("How many?", seed=4)

        decided = [x for x in session.events if isinstance(x, e.Decided)]
        assert [x.cancelled for x in decided] in ([], [()])
        assert session.outcome.leaders == ("a", "b")

    @pytest.mark.parametrize("rule", OFFERED)
    async def test_a_jury_stops_as_members_do(self, rule):
        """A slow juror is not waited for; jurors see both copies as one answer."""
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
