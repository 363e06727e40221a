"""Ballots: replies are read as reviews, or refused with a reason."""

import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from witan.core.ballot import Ballot
from witan.core.blinding import Sheet
from witan.core.rubric import Criterion, Rubric
from witan.deliberation.ballots import LONGEST_REPLY, Review, read_review
from witan.errors import InvalidBallot

SHEET = Sheet("rev", ("claude", "grok", "gemini"), ("A", "B", "C"), "5d41")
ROSTER = ("gemini", "grok", "claude", "rev")
RUBRIC = Rubric(
    "mine",
    (Criterion("accuracy", 0.6, "Is it right?"), Criterion("clear prose", 0.4, "Is it clear?")),
)
ORDER = (("claude",), ("grok", "gemini"))
CHAIN = (("claude",), ("grok",), ("gemini",))


def read(
    reply: str, *, rubric: Rubric | None = None, holistic: bool = False, sheet: Sheet = SHEET
) -> Review:
    """Read a reply to the sheet of three."""
    return read_review(reply, sheet, rubric=rubric, holistic=holistic, session="q1", roster=ROSTER)


def review_text(ranking: object = (("A",), ("B", "C")), **more: object) -> str:
    """Write a review that follows the schema."""
    return json.dumps({"notes": "A cites its source.", "ranking": ranking, **more})


def grade(accuracy: object, clear: object) -> dict[str, object]:
    return {"accuracy": accuracy, "clear prose": clear}


class TestSchema:
    """The whole reply follows the schema."""

    def test_a_ranking_becomes_a_ballot(self):
        """Labels become candidates; the ballot has sheet, roster and notes."""
        review = read(review_text())

        assert review == Review(
            Ballot(
                reviewer="rev",
                groups=ORDER,
                session="q1",
                candidates=ROSTER,
                positions={"claude": 1, "grok": 2, "gemini": 3},
                notes="A cites its source.",
            ),
            "schema",
        )

    def test_grades_by_criterion_are_read(self):
        """They are kept as given, by candidate and criterion."""
        grades = {"A": grade(9, 8), "B": grade(5, 6.5), "C": grade(2, 3)}

        review = read(review_text(grades=grades), rubric=RUBRIC)

        assert review.read_by == "schema"
        assert review.ballot.grades == {
            "claude": {"accuracy": 9, "clear prose": 8},
            "grok": {"accuracy": 5, "clear prose": 6.5},
            "gemini": {"accuracy": 2, "clear prose": 3},
        }

    def test_a_holistic_grade_is_read_with_the_criteria(self):
        """It is stored under the name overall."""
        grades = {label: {**grade(9, 8), "overall": 7} for label in "ABC"}

        review = read(review_text(grades=grades), rubric=RUBRIC, holistic=True)

        assert review.read_by == "schema"
        assert review.ballot.grades["grok"] == {"accuracy": 9, "clear prose": 8, "overall": 7}

    def test_an_additional_key_changes_nothing(self):
        """A ballot with it and a ballot without are the same, including the order of grades."""
        grades = {label: grade(9, 6.5) for label in "CAB"}

        with_more = read(review_text(grades=grades, confidence="high"), rubric=RUBRIC)

        assert with_more == read(review_text(grades=grades), rubric=RUBRIC)
        assert list(with_more.ballot.grades) == ["gemini", "claude", "grok"]

    @pytest.mark.parametrize("answer", [True, False])
    def test_booleans_are_not_grades(self, answer):
        """Neither counts as the best or the worst grade."""
        review = read(review_text(grades={"A": answer, "B": 5, "C": 8}), holistic=True)

        assert review.ballot.grades == {"grok": 5, "gemini": 8}
        assert f"no grade: {json.dumps(answer)}; dropped" in review.notes

    @pytest.mark.parametrize("shape", [lambda g: g, lambda g: {"overall": g}], ids=["bare", "map"])
    def test_a_single_grade_per_candidate_is_read(self, shape):
        """Without a rubric a holistic grade is one number, however it is wrapped."""
        grades = {"A": shape(9), "B": shape(7), "C": shape(4)}

        review = read(review_text(grades=grades), holistic=True)

        assert review.read_by == "schema"
        assert review.ballot.grades == {"claude": 9, "grok": 7, "gemini": 4}

    @pytest.mark.parametrize(
        "grades",
        [
            {"A": grade(9, 8), "B": grade(9, 8)},
            {"A": grade("9", 8), "B": grade(9, 8), "C": grade(9, 8)},
            {"A": grade(90, 8), "B": grade(9, 8), "C": grade(9, 8)},
            {"A": {"accuracy": 9}, "B": grade(9, 8), "C": grade(9, 8)},
            {"A": 9, "B": 8, "C": 7},
        ],
        ids=["missing label", "text", "out of range", "missing criterion", "no criteria"],
    )
    def test_small_deviations_from_the_schema_are_read(self, grades):
        """The grades are kept as given, and the review is marked."""
        review = read(review_text(grades=grades), rubric=RUBRIC)

        assert review.read_by == "tolerant"
        assert review.ballot.groups == ORDER
        assert len(review.ballot.grades) == len(grades)


