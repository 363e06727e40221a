"""The purse reserves the maximum cost of a call, and never exceeds the ceiling."""

from contextlib import suppress
from dataclasses import replace

import anyio
import anyio.lowlevel
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from witan.core.display import dollars
from witan.deliberation.money import Purse
from witan.deliberation.ports import (
    Call,
    Expense,
    Member,
    Message,
    Price,
    Reply,
    Usage,
    most_input_tokens,
)
from witan.errors import InvalidParameter, OverBudget

CALL = Call("answer", (Message("user", "x" * 1000),), max_tokens=1000)
DEAR = Price(input_usd=100.0, output_usd=1000.0)


class Silent:
    """A model that no test calls."""

    async def complete(self, *asked: object) -> Reply:
        raise AssertionError(f"a purse calls nobody: {asked}")


def member(price: Price | None = DEAR) -> Member:
    return Member("a", Silent(), price=price)


def worst(call: Call = CALL, price: Price = DEAR) -> float:
    return price.of(call.most_input_tokens(), call.max_tokens)


def reply(read: int | None = None, written: int | None = None, cost: float | None = None) -> Reply:
    return Reply("yes", Usage(read, written), cost)


@pytest.mark.parametrize("usd", [-1.0, float("nan"), float("inf"), 1e301, True, "3", None])
def test_a_price_too_large_for_a_record_is_refused(usd):
    """The session could not be read again."""
    for prices in ((usd, 1.0), (1.0, usd)):
        with pytest.raises(InvalidParameter, match="expected dollars, 0 or more"):
            Price(*prices)


def test_a_boolean_is_not_a_number_of_tokens():
    """Records hold whole numbers only."""
    with pytest.raises(InvalidParameter, match="expected a whole number, 0 or more"):
        reply(read=True)


class TestBound:
    """No tokenizer makes more tokens of a call than are reserved."""

    @given(st.text())
    def test_every_byte_may_be_a_token(self, text):
        """A text has at most as many tokens as bytes, plus its template."""
        bound = most_input_tokens([Message("user", text)])

        assert bound > len(text.encode("utf-8", "surrogatepass"))

    def test_a_lone_surrogate_is_counted(self):
        """JSON can contain one."""
        assert most_input_tokens([Message("user", "\ud83d")]) > 3

    def test_every_message_and_the_schema_are_counted(self):
        """Two messages take more than their texts in one; a schema more than its bytes."""
        one = most_input_tokens([Message("user", "abcd")])
        two = most_input_tokens([Message("user", "ab"), Message("user", "cd")])
        formed = most_input_tokens([Message("user", "abcd")], {"type": "object"})

        assert two > one
        assert formed > one + len('{"type": "object"}')


class TestSettling:
    """The cost of a call is the bill, otherwise the price of its tokens, otherwise unknown."""

    def test_the_bill_takes_precedence_over_the_price(self):
        assert Purse(None).reserve(member(), CALL).settle(reply(10, 10, cost=0.5)) == 0.5

    def test_tokens_are_charged_at_the_members_price(self):
        assert Purse(None).reserve(member(), CALL).settle(reply(1000, 10)) == pytest.approx(0.11)

    @pytest.mark.parametrize("partial", [reply(), reply(1000), reply(written=10)])
    def test_without_all_tokens_the_cost_is_unknown(self, partial):
        assert Purse(None).reserve(member(), CALL).settle(partial) is None

    def test_without_a_price_the_cost_is_unknown(self):
        """The number of tokens is kept."""
        reservation = Purse(None).reserve(member(price=None), CALL)

        assert reservation.settle(reply(1000, 10)) is None
        assert reservation.expense().usage == Usage(1000, 10)

    def test_a_refused_call_costs_nothing(self):
        """The price may be unknown."""
        with Purse(None).reserve(member(price=None), CALL) as reservation:
            reservation.release()

        assert reservation.expense() == Expense(Usage(0, 0), 0.0)

    def test_an_unsettled_call_has_an_unknown_cost(self):
        """It does not matter how the call ends."""
        held = Purse(None).reserve(member(), CALL)

        with pytest.raises(ValueError, match="dropped"), held:
            raise ValueError("dropped")

        assert held.expense().cost_usd is None

    def test_a_lost_call_to_a_free_model_costs_nothing(self):
        purse = Purse(0.0)

        with purse.reserve(member(price=Price(0.0, 0.0)), CALL) as lost:
            pass

        assert lost.expense().cost_usd == 0.0
        assert purse.reserve(member(price=Price(0.0, 0.0)), CALL).settle(reply()) == 0.0


