"""Comparisons of pairs: two texts a sheet, each pair in both orders, stored as made."""

import json
from collections import Counter
from dataclasses import replace
from itertools import combinations

import anyio
import pytest

from councils import QUESTION, council, member, members
from juries import prompts_of, record_calls
from witan import Council, History
from witan.analytics.audits import audit
from witan.core.blinding import draw_pair_sheets
from witan.deliberation import events as e
from witan.deliberation.ports import Price, Reply, Usage
from witan.deliberation.prompts import read_fences
from witan.deliberation.record import session_from_json, session_to_json
from witan.errors import InvalidParameter

pytestmark = pytest.mark.anyio

TEXTS = {name: f"This is the text {name}." for name in ("ash", "bay", "cob", "dew")}


class Chooser:
    """A model that prefers one of two texts by a function of them."""

    def __init__(self, choose) -> None:
        self.choose = choose

    async def complete(self, call, _hear, /):
        shown = {label: text.split()[-1][:-1] for label, text in read_fences(prompt(call)).items()}
        best = self.choose(*shown.values())
        ranking = sorted(([label] for label in shown), key=lambda each: shown[each[0]] != best)
        return Reply(json.dumps({"notes": "So.", "ranking": ranking}), Usage(10, 10))


class Mute(Chooser):
    """A model that takes the first by name, but fails on some texts."""

    def __init__(self, avoided) -> None:
        super().__init__(by_name)
        self.avoided = avoided

    async def complete(self, call, hear, /):
        if self.avoided & {text.split()[-1][:-1] for text in read_fences(prompt(call)).values()}:
            return Reply("I would rather not.", Usage(1, 1))
        return await super().complete(call, hear)


class Member(Chooser):
    """A model that answers with its name, and does not compare these two answers."""

    def __init__(self, name, avoided) -> None:
        super().__init__(by_name)
        self.name, self.avoided = name, avoided

    async def complete(self, call, hear, /):
        if call.stage == "answer":
            return Reply(f"This is {self.name}.", Usage(1, 1))
        if self.avoided == {text.split()[-1][:-1] for text in read_fences(prompt(call)).values()}:
            return Reply("I would rather not.", Usage(1, 1))
        return await super().complete(call, hear)


def prompt(call):
    """The prompt of a call."""
    return "\n".join(message.text for message in call.messages)


def juror(name, choose, **changes):
    """A juror that chooses between two texts by a function."""
    return replace(member(name), model=Chooser(choose), **changes)


def by_name(*names):
    """Prefer the first by name."""
    return min(names)


async def judged(jury, texts=TEXTS, **options):
    """A jury's verdict on texts, with up to twenty pairs each."""
    with anyio.fail_after(60):
        async with council(jury, **{"pairs": 20, **options}) as opened:
            return await opened.judge(texts, seed=2)


class TestSheets:
    """The reviewers and order of each pair."""

    @pytest.mark.parametrize("n", [3, 4, 7, 8])
    def test_every_pair_is_shown_in_both_orders(self, n):
        """Each reviewer may compare all pairs."""
        names = [f"t{at}" for at in range(n)]
        [sheets] = draw_pair_sheets(["r"], names, [1], 99, hidden_candidates={}).values()

        assert len(sheets) == n * (n - 1)
        assert Counter(each.candidates for each in sheets) == Counter(
            order for pair in combinations(names, 2) for order in (pair, pair[::-1])
        )

    def test_pairs_are_shared_out_evenly(self):
        """Nine texts have 36 pairs; four reviewers with nine pairs each compare every one once."""
        names = [f"t{at}" for at in range(9)]
        sheets = draw_pair_sheets([*"abcd"], names, [3], 9, hidden_candidates={})
        pairs = [frozenset(each.candidates) for own in sheets.values() for each in own]
        texts = [Counter(c for each in own for c in each.candidates) for own in sheets.values()]

        assert {*Counter(pairs).values()} == {2}
        assert all(max(own.values()) - min(own[name] for name in names) <= 4 for own in texts)

    def test_nobody_compares_its_own_answer(self):
        """It is on none of the author's sheets."""
        sheets = draw_pair_sheets(
            [*"abc"], [*"abc"], [3], 9, hidden_candidates={c: c for c in "abc"}
        )

        assert {name: {*own[0].candidates} for name, own in sheets.items()} == {
            "a": {"b", "c"},
            "b": {"a", "c"},
            "c": {"a", "b"},
        }