RANKINGS = {
    "a list": (["A", "B", "C"], CHAIN),
    "a list with a tie": (["A", ["B", "C"]], ORDER),
    "bare labels in lower case": (["a", "b", "c"], CHAIN),
    "labels in brackets": (["[A]", "(B)", "**C**"], CHAIN),
    "Response A": (["Response A", "response b", "RESPONSE C:"], CHAIN),
    "Answer A": (["Answer A", "Candidate B:", "Option: C"], CHAIN),
    "a tie as text": (["A", "B = C"], ORDER),
    "a chain": ("A > B = C", ORDER),
    "a chain with commas for ties": ("Response A > B, C", ORDER),
    "a line with commas": ("A, B, C", CHAIN),
    "a map from label to place": ({"C": 3, "A": 1, "B": 2}, CHAIN),
    "a map with equal places": ({"Answer A": "1st", "b": "2nd", "c": "2."}, ORDER),
    "a map from place to label": ({"1": "A", "3": "C", "2": "B"}, CHAIN),
    "a map from place to labels": ({"2": ["B", "C"], "1": "A"}, ORDER),
    "objects": (
        [{"label": "C", "rank": 3}, {"label": "A", "rank": 1}, {"label": "B", "rank": 2}],
        CHAIN,
    ),
    "objects in order": ([{"answer": "A"}, {"answer": "B"}, {"answer": "C"}], CHAIN),
    "objects of groups": ([{"Rank": 1, "Labels": ["A"]}, {"rank": 2, "labels": ["B", "C"]}], ORDER),
}