class TestCeiling:
    """A call that could exceed the ceiling is not made."""

    def test_the_maximum_cost_of_calls_in_flight_counts(self):
        """Where two calls fit, a third is refused while they are in flight."""
        purse = Purse(2.5 * worst())
        first = purse.reserve(member(), CALL)
        purse.reserve(member(), CALL)

        with pytest.raises(OverBudget):
            purse.reserve(member(), CALL)
        first.settle(reply(1000, 10))
        purse.reserve(member(), CALL)

    def test_spent_money_counts(self):
        """After a call that cost its maximum, another one is refused."""
        purse = Purse(1.5 * worst())
        purse.reserve(member(), CALL).settle(reply(cost=worst()))

        with pytest.raises(OverBudget):
            purse.reserve(member(), CALL)

    def test_a_lost_call_stays_reserved(self):
        """It may be billed; a refused call is released."""
        purse = Purse(1.5 * worst())
        purse.reserve(member(), CALL).release()
        purse.reserve(member(), CALL).forfeit()

        with pytest.raises(OverBudget):
            purse.reserve(member(), CALL)

    def test_an_unknown_cost_stays_reserved(self):
        """A reply of unknown cost counts at its maximum."""
        purse = Purse(1.5 * worst())
        purse.reserve(member(), CALL).settle(reply())

        with pytest.raises(OverBudget):
            purse.reserve(member(), CALL)

    def test_an_unknown_price_is_refused_under_a_ceiling(self):
        """The error gives the reason."""
        with pytest.raises(OverBudget, match=r"a is not called.*\$1,000,000"):
            Purse(1e6).reserve(member(price=None), CALL)

    def test_the_error_states_the_maximum_cost(self):
        """It has the money committed and the ceiling, too."""
        with pytest.raises(OverBudget) as caught:
            Purse(0.5).reserve(member(), CALL)

        for fact in (
            "a is not called",
            dollars(worst(), up=True),
            "more than the ceiling of $0.500",
        ):
            assert fact in str(caught.value)

    def test_rounding_refuses_no_call_within_the_ceiling(self):
        """Three calls fit under three times the maximum, whatever the floating-point sum."""
        for usd in (0.1, 0.7, 1.1, 12.3):
            call = replace(CALL, max_tokens=1)
            price = Price(0.0, usd * 1e6)
            purse = Purse(round(3 * usd, 6))
            for _ in range(3):
                purse.reserve(member(price), call)


ENDS = {
    "billed": lambda held, cost: held.settle(reply(cost=cost)),
    "unknown": lambda held, _: held.settle(reply()),
    "released": lambda held, _: held.release(),
    "lost": lambda held, _: held.forfeit(),
    "left": lambda *_: None,
    "cancelled": lambda *_: pytest.fail("it was cancelled before"),
}
CALLS = st.lists(
    st.tuples(
        st.sampled_from(list(ENDS)),
        st.integers(1, 2000),
        st.floats(0, 1),
        st.integers(0, 9),
        st.integers(1, 3),
    ),
    max_size=30,
)


class TestConcurrentCalls:
    """Bills of concurrent calls stay below the ceiling."""

    @given(calls=CALLS, ceiling=st.floats(0, 10))
    @example(calls=[("left", 900, 1.0, 0, 1)] * 6, ceiling=3.0)
    @example(calls=[("billed", 900, 1.0, late, 1) for late in range(0, 12, 2)], ceiling=3.0)
    def test_the_sum_of_bills_is_below_the_ceiling(self, calls, ceiling):
        """No call costs more than its maximum."""
        purse = Purse(ceiling)
        billed, reservations = [], []

        async def one(end: str, tokens: int, share: float, late: int, steps: int) -> None:
            call = replace(CALL, max_tokens=tokens)
            for _ in range(late):
                await anyio.lowlevel.checkpoint()
            with (
                suppress(OverBudget),
                anyio.CancelScope() as scope,
                purse.reserve(member(), call) as held,
            ):
                reservations.append(held)
                if end != "released":
                    billed.append(share * worst(call))
                if end == "cancelled":
                    scope.cancel()
                for _ in range(steps):
                    await anyio.lowlevel.checkpoint()
                ENDS[end](held, share * worst(call))

        async def all_at_once() -> None:
            async with anyio.create_task_group() as group:
                for call in calls:
                    group.start_soon(one, *call)

        anyio.run(all_at_once, backend="trio")

        assert sum(billed) <= ceiling + 1e-6
        assert sum(each.expense().cost_usd or 0 for each in reservations) <= sum(billed) + 1e-9
