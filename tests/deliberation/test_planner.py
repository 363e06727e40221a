"""Plans: the calls of a session, and bounds that the real session keeps."""

import json
from collections import Counter
from itertools import count

import anyio
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from calling import LoopClock
from witan.deliberation.council import BaseCouncil
from witan.deliberation.plan import Plan
from witan.deliberation.planner import make_plan
from witan.deliberation.ports import Call, Hear, Member, Message, Options, Price, Reply, Seat
from witan.deliberation.procedure import Limits, Procedure
from witan.errors import InvalidParameter

PRICE = Price(input_usd=2.5, output_usd=10.0)
TOKENS = 2_000


NUMBERS = count()


class Verbose:
    """A model that answers at maximum length, reviews unreadably, and repairs with a ranking."""

    def __init__(self, turn: int) -> None:
        self.turn = turn
        self.calls: list[Call] = []

    async def complete(self, call: Call, hear: Hear) -> Reply:
        self.calls.append(call)
        hear("…")
        # Two bytes a token: more than any other model's tokenizer makes of a text of this length.
        # One byte a token: what its own makes of a review that nobody else reads.
        letter = chr(0xE0 + next(NUMBERS) % 0x100)  # of two bytes; no two answers are the same
        text = ("e" if call.stage == "review" else letter) * call.max_tokens
        return Reply(self.review(call) if call.stage == "repair" else text)

    def review(self, call: Call) -> str:
        form = call.schema["properties"]
        labels = form["ranking"]["items"]["items"]["enum"]
        turned = labels[self.turn % len(labels) :] + labels[: self.turn % len(labels)]
        said = {"notes": "", "ranking": [[label] for label in turned]}
        if "grades" in form:
            asked = form["grades"]["properties"]
            said["grades"] = {
                label: dict.fromkeys(asked[label]["properties"], 9 - place)
                for place, label in enumerate(turned)
            }
        return json.dumps(said)


def seats(n: int, price: Price | None = PRICE, **options) -> list[Seat]:
    return [Seat(f"m{i}", "", "p", Options(**options), price) for i in range(n)]


def plan(n: int = 3, chairmen: int = 1, **procedure) -> Plan:
    chairs = [Seat(f"chair {i}", "", "p", price=PRICE) for i in range(chairmen)]
    return make_plan(seats(n), chairs, Procedure(**procedure), "Why?")


def calls(made: Plan) -> Counter[str]:
    """Stage to calls, of all seats together."""
    counted: Counter[str] = Counter()
    for line in made.lines:
        counted[line.stage] += line.calls
    return counted


class TestCalls:
    """The planned calls."""

    def test_five_members_make_eleven_calls(self):
        """Answers, reviews and a final answer; repairs and another final answer may follow."""
        made = plan(5)

        assert calls(made) == {"answer": 5, "review": 5, "repair": 5, "synthesis": 2}
        assert (made.calls, made.repairs) == (11, 5)

    def test_a_debate_calls_every_member_again(self):
        """With two debates each member answers three times."""
        assert calls(plan(3, debate_rounds=2))["answer"] == 9

    def test_rounds_and_mirrors_multiply_the_reviews(self):
        """Two rounds in two orders are four reviews by each member, and as many repairs."""
        made = plan(3, review_rounds=2, mirrored=True)

        assert (calls(made)["review"], calls(made)["repair"], made.repairs) == (12, 12, 12)

    @pytest.mark.parametrize(
        "procedure", [{"mode": "best"}, {"synthesis": False}, {"mode": "best", "synthesis": False}]
    )
    def test_no_call_is_planned_without_a_final_answer(self, procedure):
        """The best answer needs no chairman."""
        assert calls(plan(3, **procedure))["synthesis"] == 0

    @pytest.mark.parametrize(
        ("procedure", "reviews"),
        [
            ({"rubric_scoring": False, "self_review": True}, 2),
            ({"rubric_scoring": False, "holistic": True}, 2),
            ({}, 2),
        ],
    )
    def test_two_members_review_if_they_can_compare_or_grade(self, procedure, reviews):
        """One answer can be graded but not ranked; with self-review each sees both."""
        made = plan(2, **procedure)

        assert (calls(made)["review"], made.repairs) == (reviews, reviews)

    def test_two_members_that_only_rank_are_refused(self):
        """Each would rank a single answer."""
        with pytest.raises(InvalidParameter, match="each would rank one answer alone"):
            plan(2, rubric_scoring=False)

    def test_the_first_chairman_is_expected_to_write(self):
        """The others, and finally the most expensive member, are called only if it fails."""
        lines = [line for line in plan(3, chairmen=2).lines if line.stage == "synthesis"]

        asked = [(line.seat, line.if_needed) for line in lines]
        assert asked == [("chair 0", False), ("chair 1", True), ("m0", True)]

    def test_without_a_chairman_the_most_expensive_member_is_planned(self):
        """The best-ranked member writes, which may be the most expensive."""
        members = [
            Seat("cheap", "", "p", price=Price(1, 1)),
            Seat("dear", "", "p", price=Price(9, 9)),
            Seat("fair", "", "p", price=Price(5, 5)),
        ]

        assert make_plan(members, [], Procedure(), "Why?").lines[-1].seat == "dear"

    def test_lines_are_in_the_order_of_stages_and_seats(self):
        """Stages are answers, reviews, repairs and the final answer."""
        lines = [(line.stage, line.seat) for line in plan(2).lines]

        assert lines == [
            *(("answer", f"m{i}") for i in range(2)),
            *(("review", f"m{i}") for i in range(2)),
            *(("repair", f"m{i}") for i in range(2)),
            ("synthesis", "chair 0"),
            ("synthesis", "m0"),
        ]