class TestForms:
    """Rankings and grades in the other forms in which models write them."""

    @pytest.mark.parametrize(("ranking", "groups"), RANKINGS.values(), ids=RANKINGS)
    def test_a_ranking_is_read_in_any_form(self, ranking, groups):
        """Nothing is ignored."""
        review = read(review_text(ranking))

        assert review.ballot.groups == groups
        assert review.read_by == "tolerant"
        assert review.notes == ()

    @pytest.mark.parametrize("key", ["Ranking", "final_ranking", "Final Ranking", "ranks"])
    def test_a_ranking_is_read_under_other_keys(self, key):
        """Its key has several spellings."""
        assert read(json.dumps({key: ["A", "B", "C"]})).ballot.groups == CHAIN

    @pytest.mark.parametrize(
        "grades",
        [
            {"a": {"Accuracy": 9, "Clear_Prose": "8/10"}},
            {"Response A": {"ACCURACY": 9, "clear-prose": "8/10"}},
            {"A": {"accuracy": {"score": 9, "reason": "it is right"}, "clear prose": "8/10"}},
            [{"label": "A", "grades": {"accuracy": 9, "clear prose": "8/10"}}],
            [{"label": "A", "accuracy": 9, "clear prose": "8/10", "reason": "it is right"}],
            [{"label": "A", "score": 3, "accuracy": 9, "clear prose": "8/10"}],
            {"accuracy": {"A": 9}, "clear prose": {"A": "8/10"}},
        ],
        ids=["names", "labels", "reasons", "objects", "flat objects", "two grades", "by criterion"],
    )
    def test_grades_are_read_in_any_form(self, grades):
        """Labels and criteria match in any case, and grades are kept as given."""
        review = read(review_text(["A", "B", "C"], grades=grades), rubric=RUBRIC)

        assert review.ballot.grades == {"claude": {"accuracy": 9, "clear prose": "8/10"}}
        [note] = review.notes
        assert "grade: grok, gemini" in note

    def test_a_list_of_places_and_grades_is_read(self):
        """A list of objects with place and grades is a whole ballot."""
        items = [
            {"label": label, "rank": rank, "accuracy": 10 - rank, "clear prose": 5}
            for rank, label in enumerate("BAC", start=1)
        ]

        review = read(json.dumps(items), rubric=RUBRIC)

        assert review.ballot.groups == (("grok",), ("claude",), ("gemini",))
        assert review.ballot.grades["grok"] == {"accuracy": 9, "clear prose": 5}

    @pytest.mark.parametrize(
        "grades",
        [
            {"a": "8/10", "b": 5},
            {"A": {"score": "8/10", "why": "it is right"}, "B": {"Overall": 5}},
            [{"answer": "A", "score": "8/10"}, {"answer": "B", "grade": 5}],
        ],
        ids=["map", "wrapped", "objects"],
    )
    def test_holistic_grades_are_read_in_any_form(self, grades):
        """They may be a map or objects."""
        review = read(review_text(["A", "B", "C"], grades=grades), holistic=True)

        assert review.ballot.grades == {"claude": "8/10", "grok": 5}

    def test_an_object_of_grades_is_a_ballot(self):
        """It grades every label by criterion and has no ranking."""
        reply = json.dumps({"A": grade(9, 8), "B": grade(5, 6), "C": grade(2, 3)})

        review = read(reply, rubric=RUBRIC)

        assert review.ballot.groups == ()
        assert list(review.ballot.grades) == ["claude", "grok", "gemini"]

    def test_bare_numbers_by_label_are_not_a_ballot(self):
        """Whether {"A": 1} is a place or a grade is unknown."""
        with pytest.raises(InvalidBallot, match="has no usable ranking"):
            read('{"A": 1, "B": 2, "C": 3}', rubric=RUBRIC)

    @pytest.mark.parametrize("number", ["NaN", "Infinity", "1e999", "9" * 5_000])
    def test_a_number_too_large_is_not_a_grade(self, number):
        """It is kept as text, or dropped with a note."""
        reply = review_text(["A", "B", "C"], grades={"A": 0.125, "B": 7, "C": 4})

        review = read(reply.replace("0.125", number), holistic=True)

        assert review.ballot.grades.get("claude") in {"NaN", "Infinity", "1e999", None}
        assert review.ballot.grades["grok"] == 7


