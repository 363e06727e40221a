"""Deceptive replies: invisible texts, contradictory ballots, impossible bills."""

from dataclasses import replace

import pytest

from councils import council, member
from witan.core.escaping import is_blank
from witan.deliberation import events as e
from witan.deliberation.ports import Call, Hear, Member, Price, Reply, Usage
from witan.deliberation.record import session_to_json
from witan.deliberation.session import Session
from witan.errors import InvalidParameter
from witan.service.text import Page
from witan.surfaces.report.session import session_report
from witan.surfaces.report.text import report_text

pytestmark = pytest.mark.anyio

INVISIBLE = {
    "zero width": "\u200b\u200c\u200d\u2060",
    "byte-order mark": "\ufeff",
    "combining": "\u0301\u0308",
    "variation selectors": "\ufe0f\ufe0e\U000e0100",
    "Hangul filler": "\u3164\u115f\u1160\uffa0",
    "Braille blank": "\u2800\u2800",
    "soft hyphen": "\u00ad",
    "direction": "\u200e\u202a\u2066",
    "tags": "\U000e0001\U000e0041",
    "controls": "\x00\x07",
    "blanks": " \n\u00a0\u3000",
}

ORDERS = ('{"ranking": [["A"], ["B"]]}', '{"ranking": [["B"], ["A"]]}')


class Billed:
    """A model with a fixed text and a fixed bill."""

    def __init__(self, answer: str = "So.", reviews: str = ORDERS[0], **bill) -> None:
        self.answer, self.reviews, self.bill = answer, reviews, bill

    async def complete(self, call: Call, hear: Hear) -> Reply:
        text = self.reviews if call.stage in ("review", "repair") else self.answer
        hear(text)
        return Reply(text, **self.bill)


async def deliberate(model: Billed, price: Price | None = None, **options) -> Session:
    """A session of this model and two that behave, which only rank."""
    odd = Member("odd", model, "test:odd", price=price)
    options = {"rubric_scoring": False, "attempts": 1, **options}
    async with council([odd, member("a"), member("b")], **options) as held:
        return await held.ask("Which?", seed=3)


class TestInvisibleText:
    """Invisible text counts as empty."""

    @pytest.mark.parametrize("text", INVISIBLE.values(), ids=INVISIBLE)
    async def test_invisible_text_is_not_an_answer(self, text):
        """Nor is it a question."""
        session = await deliberate(Billed(text))

        assert session.unanswered == {"odd": "said nothing"}
        with pytest.raises(InvalidParameter, match="the question"):
            council([member("a"), member("b")]).plan(text)

    @pytest.mark.parametrize("text", ["4", ".", "\u200b🙂", "e\u0301", "\ue000", "안"])
    def test_one_visible_character_is_a_text(self, text):
        assert not is_blank(text)


class TestContradictoryBallots:
    """A reviewer with two different ballots is asked which one it means."""

    async def test_two_different_ballots_are_repaired(self):
        """If the repair fails too, the reviewer abstains."""
        session = await deliberate(Billed(reviews="\n".join(ORDERS)))

        [repaired] = [x for x in session.events if isinstance(x, e.BallotRepaired)]
        assert "contradict each other" in repaired.problem
        [ballot] = [b for b in session.ballots if b.reviewer == "odd"]
        assert ballot.abstained

    async def test_the_same_ballot_twice_counts_once(self):
        """It needs no repair."""
        session = await deliberate(Billed(reviews=f"{ORDERS[0]} {ORDERS[0]}"))

        assert not [x for x in session.events if isinstance(x, e.BallotRepaired)]
        assert session.status == "complete"


class TestBills:
    """An impossible bill is not believed."""

    @pytest.mark.parametrize(
        ("bill", "price", "note"),
        [
            ({"cost_usd": 1e308}, None, "billed $1e+308, although this call cannot cost"),
            ({"cost_usd": 1e308}, Price(1, 1), "billed $1e+308, although this call cannot cost"),
            ({"cost_usd": 500.0}, None, "billed $500.00, although this call cannot cost"),
            ({"usage": Usage(10**12, 5)}, Price(1, 1), "1,000,000,000,000 tokens read"),
            ({"usage": Usage(5, 10**30)}, Price(1, 1), "10**15 or more tokens written"),
        ],
    )
    async def test_an_impossible_bill_makes_the_cost_unknown(self, bill, price, note):
        """The session states why."""
        session = await deliberate(Billed(**bill), price)

        assert session.cost.total_usd is None
        assert session.cost.known_usd == 0
        [said] = [each for each in session.notes if note in each]
        assert said.startswith("odd: its server ")
        assert f"note: {said}" in "\n".join(report_text(Page(), session_report(session)))
        assert note in session_to_json(session)

    async def test_a_seat_that_billed_is_not_assumed_free_in_a_retry(self):
        """Under a ceiling no seat is called that billed although its price is zero."""
        odd = Member("odd", Billed(reviews="?", cost_usd=1.2), "test:odd", price=Price(0, 0))
        seats = [odd, *(replace(member(n), price=Price(0, 0)) for n in "ab")]
        async with council(seats, rubric_scoring=False, attempts=1) as held:
            first = await held.ask("Which?", seed=3)
        async with council(seats, rubric_scoring=False, attempts=1, max_cost_usd=9.0) as held:
            again = await held.retry(first)

        [ballot] = [b for b in again.ballots if b.reviewer == "odd"]
        assert "contradict its price" in ballot.reason

    async def test_an_expensive_bill_is_believed(self):
        """Hidden instructions, reasoning and fees may explain it."""
        usage = Usage(20_000, 60_000)
        session = await deliberate(Billed(usage=usage, cost_usd=2.5), Price(10, 60))

        assert session.cost.total_usd == pytest.approx(2.5 * 2)
        assert session.notes == ()