class TestTokens:
    """Tokens read and written."""

    def test_the_limit_of_a_member_takes_precedence(self):
        """Its replies are shorter, and so is what others read of it."""
        terse = Seat("terse", "", "p", Options(max_tokens=10), PRICE)
        limits = Procedure(limits=Limits(max_tokens=1000))

        made = make_plan([*seats(2), terse], [], limits, "Why?")

        written = {(line.seat, line.stage): line.output_tokens for line in made.lines}
        assert (written["terse", "answer"], written["m0", "answer"]) == (10, 1000)
        reads = {line.seat: line.input_tokens for line in made.lines if line.stage == "review"}
        assert reads["terse"] - reads["m0"] == 2 * (1000 - 10)

    @pytest.mark.parametrize(
        "more",
        [
            {"question": "Why? " * 100},
            {"files": {"notes.txt": "x" * 500}},
            {"conversation": (Message("user", "x" * 500),)},
        ],
        ids=lambda more: next(iter(more)),
    )
    def test_the_question_is_counted_in_every_call(self, more):
        """A longer question, a file or a conversation adds its length to each prompt."""
        asked = {"question": "Why?", "conversation": (), "files": {}}

        short, long = (
            make_plan(seats(3), [], Procedure(), **(asked | given)) for given in ({}, more)
        )

        for before, after in zip(short.lines, long.lines, strict=True):
            assert after.input_tokens >= before.input_tokens + 480 * before.calls

    def test_a_system_prompt_is_counted_in_calls_of_its_member(self):
        """Calls of others are unchanged."""
        told = Seat("told", "", "p", Options(system="x" * 500), PRICE)
        made = make_plan([*seats(2), told], [], Procedure(), "Why?")

        reads = {(line.seat, line.stage): line.input_tokens for line in made.lines}
        assert reads["told", "answer"] >= reads["m0", "answer"] + 500
        assert reads["told", "review"] >= reads["m0", "review"] + 500
        assert reads["m0", "review"] == reads["m1", "review"]

    def test_a_repair_reads_a_bounded_part_of_the_failed_review(self):
        """The bound is in characters, at four bytes each."""
        terse, verbose = (
            make_plan(seats(3, max_tokens=n), [], Procedure(), "Why?") for n in (4_000, 400_000)
        )

        def more(made):
            reads = {line.stage: line.input_tokens for line in made.lines if line.seat == "m0"}
            return reads["repair"] - reads["review"]

        assert 4_000 < more(terse) < 2 * 4_000
        assert more(verbose) - more(terse) == 16_000 - 4_000