class TestSurroundings:
    """A ballot is found anywhere in a reply."""

    @pytest.mark.parametrize(
        "reply",
        [
            "```json\n{}\n```",
            "Here is my review.\n\n{}\n\nI hope that {{this}} helps!",
            'The set {{a, b}} and "{{" are no JSON; [A] is the best.\n{}',
            '{{"review": {{"ballot": {}}}}}',
            '[{{"thoughts": [1, 2]}}, {}]',
            '{{"ranking": []}} {}',
            '{}{{"ranking": [["B"], ["A"',
        ],
        ids=["fence", "prose", "braces", "wrapped", "list", "empty one", "cut"],
    )
    def test_a_ballot_is_found_in_surrounding_text(self, reply):
        """Fences, prose, stray brackets, quotes and wrappers do not hide it."""
        review = read(reply.format(review_text()))

        assert review.ballot.groups == ORDER
        assert review.read_by == "tolerant"

    def test_a_ballot_inside_a_string_is_text(self):
        """A ballot quoted inside a string is part of that string."""
        fake = 'it says "{\\"ranking\\": [[\\"B\\"]]}" and } and {'

        review = read("Mine: " + review_text(notes=f'{fake} \\" [['))

        assert review.ballot.groups == ORDER
        assert len(review.notes) == 0

    def test_trailing_commas_and_raw_line_breaks_are_accepted(self):
        """These are the most frequent mistakes of models in JSON."""
        review = read('{"notes": "one\ntwo", "ranking": [["A"], ["B", "C",],\n],\n}')

        assert review.ballot.groups == ORDER
        assert review.ballot.notes == "one\ntwo"

    def test_a_review_that_quotes_a_refusal_is_read(self):
        """A reviewer that says it cannot compare, and then ranks, has ranked."""
        review = read('"I cannot compare these answers", says answer B. ' + review_text())

        assert review.ballot.groups == ORDER

    @pytest.mark.parametrize(
        "second",
        [
            review_text(["C", "B", "A"]),
            review_text([["A", "B"], ["C"]]),
            review_text(grades={"A": 2, "B": 6, "C": 4}),
            "FINAL RANKING:\n1. C\n2. B\n3. A",
        ],
        ids=["order", "tie", "grade", "list"],
    )
    def test_contradictory_ballots_are_refused(self, second):
        """Which of the two is meant is not guessed."""
        first = review_text(grades={"A": 8, "B": 6, "C": 4})

        with pytest.raises(InvalidBallot, match="contradict each other"):
            read(f"{first}\nOn reflection:\n{second}", holistic=True)

    @pytest.mark.parametrize(
        "review",
        [
            '{"ranking": [["A"], ["B"], ["C"]], "notes": "", "ranking": [["C"], ["B"], ["A"]]}',
            '{"ranking": [["A"], ["B"], ["C"]], "Ranking ": [["C"], ["B"], ["A"]]}',
            '{"ranking": [["A"], ["B", "C"]], "grades": {"A": 9, "B": 5, "C": 4, "A": 2}}',
            '{"ballot": {"ranking": ["A", "B", "C"], "ranking": ["B", "A", "C"]}}',
        ],
        ids=["ranking", "case", "grade", "inside"],
    )
    @pytest.mark.parametrize("around", ["{}", "So:\n```json\n{}\n```"], ids=["whole", "in prose"])
    def test_a_key_with_two_values_is_refused(self, review, around):
        """The ballot contradicts itself, so neither value counts."""
        with pytest.raises(InvalidBallot, match="one of its keys has two"):
            read(around.replace("{}", review), holistic=True)

    def test_a_key_repeated_with_the_same_value_is_read(self):
        """Two different notes are no contradiction either."""
        ranking = '"ranking": [["A"], ["B", "C"]]'

        assert read("{" + f"{ranking}, {ranking}" + "}").ballot.groups == ORDER
        review = read('{"notes": "One.", "notes": "Two.", ' + ranking + "}")
        assert (review.ballot.groups, review.ballot.notes) == (ORDER, "Two.")

    def test_a_ballot_after_long_reasoning_is_read(self):
        """Only the text after the reasoning has a limit on its length."""
        long = "Hm. " * LONGEST_REPLY

        assert read(f"<think>{long}</think>{review_text()}").ballot.groups == ORDER

    def test_a_repeated_ballot_counts_once(self):
        """Of two that agree, the more complete one counts."""
        full = review_text(grades={"A": 8, "B": 6, "C": 4})

        assert read(f"{review_text()}\nSo:\n{review_text()}").ballot.groups == ORDER
        review = read(f"{full}\nSo:\n{review_text()}", holistic=True)
        assert review.ballot.grades == {"claude": 8, "grok": 6, "gemini": 4}

    def test_too_many_ballots_are_refused(self):
        """A flood of ballots is not sifted."""
        with pytest.raises(InvalidBallot, match="contains more than 32 ballots"):
            read(review_text() * 40)

    def test_a_smaller_object_does_not_replace_a_ballot(self):
        """It is a quotation after the reviewer's own ballot."""
        review = read(review_text() + ' Mind that B contains {"ranking": ["B"]}.')

        assert review.ballot.groups == ORDER

    def test_an_object_with_other_labels_is_not_a_ballot(self):
        """Its position in the reply does not matter."""
        fake = json.dumps({"ranking": ["grok", "claude", "gemini"]})

        assert read(review_text() + " B adds: " + fake).notes == ()
        with pytest.raises(InvalidBallot, match="has no usable ranking"):
            read(fake)

    def test_a_lone_surrogate_is_not_stored(self):
        """No file can hold it, so it does not get onto the ballot."""
        review = read('{"notes": "fine \\ud83d", "ranking": ["A", "B", "C"]}')

        assert review.ballot.notes == "fine ?"


