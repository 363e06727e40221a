"""Every rule side by side on the same ballots."""

import pickle
import time
from collections import Counter
from dataclasses import fields, replace
from typing import ClassVar

import numpy as np
import pytest

from elections import TENNESSEE, ballots
from witan.core.ballot import Ballot
from witan.core.comparison import compare_rules
from witan.core.counting import BatchCount, fits_of
from witan.core.gate import Gate
from witan.core.rules import RULES
from witan.core.settings import Settings
from witan.core.tally import SharedWork, tally_columns
from witan.errors import NothingToCount, UnknownName


class Refitted(BatchCount):
    """A count that another thread fits anew between any two reads."""

    made: ClassVar[list] = []

    @property
    def fits(self):
        """A new list every time."""
        self.made.append(fits_of(self.electorates, self.profile, self.rule))
        return self.made[-1]


def test_an_inference_is_made_and_found_by_the_fits_beside_it():
    """While these live no others get their identity, even if a thread fits anew meanwhile."""
    [(batch, _)] = tally_columns(ballots("x: a > b > c", "y: a > c > b"), Settings())
    values = {each.name: getattr(batch.count, each.name) for each in fields(BatchCount)}
    shared = SharedWork()

    shared.infer(Refitted(**values))

    [(key, (fits, inference))] = shared.inferences.items()
    [(part, _)] = inference.parts
    assert id(fits) == key
    assert part.uncertainty.fit is fits[0][0]


def test_rules_that_cannot_count_give_their_reason():
    """Rules that need grades or a history are skipped, the others count."""
    comparison = compare_rules(ballots("x: a > b > c", "y: a > c > b"), Settings())

    assert set(comparison.rules) | set(comparison.skipped) == set(RULES)
    assert "needs grades" in comparison.skipped["range"]
    assert "history" in comparison.skipped["elo"]


def test_rules_disagree_on_tennessee():
    """Nashville wins by Condorcet rules, Knoxville by instant runoff (a textbook example)."""
    cast = ballots(*TENNESSEE)

    comparison = compare_rules(cast, Settings(flips=False), ["borda", "schulze", "kemeny", "irv"])
    outcomes = comparison.outcomes[""]

    assert {rule: held.leaders for rule, held in outcomes.items()} == {
        "borda": ("Nashville",),
        "schulze": ("Nashville",),
        "kemeny": ("Nashville",),
        "irv": ("Knoxville",),
    }
    assert comparison.leader_differs == ((0, 0, 0, 1), (0, 0, 0, 1), (0, 0, 0, 1), (1, 1, 1, 0))
    assert comparison.tau[0][0] == pytest.approx(1)
    assert comparison.tau[1][3] < comparison.tau[1][2]


def test_stability_is_the_share_of_removals_that_change_nothing():
    """Two against one: only removing the third ballot keeps the lead as it is."""
    cast = ballots("x: a > b", "y: a > b", "z: b > a")

    comparison = compare_rules(cast, Settings(), ["borda"])

    assert comparison.stability["borda"] == pytest.approx(1 / 3)


def test_figures_cover_the_selected_session_alone():
    """Of two sessions one is selected: rankings, leaders and stability are its own."""
    cast = [
        *ballots("x: a > b > c", "y: a > b > c", session="one"),
        *ballots("x: b > a > c", "y: c > b > a", "z: a > c > b", session="two"),
    ]
    alone = compare_rules(ballots("x: a > b > c", "y: a > b > c", session="one"), Settings())

    comparison = compare_rules(cast, Settings(), only=["one"])

    assert comparison.sessions == ("one",)
    assert comparison.stability == alone.stability
    assert comparison.tau == alone.tau
    assert comparison.leader_differs == alone.leader_differs


def test_weights_are_learned_from_all_sessions():
    """The outcome of one session under learned weights is the same as among all sessions."""
    cast = [
        *ballots("x: a > b > c", "y: a > c > b", "z: c > b > a", session="one"),
        *ballots("x: a > b > c", "y: a > b > c", "z: c > b > a", session="two"),
    ]

    everything = compare_rules(cast, Settings(), ["weighted_borda"])
    some = compare_rules(cast, Settings(), ["weighted_borda"], only=["one"])

    assert some.outcomes["one"] == everything.outcomes["one"]


def test_an_unknown_session_is_refused():
    """A misspelt name does not give an empty comparison."""
    with pytest.raises(UnknownName, match="did you mean 'one'"):
        compare_rules(ballots("x: a > b", session="one"), Settings(), only=["onne"])


def test_leaders_are_compared_session_by_session():
    """Two sessions have two pairs of leaders."""
    cast = [
        *ballots("x: a > b", "y: a > b", session="one"),
        *[replace(b, session="two") for b in ballots(*TENNESSEE)],
    ]

    comparison = compare_rules(cast, Settings(flips=False), ["schulze", "irv"])

    assert comparison.sessions == ("one", "two")
    assert comparison.leader_differs[0][1] == 1