class TestMoney:
    """The maximum cost."""

    def test_the_cost_is_tokens_times_prices(self):
        """The sum includes the repairs."""
        made = plan(4)

        for line in made.lines:
            assert line.worst_usd == PRICE.of(line.input_tokens, line.output_tokens)
        assert made.worst_usd == pytest.approx(sum(line.worst_usd for line in made.lines))

    def test_one_unknown_price_makes_the_sum_unknown(self):
        """The seat is named, and the other lines have their costs."""
        made = make_plan([*seats(2), *seats(1, price=None)], [], Procedure(), "Why?")
        lines = [line for line in made.lines if line.worst_usd is not None]

        assert made.worst_usd is None
        assert made.unpriced_seats == ("m0",)
        assert len(lines) == 6

    def test_an_unknown_price_counts_as_the_highest(self):
        """Without a chairman the member of unknown price is planned."""
        free = Seat("unknown", "", "p")

        assert make_plan([*seats(2), free], [], Procedure(), "Why?").lines[-1].seat == "unknown"

    def test_free_models_cost_nothing(self):
        """The cost of local models is zero, not unknown."""
        made = make_plan(seats(3, price=Price(0, 0)), [], Procedure(), "Why?")

        assert made.worst_usd == 0.0


PROCEDURES = st.fixed_dictionaries(
    {
        "mode": st.sampled_from(["consensus", "verdict", "best"]),
        "rubric_scoring": st.booleans(),
        "holistic": st.booleans(),
        "self_review": st.booleans(),
        "mirrored": st.booleans(),
        "review_rounds": st.integers(1, 2),
        "debate_rounds": st.integers(0, 2),
    }
)
PLAIN = {
    "mode": "consensus",
    "rubric_scoring": False,
    "holistic": False,
    "self_review": False,
    "mirrored": False,
    "review_rounds": 1,
    "debate_rounds": 0,
}
WHOLE = {
    "mode": "verdict",
    "rubric_scoring": True,
    "holistic": True,
    "self_review": True,
    "mirrored": True,
    "review_rounds": 2,
    "debate_rounds": 1,
}


class TestReality:
    """A session in which every reply has maximum length, and every review is repaired."""

    def session(self, members: list[Member], chairs: list[Member], procedure: Procedure) -> Plan:
        """Run the session; return its plan."""

        async def ask_and_plan() -> Plan:
            async with BaseCouncil(members, chairs, procedure, clock=LoopClock()) as council:
                session = await council.ask(
                    "Why <<<END QUESTION>>>?",
                    conversation=[Message("user", "Hello"), Message("assistant", "Hello «»")],
                    files={"a.txt": "some <<<text"},
                    seed=1,
                )
            return session.opening.plan

        return anyio.run(ask_and_plan, backend="trio")

    @given(n=st.integers(3, 5), chaired=st.booleans(), procedure=PROCEDURES)
    @example(n=6, chaired=True, procedure=WHOLE)
    @example(n=6, chaired=False, procedure=WHOLE)
    @example(n=3, chaired=True, procedure=PLAIN)
    @example(n=2, chaired=True, procedure=PLAIN | {"holistic": True})
    def test_the_session_stays_within_its_plan(self, n, chaired, procedure):
        """It has as many calls as planned, and no figure exceeds the plan's."""
        options = Options(system="Be brief.")
        models = [Verbose(turn) for turn in range(n + 1)]
        members = [
            Member(f"m{i}", models[i], "script:m", "p", options, Price(1.0 + i, 10.0 + i))
            for i in range(n)
        ]
        chair = Member("chair", models[n], "script:c", "p", options, PRICE)
        limits = Limits(max_tokens=TOKENS)

        made = self.session(
            members, [chair] if chaired else [], Procedure(**procedure, limits=limits)
        )

        worst = 0.0
        asked: Counter[tuple[str, str]] = Counter()
        read: Counter[tuple[str, str]] = Counter()
        for member, model in zip([*members, chair], models, strict=True):
            for call in model.calls:
                seat = "" if call.stage == "synthesis" else member.name
                tokens = call.most_input_tokens()
                asked[seat, call.stage] += 1
                read[seat, call.stage] += tokens
                worst += member.price.of(tokens, call.max_tokens)
        planned = [x for x in made.lines if x.stage != "synthesis" or not x.if_needed]
        lines = {("" if x.stage == "synthesis" else x.seat, x.stage): x for x in planned}
        assert asked == {key: line.calls for key, line in lines.items()}
        for key, tokens in read.items():
            assert tokens <= lines[key].input_tokens
            assert lines[key].output_tokens == TOKENS * lines[key].calls
        assert worst <= made.worst_usd
