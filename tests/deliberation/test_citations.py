"""Citations of the final answer: those that name no answer are told from ordinary brackets."""

import json
from time import process_time

import pytest

from councils import council, member
from markup import parsed
from witan.deliberation.citations import unresolved_citations
from witan.deliberation.record import session_to_json
from witan.deliberation.session import Session
from witan.surfaces.session_text import legend_text, session_text, session_trust
from witan.surfaces.text import Page
from witan.surfaces.web.rendering import render_session

pytestmark = pytest.mark.anyio

LABELS = ("A", "B", "C")


class TestReading:
    """What is a citation, and what is not."""

    @pytest.mark.parametrize(
        ("text", "unresolved"),
        [
            ("It is so [Z], and so [A].", ("Z",)),
            ("It is so [Q9], and so [A].", ("Q9",)),
            ("So [A, Z]; thus [Z] and [B; Y].", ("Z", "Y")),
            ("So [Answer Z], and [answers B and D].", ("Z", "D")),
            ("So.[Z] Thus [A].", ("Z",)),
            ("It is[A] so, and thus[Z].", ("Z",)),
            ("[A][Z]", ("Z",)),
            ("**[A]** and **[Z]**", ("Z",)),
            ("- It is so [A]\n    - and so [Z]", ("Z",)),
            ("As [A] says, [Z] errs.", ("Z",)),
        ],
    )
    def test_a_label_of_nobody(self, text, unresolved):
        """A label in brackets that no answer has is found."""
        assert unresolved_citations(text, LABELS) == unresolved

    @pytest.mark.parametrize(
        "text",
        [
            "[A], [B, C], [Answer A].",
            "Press [Y] to go on.",
            "It is vitamin [D], with [H] and [S].",
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
            r"$$[Z]$$, \[Z\] and \(x [Z]\)",
        ],
    )
    def test_other_brackets(self, text):
        """Footnotes, tasks, links, code, indices, classes and formulas are no citations."""
        assert unresolved_citations(text, LABELS) == ()

    def test_brackets_of_the_question(self):
        """What stands in the question in brackets is no label that somebody made up."""
        assert unresolved_citations(
            "Press [Q] or [Z], says [A].", LABELS, ["What does [Q] do?"]
        ) == ("Z",)

    def test_labels_of_two_letters(self):
        """Where there are more answers than letters, labels have two."""
        assert unresolved_citations("[AB], [AZ].", [*LABELS, "AA", "AB"]) == ("AZ",)

    @pytest.mark.parametrize("text", ["[A", "`", "``` ", "[Z] ", "\\[", "[ ", "[A,", "$$ "])
    def test_it_takes_time_by_its_length(self, text):
        """No text is read so slowly that it would hold up a server."""
        started = process_time()

        unresolved_citations(text * 100_000, LABELS)

        assert process_time() - started < 5


async def closed(text: str) -> Session:
    """A session of three that a chairman of this text closes."""
    chair = member("z", synthesis=[text])
    async with council([member(name) for name in "abc"], [chair]) as held:
        return await held.ask("Which?", seed=7)


class TestSessions:
    """What resolves to nothing is named on every surface."""

    SAID = "the final answer cites [Z] and [Q9], which name no answer"

    async def test_it_is_missing(self):
        """The session is not complete, and says by what, in its status, its trust and its JSON."""
        session = await closed("It is so [Z], as [A] says, and [Q9].")

        assert (session.status, session.missing) == ("degraded", (self.SAID,))
        assert session.synthesis.unresolved == ("Z", "Q9")
        assert session_trust(session).endswith(f"degraded: {self.SAID}")
        assert self.SAID in "\n".join(session_text(Page(), session))
        record = json.loads(session_to_json(session))
        assert record["missing"] == [self.SAID]
        assert record["synthesis"]["unresolved"] == ["Z", "Q9"]

    async def test_it_is_marked(self):
        """The legend lists it, and the page marks it where it stands."""
        session = await closed("It is so [Z], as [A] says.")

        assert legend_text(session).endswith(", [Z] no answer")
        marks = parsed(render_session(session)).all("mark")
        assert [mark.text for mark in marks] == ["[Z]", "[Z]"]
        assert 'title="names no answer">[Z]' in render_session(session)

    async def test_sound_citations_are_complete(self):
        """A text that cites answers alone lacks nothing."""
        session = await closed("It is so [A], [B, C]. See [1] and `x[Z]`.")

        assert (session.status, session.synthesis.unresolved) == ("complete", ())

    async def test_an_answer_that_is_taken_as_it_is(self):
        """Without a chairman the text is an answer's, whose brackets are its own."""
        writer = member("a", answers=["It is [Z]."])
        async with council([writer, member("b")], mode="best") as held:
            session = await held.ask("Which?")

        assert session.synthesis.unresolved == ()
