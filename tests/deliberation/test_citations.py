"""Citations in the final answer that no answer has, as opposed to ordinary brackets."""

import json
from time import process_time

import pytest

from councils import council, member
from markup import parsed
from witan.deliberation.record import session_to_json
from witan.deliberation.session import Session
from witan.deliberation.texts import check_citations
from witan.service.text import Page
from witan.service.trust import session_trust
from witan.surfaces.report.session import legend_text, session_report
from witan.surfaces.report.text import report_text
from witan.surfaces.web.rendering import render_session

pytestmark = pytest.mark.anyio

LABELS = ("A", "B", "C")


class TestReading:
    """Which brackets are citations."""

    @pytest.mark.parametrize(
        ("text", "unresolved"),
        [
            ("It is so [Z], and so [A].", ("Z",)),
            ("See [Q9] and [E].", ("Q9", "E")),
            ("It is so [D].", ("D",)),
            ("It is so [Q9], and so [A].", ("Q9",)),
            ("So [A, Z]; thus [Z] and [B; Y].", ("Z", "Y")),
            ("So [Answer Z], and [answers B and D].", ("Z", "D")),
            ("So.[Z] Thus [A].", ("Z",)),
            ("It is[A] so, and thus[Z].", ("Z",)),
            ("[A][Z]", ("Z",)),
            ("**[A]** and **[Z]**", ("Z",)),
            ("- It is so [A]\n    - and so [Z]", ("Z",)),
            ("As [A] says, [Z] errs.", ("Z",)),
            ("It is so [A]. As [K] says, it is not.", ("K",)),
            ("As [K] says, it is so. According to [Z], it is not.", ("K", "Z")),
            ("Both [A] and [D] hold this.", ("D",)),
            ("This holds in both cases [A][D].", ("D",)),
            ("The last step is wrong [D]. The first is not [B].", ("D",)),
            ("- [A]: so\n- [B]: so\n- [D]: not so", ("D",)),
            ("Das gilt immer [A], auch im Winter [D].", ("D",)),
            ("Answer Z errs [Z], and [A] does not.", ("Z",)),
        ],
    )
    def test_a_label_without_an_answer_is_found(self, text, unresolved):
        assert check_citations(text, LABELS) == unresolved

    @pytest.mark.parametrize(
        ("text", "known"),
        [
            ("It is best [A]. Choose option [D].", ""),
            ("It is so [A]. The rest follows from the matrix [M].", ""),
            ("It is so [A]. It is multiplied by **matrix** **[M]**.", ""),
            ("The output is y = M x, and so the gain is bounded by [M]; it is so [A].", ""),
            ("Milk holds vitamin [D], and so does butter [A].", ""),
            ("It is widely used [D]. It is so [A].\n\n[D] Down to the last release.", ""),
            ("Of the four, the last is right [D]. The others agree [A].", "A) x  D) y"),
            ("Both hold [A] and [D].", "Is it A, B, C or D?"),
            ("Then press the last key [Q]; it ends [B].", "In vim, what does Q do?"),
            ("K lies, as [K] says; so [A].", "K says that M lies. Who lies?"),
        ],
    )
    def test_an_ambiguous_letter_is_not_a_citation(self, text, known):
        """It names something else in the text or the question."""
        assert check_citations(text, LABELS, [known]) == ()

    @pytest.mark.parametrize(
        "text",
        [
            "[A], [B, C], [Answer A].",
            "Press [Y] to go on.",
            "The [H] concentration falls [A].",
            "A footnote[1], and another [2, 3].",
            "- [x] done\n- [X] done, too\n- [ ] open\n1. [X] done",
            "[A](https://example.org), [Z](https://example.org) and ![Z](z.png)",
            "[Z]: https://example.org",
            "The code `a[Z]` and ``[Z]``.",
            "```\nlist[Z]\n[Z]\n```",
            "~~~~\n[Z]\n~~~\n[Z]\n~~~~\n",
            "```\n[Z]",
            "Thus:\n\n    [Z]\n",
            "The item a[Z] of a list[T].",
            "A cell grid[0][Z].",
            "A class [A-Z], or [^Z].",
            "[N]obody. [TODO], [API], [sic], [USA].",
            "The interval [P, Q].",
            "The interval [P, Q], says [A]. The cell a[D] is so [B].",
            "Press [Y] to go on, as [A] says.",
            "[Shift] and [Esc], [sic], [2024], [Smith 2020]: not so [A].",
            r"$$[Z]$$, \[Z\] and \(x [Z]\)",
        ],
    )
    def test_ordinary_brackets_are_not_citations(self, text):
        """Examples are footnotes, tasks, links, code, indices, classes and formulas."""
        assert check_citations(text, LABELS) == ()

    def test_brackets_from_the_question_are_not_citations(self):
        known = ["What does [Q] do?"]
        assert check_citations("Press [Q]. It ends [Z], says [A].", LABELS, known) == ("Z",)
        assert check_citations("Press [Q] or [Z], says [A].", LABELS, known) == ()

    def test_labels_of_two_letters_are_found(self):
        """They occur with more answers than letters."""
        assert check_citations("[AB], [AZ].", [*LABELS, "AA", "AB"]) == ("AZ",)

    @pytest.mark.parametrize(
        "text",
        [
            *("[A", "`", "``` ", "[ ", "[A,", "$$ "),
            *(pytest.param(text, marks=pytest.mark.slow) for text in ("[Z] ", "\\[")),
        ],
    )
    def test_time_is_linear_in_the_length_of_the_text(self, text):
        """No text holds up a server."""
        started = process_time()

        check_citations(text * 100_000, LABELS)

        assert process_time() - started < 5

    def test_time_is_linear_in_the_number_of_labels(self):
        """Eight times as many labels, and as long a question, take about eight times as long."""

        def seconds(n_labels: int) -> float:
            names = [f"{letter}{number}" for number in range(1000) for letter in "QXYZ"]
            text = "As [A] says. " + " ".join(f"It holds [{name}]." for name in names[:n_labels])
            question = "Which holds, option P1 or P2? " * n_labels
            started = process_time()
            assert len(check_citations(text, LABELS, [question])) == 20
            return process_time() - started

        assert min(seconds(4000) for _ in range(2)) < 30 * min(seconds(500) for _ in range(5))


