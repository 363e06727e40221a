"""Arms measured by right answers or people's votes, without a jury or further calls."""

from contextlib import nullcontext

import anyio
import pytest
from test_arm_batch import council, jury

from witan.batches import ArmBatch, ArmOptions, BatchOptions, BatchRow
from witan.core.arms import matches_reference, vote_ballot
from witan.errors import InvalidParameter

SIZES = (30, 50, 50, 30, 50, 30, 50, 50)
"""Right answers: the council always says 50, and its best member never."""

BOTH = ("council", "best")


def rows(references=(), votes=()):
    """Questions with these right answers, or votes of people."""
    return [
        BatchRow(
            n,
            str(n),
            f"Why {n}?",
            reference=references[n - 1] if references else None,
            votes=votes[n - 1] if votes else {},
        )
        for n in range(1, max(len(references), len(votes)) + 1)
    ]


def run(history, tasks, measure, *, arms=BOTH, judges=None):
    """Run a batch by a measure; return its report, its results and its bill afterwards."""
    results = {}

    async def go():
        async with council() as answering, judges or nullcontext():
            options = ArmOptions(arms, "bob", measure=measure)
            batch = ArmBatch(answering, judges, history, tasks, BatchOptions(), arms=options)
            report = await batch.run(lambda result: results.update({result.row: result}))
            return report, batch.bill()

    report, bill = anyio.run(go)
    return report, results, bill


class TestMatch:
    """A text is right if it contains the words of the reference."""

    @pytest.mark.parametrize(
        ("text", "reference"),
        [
            ("The capital is Paris.", "paris"),
            ("It is the United Kingdom, of course [A].", "United Kingdom"),
            ("1,000 metres", "1000"),
            ("An apple", "the apple"),
            ("ｆｕｌｌ width", "full"),
        ],
    )
    def test_case_marks_and_articles_do_not_matter(self, text, reference):
        """As in SQuAD."""
        assert matches_reference(text, reference)

    @pytest.mark.parametrize(
        ("text", "reference"),
        [("14 days", "4"), ("Kingdom, United", "United Kingdom"), ("Parisian", "Paris"), ("", "x")],
    )
    def test_words_match_whole_and_in_order(self, text, reference):
        """A part of a word is another word."""
        assert not matches_reference(text, reference)


class TestReferences:
    """Rows with right answers."""

    def test_arms_are_compared_by_right_answers(self, history):
        """The council is right in five of eight, its best member in none, without a judge."""
        references = [f"size {size}" for size in SIZES]
        report, results, bill = run(history, rows(references), "references")
        found = report.comparison
        [line] = found.differences

        assert (found.measure, found.unit, found.questions) == (
            "references",
            "difference of shares",
            8,
        )
        assert line.mean.jury.value == pytest.approx(5 / 8)
        assert line.mean.jury.interval.low > 0
        assert "of the questions, net" in line.sentence
        assert len([*history.sessions()]) == 8
        assert {result.judgment for result in results.values()} == {None}
        assert (bill.calls, bill.parts) == (0, {"council": 0, "self": 0})

    def test_a_repeated_batch_makes_no_call(self, history):
        """It gives the same result, with every row from the earlier run."""
        tasks = rows([f"size {size}" for size in SIZES])
        arms = ("council", "best", "self")
        first, _, _ = run(history, tasks, "references", arms=arms)
        again, _, _ = run(history, tasks, "references", arms=arms)

        assert again.comparison == first.comparison
        assert (first.earlier, again.earlier) == (0, 8)
        assert [(each.first, each.second) for each in again.comparison.differences] == [
            ("council", "best"),
            ("council", "self"),
            ("self", "best"),
        ]

    def test_rows_without_a_right_answer_are_left_out(self, history):
        """They are counted."""
        references = [*(f"size {size}" for size in SIZES), None, None]
        report, _, _ = run(history, rows(references), "references")

        assert (report.comparison.questions, report.unjudged) == (8, 2)

    @pytest.mark.parametrize("reference", ["word " * 11, "?!"])
    def test_references_that_cannot_be_matched_are_refused(self, history, reference):
        """A long right answer needs a jury; one without a word matches nothing."""
        with pytest.raises(InvalidParameter, match="reference of row 1"):
            run(history, rows([reference]), "references")


class TestVotes:
    """Rows with people's votes on arms."""

    def test_arms_are_compared_by_votes(self, history):
        """Two people each prefer one; later votes need no call."""
        plain = rows(votes=[{} for _ in range(8)])
        before, _, _ = run(history, plain, "votes")
        votes = [{"ann": "council", "ben": "council" if n % 2 else "tie"} for n in range(8)]
        report, _, bill = run(history, rows(votes=votes), "votes")
        [line] = report.comparison.differences

        assert (before.comparison, before.unjudged) == (None, 8)
        assert line.mean.jury.value == pytest.approx(0.75)
        assert (line.conclusion, report.comparison.measure) == ("ahead", "votes")
        assert "of the votes, net" in line.sentence
        assert len([*history.sessions()]) == 8
        assert bill.calls == 0

    def test_a_vote_is_for_a_text(self):
        """An arm with the same text is preferred together with it."""
        texts = {"council": "It is so.", "best": "No.", "self": "No."}

        assert vote_ballot(texts, "ann", "best").groups == (("best", "self"), ("council",))
        assert vote_ballot(texts, "ann", "tie").groups == (("council", "best", "self"),)
        assert vote_ballot({"council": "So."}, "ann", "best") is None

    def test_votes_correct_a_jury(self, history):
        """Like votes on the judgments; without votes the jury counts alone."""
        votes = [{"ann": "best"} for _ in range(8)]
        report, _, _ = run(history, rows(votes=votes), "jury", judges=jury())
        [line] = report.comparison.differences

        assert report.comparison.people_questions == 8
        assert line.mean.jury.value == 1
        assert line.mean.people.value == -1

    def test_a_vote_for_an_unknown_arm_is_refused(self, history):
        """The error names the arms."""
        with pytest.raises(InvalidParameter, match=r"of ann on row 1 .* council, best or tie"):
            run(history, rows(votes=[{"ann": "ada"}]), "votes")


class TestJury:
    """Exactly one measure: a jury, references or votes."""

    def test_a_jury_beside_another_measure_is_refused(self, history):
        """Its calls would be wasted."""
        with pytest.raises(InvalidParameter, match="the measure is references"):
            run(history, rows(["x"]), "references", judges=jury())

    def test_a_comparison_without_a_measure_is_refused(self, history):
        """Nothing would compare the arms."""
        with pytest.raises(InvalidParameter, match="a jury"):
            run(history, rows(["x"]), "jury")