LISTS = {
    "numbered": "1. Response A\n2. Response B\n3. Response C",
    "numbered, with remarks": "1. A - cites its source\n2) [B]: shorter\n3. C (wrong)",
    "bulleted": "- A\n\n* B\n• **C**\n\nThat is all, A > C.",
    "a line": "A > B > C",
}


class TestFinalRanking:
    """A list under the heading of the final ranking is the last form tried."""

    @pytest.mark.parametrize(
        "heading", ["FINAL RANKING:\n", "## Final ranking\n", "**FINAL RANKING:**\n\n"]
    )
    @pytest.mark.parametrize("listed", LISTS.values(), ids=LISTS)
    def test_a_list_is_read_in_its_order(self, heading, listed):
        """It has items, or is one chain."""
        review = read(f"A is right, C is not.\n\n{heading}{listed}")

        assert review.ballot.groups == CHAIN
        [note] = review.notes
        assert "FINAL RANKING" in note

    def test_a_ranking_on_the_line_of_the_heading_is_read(self):
        assert read("Final ranking: A > B = C").ballot.groups == ORDER

    def test_contradictory_headings_are_refused(self):
        """Whether the first ranking is a quotation is not guessed."""
        reply = "B says:\nFINAL RANKING:\n1. B\n2. A\n\nI say:\nFINAL RANKING:\n1. A\n2. B = C"

        with pytest.raises(InvalidBallot, match="contradict each other"):
            read(reply)

    def test_an_object_takes_precedence_over_a_list(self):
        """The list repeats the ballot of the object."""
        read_off = read(review_text() + "\n\nFINAL RANKING:\n1. A\n2. B = C")

        assert (read_off.ballot.groups, read_off.notes) == (ORDER, ())


class TestNotes:
    """Ignored parts of a reply are noted on the ballot."""

    @pytest.mark.parametrize(
        ("reply", "groups", "notes"),
        [
            (
                review_text(["A", "D", "B", "C"]),
                CHAIN,
                ("names answers that are not on its sheet; dropped",),
            ),
            (
                review_text(["A", "B", "Response A", "C"]),
                CHAIN,
                ("ranked more than once: claude; the first place counts",),
            ),
            (review_text(["A", "B"]), CHAIN[:2], ("left out of its ranking: gemini",)),
            (
                review_text(["A", "B", "C"], grades={"A": 9}),
                CHAIN,
                ("grades were not requested; dropped",),
            ),
        ],
        ids=["unknown", "repeated", "left out", "grades"],
    )
    def test_ignored_labels_are_noted(self, reply, groups, notes):
        """They are unknown, repeated, missing or not asked for."""
        review = read(reply)

        assert (review.ballot.groups, review.ballot.grades, review.notes) == (groups, {}, notes)

    def test_ignored_grades_are_noted(self):
        """Their criterion is not in the rubric, or they are not grades."""
        grades = {"A": {**grade(True, 8), "style": 9}, "B": grade(None, []), "D": grade(1, 1)}

        review = read(review_text(grades=grades), rubric=RUBRIC)

        assert review.ballot.grades == {"claude": {"clear prose": 8}}
        assert review.notes == (
            "no grade: true, null, a list or map; dropped",
            "no criterion of the rubric: 'style'; dropped",
            "names answers that are not on its sheet; dropped",
            "left without a grade: grok, gemini",
        )

    def test_missing_grades_are_noted(self):
        """A complete ranking is a ballot all the same."""
        review = read(review_text(), rubric=RUBRIC)

        assert review.ballot.groups == ORDER
        [note] = review.notes
        assert "grade: claude, grok, gemini" in note

    def test_a_thousand_unknown_labels_make_one_note(self):
        [note] = read(review_text(["A", "B", "C", *(f"X{i}" for i in range(1000))])).notes

        assert "not on its sheet" in note