async def close_with(text: str) -> Session:
    """A session of three whose chairman writes this text."""
    chair = member("z", synthesis=[text])
    async with council([member(name) for name in "abc"], [chair]) as held:
        return await held.ask("Which?", seed=7)


class TestSessions:
    """Unresolved citations are reported on every surface."""

    SAID = "the final answer cites [Z] and [Q9], which name no answer"

    async def test_an_unresolved_citation_makes_the_session_incomplete(self):
        """Status, trust line and JSON state which one."""
        session = await close_with("It is so [Z], as [A] says, and [Q9].")

        assert (session.status, session.missing) == ("degraded", (self.SAID,))
        assert session.synthesis.unresolved == ("Z", "Q9")
        assert session_trust(session).endswith(f"degraded: {self.SAID}")
        shown = "\n".join(report_text(Page(), session_report(session)))
        assert f"T{self.SAID[1:]}" in shown
        record = json.loads(session_to_json(session))
        assert record["missing"] == [self.SAID]
        assert record["synthesis"]["unresolved"] == ["Z", "Q9"]

    async def test_an_unresolved_citation_is_marked(self):
        """It is in the legend, and marked in the text of the page."""
        session = await close_with("It is so [Z], as [A] says.")

        assert legend_text(session).endswith(", [Z] no answer")
        marks = parsed(render_session(session)).all("mark")
        assert [mark.text for mark in marks] == ["[Z]", "[Z]"]
        assert 'title="matches no answer">[Z]' in render_session(session)

    async def test_a_text_that_cites_only_answers_is_complete(self):
        session = await close_with("It is so [A], [B, C]. See [1] and `x[Z]`.")

        assert (session.status, session.synthesis.unresolved) == ("complete", ())

    async def test_brackets_of_an_unchanged_answer_are_its_own(self):
        """Without a chairman the final text is an answer."""
        writer = member("a", answers=["It is [Z]."])
        async with council([writer, member("b")], mode="best") as held:
            session = await held.ask("Which?")

        assert session.synthesis.unresolved == ()