def test_no_ballots_and_unknown_rules_are_errors():
    """Each raises a sentence."""
    with pytest.raises(NothingToCount):
        compare_rules([], Settings())
    with pytest.raises(UnknownName, match="did you mean 'borda'"):
        compare_rules(ballots("x: a > b"), Settings(), ["bordo"])


def draw_sessions(rng, n_sessions):
    """Graded sessions of two shapes, from unanimous to noisy, with ties and gaps."""
    cast = []
    for number in range(n_sessions):
        reviewers = "vwxyz" if number % 3 else "xyz"
        worth = rng.choice((0, 1, 4)) * rng.permutation(4) / 2
        for reviewer in reviewers:
            seen = np.rint(3 + worth + rng.normal(0, 0.5, 4)).clip(1, 10).tolist()
            grades = dict(zip("abcd", seen, strict=True))
            if rng.random() < 0.1:
                grades.pop("abcd"[rng.integers(4)])
            groups = tuple(
                tuple(name for name, grade in grades.items() if grade == level)
                for level in sorted(set(grades.values()), reverse=True)
            )
            cast.append(Ballot(reviewer, groups, session=f"s{number}", grades=grades))
    return cast


@pytest.mark.parametrize("failed", [{}, {"a": ("malware_hacking",)}])
def test_leads_equal_those_of_the_outcomes(failed):
    """Counts of leads, clear or shared, follow the outcomes."""
    cast = draw_sessions(np.random.default_rng(5), 90)
    gates = {each.session: Gate(failed=failed) for each in cast[::2]}

    comparison = compare_rules(cast, Settings(gates=gates))

    for rule in comparison.rules:
        outcomes = [each[rule] for each in comparison.outcomes.values() if rule in each]
        leads = comparison.leads[rule]
        times = Counter(leader for each in outcomes for leader in each.leaders)
        assert leads.sessions == len(outcomes)
        assert leads.clear == sum(each.clear_leader is not None for each in outcomes)
        assert leads.shared == sum(len(each.leaders) > 1 for each in outcomes)
        assert leads.times == times
        assert [*leads.times.values()] == sorted(times.values(), reverse=True)
    assert sum(each.clear for each in comparison.leads.values()) > 0
    assert sum(each.shared for each in comparison.leads.values()) > 0
    assert comparison.same_leaders == sum(
        len({frozenset(each.leaders) for each in by_rule.values()}) == 1
        for by_rule in comparison.outcomes.values()
    )


def test_a_comparison_survives_pickling():
    """Another process reads the outcomes counted here."""
    comparison = compare_rules(draw_sessions(np.random.default_rng(6), 4), Settings())

    assert pickle.loads(pickle.dumps(comparison)) == comparison  # noqa: S301 - our own


class TestCancellation:
    """The caller's check runs often enough to stop the work."""

    @pytest.mark.slow
    @pytest.mark.alone
    def test_the_check_runs_in_short_intervals(self):
        """Once the ballots are read, four thousand sessions are counted in small pieces."""
        cast = [
            ballot
            for number in range(4000)
            for ballot in ballots("x: a > b > c", "y: a > c > b", session=str(number))
        ]
        times = [time.process_time()]

        def check_wanted():
            times.append(time.process_time())

        compare_rules(cast, Settings(), ["borda", "schulze", "irv"], check_wanted)
        check_wanted()

        assert len(times) > 20
        assert np.diff(times)[1:].max() < 0.5

    @pytest.mark.slow
    @pytest.mark.alone
    def test_time_is_linear_in_the_number_of_sessions(self):
        """Eight times as many sessions take about eight times as long."""
        graded = [name for name, rule in RULES.items() if rule.needs == "grades"]

        def seconds(n_sessions):
            names = [f"session-number-{number:07d}" for number in range(n_sessions)]
            cast = [Ballot("x", (("a",), ("b",)), session=name) for name in names]
            started = time.process_time()
            assert len(compare_rules(cast, Settings(), graded).skipped) == len(graded)
            return time.process_time() - started

        assert min(seconds(16_000) for _ in range(2)) < 20 * min(seconds(2_000) for _ in range(4))

    @pytest.mark.parametrize("n_asked", [0, 5, -1])
    def test_an_exception_of_the_check_ends_the_comparison(self, n_asked):
        """The first check can raise it, and so can the last."""
        cast = ballots("x: a > b > c", "y: a > c > b", "z: b > a > c")
        checks = []
        compare_rules(cast, Settings(), ["borda"], lambda: checks.append(None))
        left = [None] * (n_asked % len(checks))

        with pytest.raises(IndexError):
            compare_rules(cast, Settings(), ["borda"], left.pop)
        assert left == []