NOTHING = {
    "empty": ("", "says nothing"),
    "blank": (" \n\t", "says nothing"),
    "null": ("null", "says nothing"),
    "a refusal": ("I'm sorry, I can't compare these.", "has no usable ranking"),
    "prose": ("A is better than B, and B beats C. Ranking: A first.", "has no usable ranking"),
    "a list in prose": ("My ranking:\n1. A\n2. B\n3. C", "has no usable ranking"),
    "a bare list": ('["A", "B", "C"]', "has no usable ranking"),
    "another schema": ('{"best": "A"}', "has no usable ranking"),
    "cut short": ('{"notes": "x", "ranking": [["A"], ["B"', "has no usable ranking"),
    "cut in a string": ('{"notes": "A is the best', "has no usable ranking"),
    "one of three": (review_text(["A"]), "judges only 1 of the 3 answers on its sheet"),
    "unknown labels": (review_text(["X", "Y"]), "has no usable ranking"),
    "depth": ("[" * 100_000, "has no usable ranking"),
    "deep objects": ('{"a":' * 20_000, "has no usable ranking"),
    "oversize": (review_text() + " " * LONGEST_REPLY, "has 200,"),
}


class TestNoBallot:
    """An unreadable reply is reported in a sentence."""

    @pytest.mark.parametrize(("reply", "problem"), NOTHING.values(), ids=NOTHING)
    def test_the_error_names_the_problem(self, reply, problem):
        """It states what was found."""
        with pytest.raises(InvalidBallot) as caught:
            read(reply)

        assert caught.value.reviewer == "rev"
        assert caught.value.problem.startswith(problem)

    def test_a_sheet_of_one_candidate_has_a_ranking_of_one(self):
        sheet = Sheet("rev", ("claude",), ("A",), "5d41")

        assert read('{"ranking": [["A"]]}', sheet=sheet).ballot.groups == (("claude",),)

    def test_grades_of_most_of_the_sheet_are_a_ballot(self):
        """A ballot that grades two of three counts, whatever it ranks."""
        grades = {"A": grade(9, 8), "B": grade(5, 6)}

        review = read(review_text(["A"], grades=grades), rubric=RUBRIC)

        assert review.notes == (
            "left out of its ranking: grok, gemini",
            "left without a grade: gemini",
        )


BITS = st.sampled_from(
    ['{"ranking":', '"grades":', "[", "]", "{", "}", '"A"', '"b"', "1", ",", ":", '"', "\\", ">",
     "FINAL RANKING:\n", "1. ", "A", " B = C ", "null", "true", "1e400", "\n", '{"label":"A"}',
     '"rank":', "\\ud800", review_text()]
)  # fmt: skip


class TestAnyText:
    """Any text gives a ballot or InvalidBallot."""

    @given(
        reply=st.text(max_size=60) | st.lists(BITS, max_size=30).map("".join),
        graded=st.booleans(),
        holistic=st.booleans(),
    )
    def test_random_text_raises_no_other_error(self, reply, graded, holistic):
        """The text is random, or random pieces of ballots."""
        try:
            review = read(reply, rubric=RUBRIC if graded else None, holistic=holistic)
        except InvalidBallot:
            return

        named = [c for group in review.ballot.groups for c in group]
        assert len(named) == len(set(named))
        assert {*named, *review.ballot.grades} <= set(SHEET.candidates)

    @given(value=st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3)
        | st.sampled_from(["A", "b", "Response C", "8/10"]),
        lambda inner: st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(["ranking", "grades", "A", "B", "c", "accuracy", "label", "rank", "x"]),
            inner,
            max_size=4,
        ),
        max_leaves=20,
    ))  # fmt: skip
    def test_values_of_the_wrong_type_are_dropped(self, value):
        """They stand under the right keys of a review."""
        for reply in (json.dumps(value), review_text(value, grades=value)):
            try:
                read(reply, rubric=RUBRIC, holistic=True)
            except InvalidBallot as refused:
                assert refused.problem  # noqa: PT017 - either end is right

    @pytest.mark.parametrize(
        "unit",
        ["[", '{"a":', '{"', '{"a":[1,', "[1,]", '"', "\\", "{}", '{"ranking":["A","D"]}',
         '{"a":1,}', "FINAL RANKING:\n", "A > ", "1. A\n"],
    )  # fmt: skip
    def test_the_longest_reply_is_read_within_a_second(self, unit):
        """The text is the worst case of the greatest length."""
        seconds = []
        while not seconds or (seconds[-1] >= 1.0 and len(seconds) < 5):  # the machine is shared
            began = time.process_time()
            with pytest.raises(InvalidBallot):
                read(unit * (LONGEST_REPLY // len(unit)))
            seconds.append(time.process_time() - began)

        assert min(seconds) < 1.0