class TestJudgment:
    """A jury compares several texts two at a time."""

    async def test_the_winner_of_every_pair_leads(self):
        """Each of five jurors compares six pairs in both orders, without grades."""
        jury = record_calls([juror(name, by_name) for name in "vwxyz"])
        session = await judged(jury)

        assert session.outcome.ranking == (("ash",), ("bay",), ("cob",), ("dew",))
        assert [len(prompts_of([each], "review")) for each in jury] == [12] * 5
        assert all("grade nothing" in each for each in prompts_of(jury, "review"))
        assert len(session.ballots) == 60
        assert session.consistency == dict.fromkeys("vwxyz", (6, 6))
        assert (session.status, session.verdict.reviewers) == ("complete", tuple("vwxyz"))

    async def test_a_cycle_is_stored_as_three_opinions(self):
        """A reviewer may prefer a to b, b to c and c to a."""
        beats = {"ash": "bay", "bay": "cob", "cob": "ash"}
        jury = [juror(n, lambda a, b: a if beats[a] == b else b) for n in "xyz"]
        session = await judged(jury, {name: TEXTS[name] for name in beats})
        opinions = {ballot.groups for ballot in session.ballots}

        assert opinions == {(("ash",), ("bay",)), (("bay",), ("cob",)), (("cob",), ("ash",))}
        assert [len(ballot.groups) for ballot in session.reviewer_ballots.values()] == [1] * 3
        assert session.outcome.cycles
        assert session.verdict.decision == "too close to call"

    async def test_a_reviewer_that_picks_the_first_shown_ties_all(self):
        """It has flipped every pair."""
        session = await judged([juror(name, lambda first, _: first) for name in "xyz"])

        assert session.consistency == dict.fromkeys("xyz", (0, 6))
        assert len(session.outcome.leaders) == 4

    async def test_the_record_has_every_comparison(self):
        """It counts to the same outcome."""
        session = await judged([juror(name, by_name) for name in "xyz"])
        back = session_from_json(session_to_json(session))

        assert (back.ballots, back.outcome) == (session.ballots, session.outcome)
        assert back.recount().standings == session.outcome.standings
        assert back.recount("schulze", without=["x"]).leaders == ("ash",)

    async def test_an_unreadable_comparison_is_left_out(self):
        """The other pairs count, and the seat states the gap; without any it abstains."""
        shy = replace(member("y"), model=Mute({"ash"}))
        mute = replace(member("z"), model=Mute({*TEXTS}))
        session = await judged([juror("w", by_name), juror("x", by_name), shy, mute])
        [cast] = [event for event in session.events if getattr(event, "lost", None)]
        n_by_reviewer = Counter(each.reviewer for each in session.ballots if not each.abstained)

        assert n_by_reviewer == {"w": 12, "x": 12, "y": 6}
        assert cast.seat == "y"
        assert session.outcome.leaders == ("ash",)
        assert [line.partition(":")[0] for line in session.missing] == [
            "not all pairs by y could be read",
            "z cast no ballot",
        ]

    async def test_a_reviewer_that_compared_only_its_own_answer_abstains(self):
        """Own answers are shown but never counted; others' comparisons are."""
        seated = [
            replace(member(name), model=Member(name, avoided))
            for name, avoided in (("a", {"b", "c"}), ("b", set()), ("c", set()))
        ]
        async with council(seated, pairs=3, self_review=True, mode="best") as opened:
            session = await opened.ask(QUESTION, seed=1)
        n_by_reviewer = Counter(each.reviewer for each in session.ballots if not each.abstained)

        assert n_by_reviewer == {"b": 2, "c": 2}
        assert session.outcome.abstentions["a"].startswith("compared its own answer alone")

    async def test_two_members_cannot_compare_pairs(self):
        """Every pair has an answer of its reviewer."""
        for shows_own in (False, True):
            async with council(members("ab"), pairs=3, self_review=shows_own) as opened:
                with pytest.raises(InvalidParameter, match="pairs"):
                    await opened.ask(QUESTION)

    async def test_a_history_stores_the_comparisons(self, tmp_path):
        """It counts each pair in both orders once."""
        jury = [juror(n, by_name, simulated=False) for n in "xy"]
        jury.append(juror("z", lambda first, _: first, simulated=False))
        with History.open(tmp_path / "history.sqlite") as history:
            async with Council(jury, pairs=20, history=history) as opened:
                session = await opened.judge(TEXTS, seed=2)
            stored = history.ballots(session.id)
            [line] = [each for each in audit(history).reviewers if each.reviewer == "script:z"]

        assert len(stored) == 36
        assert all(ballot.paired for ballot in stored)
        assert line.order_consistency.n == 6


class TestPlan:
    """The cost of pairs."""

    async def test_a_ceiling_reduces_the_number_of_pairs(self):
        """The opening states the number."""
        dear = Price(1.0, 1.0)
        jury = [juror(name, by_name, price=dear) for name in "xyz"]
        whole = await opening(jury)
        half = await opening(jury, max_cost_usd=whole.plan.usual_usd / 2)

        assert (whole.procedure.pairs, whole.plan.calls) == (6, 36)
        assert (half.procedure.pairs, half.plan.calls) == (3, 18)
        assert half.plan.usual_usd <= whole.plan.usual_usd / 2

    async def test_members_compare_the_answers_of_others(self):
        """Each of five sees four answers: six pairs, in both orders."""
        async with council(members(), pairs=10) as opened:
            planned = opened.plan(QUESTION)
            session = await opened.ask(QUESTION, seed=1)
        reviews = sum(line.calls for line in planned.lines if line.stage == "review")
        sheets = [x for x in session.events if isinstance(x, e.SheetDrawn)]

        assert reviews == len(sheets) == 60
        assert session.outcome.leaders == ("c",)

    @pytest.mark.parametrize(
        ("texts", "options", "name"),
        [
            ("one text", {}, "pairs"),
            (TEXTS, {"pairs": 0}, "pairs"),
            ({f"t{n}": f"Text {n}" for n in range(9)}, {"pairs": 2}, "pairs"),
            (TEXTS, {"spend": "adaptive"}, "spend"),
            (TEXTS, {"holistic": True}, "holistic"),
            (TEXTS, {"rule": "range"}, "rule"),
        ],
    )
    async def test_invalid_settings_for_pairs_are_refused(self, texts, options, name):
        """Examples are one text, too few pairs to connect all, and settings that need grades."""
        with pytest.raises(InvalidParameter, match=name):
            await judged([juror(n, by_name) for n in "xyz"], texts, **options)


async def opening(jury, **options):
    """The opening of a judgment of four texts."""
    async with council(jury, pairs=20, **options) as opened:
        return await opened.open_judgment(TEXTS, seed=1)
