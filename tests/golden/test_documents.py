"""The examples of the documents the specification was made from, as corrected.

Sources: ADR-007, ADR-010 and ADR-016 of amiable-dev/llm-council and its article "Why majority vote
fails for LLM councils". Where a document contradicts its own arithmetic, the arithmetic holds.
"""

from itertools import pairwise

import pytest

from elections import ballots, election
from witan.core.ballot import Ballot
from witan.core.profile import matchups
from witan.core.rules import RULES
from witan.core.tally import tally

FIRST = (
    "GPT-4: A > B > C > D",
    "Claude: B > A > C > D",
    "Gemini: A > C > B > D",
    "Grok: A > B > C > D",
)
SECOND = (
    "GPT-4: A > B > C > D",
    "Claude: B > C > A > D",
    "Gemini: C > A > B > D",
    "Grok: A > B > C > D",
)


class TestArticle:
    """Four reviewers, four answers."""

    def test_three_of_four_first_places_are_a_majority(self):
        """The article reports no majority winner; A has three first places of four."""
        outcome = tally(ballots(*FIRST), "borda")

        assert outcome["A"].wins == 3
        assert outcome.condorcet_winner == "A"
        assert outcome.leaders == ("A",)

    def test_in_the_second_set_a_is_a_weak_condorcet_winner(self):
        """The article says A–B is 2–2; it is 3–1, B–C 3–1 and A–C 2–2: nobody beats A, no cycle."""
        outcome = tally(ballots(*SECOND), "schulze")
        over = matchups(election(*SECOND)).wins[:, :, 0]

        assert (over[0, 1], over[1, 2], over[0, 2], over[2, 0]) == (3, 3, 2, 2)
        assert outcome.condorcet_winner is None
        assert outcome.cycles == ()
        assert outcome.leaders == ("A",)

    @pytest.mark.parametrize("lines", [FIRST, SECOND])
    def test_borda_is_the_row_sum_of_the_pairwise_matrix(self, lines):
        """The article says Borda ignores pairwise comparisons; points are their row sum."""
        profile = election(*lines)
        sums = matchups(profile).wins[:, :, 0].sum(axis=1)

        score = RULES["borda"](profile).score[:, 0]

        assert score * (profile.n_candidates - 1) * profile.n_reviewers == pytest.approx(sums)

    def test_the_cap_theorem_table(self):
        """Mean ranks Claude 1.33, GPT-4 1.67, Gemini 2.00, Grok 3.00, own votes recused."""
        outcome = tally(
            ballots(
                "GPT-4: Claude > Gemini > Grok",
                "Claude: Gemini > GPT-4 > Grok",
                "Gemini: GPT-4 > Claude > Grok",
                "Grok: Claude > GPT-4 > Gemini",
            ),
            "mean_rank",
        )

        assert [(line.candidate, round(line.score, 2)) for line in outcome.standings] == [
            ("Claude", 1.33),
            ("GPT-4", 1.67),
            ("Gemini", 2.00),
            ("Grok", 3.00),
        ]


class TestADR007:
    """Borda scores with recusal."""

    def test_recusal_after_counting_gives_the_published_numbers(self):
        """Points are N − 1 − position over all four labels; own votes are dropped afterwards."""
        cast = ballots("a: a > b > c > d", "b: a > b > c > d", "c: b > a > c > d")

        outcome = tally(cast, "borda", recusal="after", variant="roster")

        points = {line.candidate: line.details["points"] for line in outcome.standings}
        assert points == pytest.approx({"a": 2.5, "b": 2.5, "c": 1.0, "d": 0.0})

    def test_recusal_after_counting_rewards_ranking_oneself_first(self):
        """It lowers every rival there, and changes nothing by default."""
        vain, modest = "a: a > b > c", "a: b > c > a"
        others = ("b: a > c > b", "c: a > b > c")

        after = [
            tally(ballots(line, *others), "borda", recusal="after", variant="roster")["b"].score
            for line in (vain, modest)
        ]
        before = [tally(ballots(line, *others), "borda")["b"].score for line in (vain, modest)]

        assert after[0] < after[1]
        assert before[0] == before[1]

    def test_wins_break_ties_of_scores(self):
        """Candidates equal on both share the rank; the document's listing breaks no tie."""
        cast = ballots(
            "x: a > b > c",
            "y: a > b > c",
            "z: b > c > a",
            "w: b > a > c",
            "v: b > c > a",
            "u: a > b > c",
            "t: a > c > b",
        )

        assert [line.rank for line in tally(cast, "borda").standings] == [1, 2, 3]

    def test_a_candidate_without_votes_is_listed_last_with_zero(self):
        """The document's table has it, its listing does not; here the table is followed."""
        cast = [Ballot("x", groups=(("a",), ("b",)), candidates=("a", "b", "c"))]

        line = tally(cast, "borda").standings[-1]

        assert (line.candidate, line.score, line.votes) == ("c", 0.0, 0)


class TestADR010:
    """Normalised scores."""

    @pytest.mark.parametrize("threshold", [0.0, 0.5, 1.0, 1.96, 4.0, 100.0])
    def test_lines_are_tied_where_their_intervals_overlap(self, threshold):
        """Its rule: mean − z·error below the next mean + z·error, as its own 0.526 < 0.881 is."""
        cast = [
            Ballot("1", grades={"x": 9, "y": 8, "z": 3}),
            Ballot("2", grades={"x": 8, "y": 8, "z": 2}),
            Ballot("3", grades={"x": 9, "y": 5, "z": 4}),
        ]

        outcome = tally(cast, "normalized_scores", ties="intervals", threshold=threshold)

        for line, following in pairwise(outcome.standings):
            low = line.score - threshold * line.std_error
            high = following.score + threshold * following.std_error
            assert line.tied_with_next == (low < high)

    def test_grades_distinguish_what_ranks_do_not(self):
        """Scenario A [10, 9.9, 2] is a tie at the top, scenario B [6, 3, 1] is not."""
        close = [Ballot(r, grades={"x": 10, "y": 9.9, "z": 2}) for r in ("1", "2", "3")]
        clear = [Ballot(r, grades={"x": 6, "y": 3, "z": 1}) for r in ("1", "2", "3")]
        close[1] = Ballot("2", grades={"x": 9.8, "y": 9.9, "z": 2})

        assert tally(close).tied_for_best == ("x", "y")
        assert tally(clear).tied_for_best == ("x",)

    def test_a_harsh_and_a_generous_reviewer_agree_after_standardising(self):
        """GPT-4's [7, 6, 5, 4] and a generous [10, 9, 8, 7] have the same z-scores."""
        cast = [
            Ballot("GPT-4", grades={"A": 7, "B": 6, "C": 5, "D": 4}),
            Ballot("Claude", grades={"A": 10, "B": 9, "C": 8, "D": 7}),
        ]

        outcome = tally(cast, "normalized_scores")

        assert [line.score for line in outcome.standings] == pytest.approx(
            [1.3416408, 0.4472136, -0.4472136, -1.3416408]
        )
