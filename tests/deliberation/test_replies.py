"""Reasoning is split from the text of a reply, whatever its tags and chunks."""

import re
from dataclasses import replace
from itertools import pairwise
from time import process_time

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from councils import council, member
from witan.deliberation import events as e
from witan.deliberation.ports import Call, Hear, Member, Price, Reply
from witan.deliberation.replies import ReasoningFilter, split_reasoning
from witan.deliberation.session import Session

pytestmark = pytest.mark.anyio

MARKED = {
    "think": "<think>\nHm.\n</think>\n\nFour.",
    "joined": "<think>Hm.</think>Four.",
    "thinking": "<thinking>Hm.</thinking>\nFour.",
    "reasoning": "<reasoning>Hm.</reasoning>\nFour.",
    "thought": "<thought>Hm.</thought>\nFour.",
    "seed": "<seed:think>Hm.</seed:think>Four.",
    "brackets": "[THINK]Hm.[/THINK]Four.",
    "triangles": "◁think▷Hm.◁/think▷Four.",
    "begin_of_thought": "<|begin_of_thought|>Hm.<|end_of_thought|>Four.",
    "START_THINKING": "<|START_THINKING|>Hm.<|END_THINKING|>Four.",
    "channel of one token": "<|channel>thought\nHm.<channel|>Four.",
    "channels": "<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant<|channel|>final"
    "<|message|>Four.<|return|>",
    "channels without an end": "<|channel|>analysis<|message|>Hm.<|channel|>final<|message|>Four.",
    "channels begun in the prompt": "Hm.<|end|><|start|>assistant<|channel|>final<|message|>Four.",
    "channels without their tokens": "analysisHm.assistantfinalFour.",
    "upper case": "<THINK>Hm.</THINK>Four.",
    "two blocks": "<think>Hm.</think>\n<think></think>\nFour.",
    "one closing tag": "Hm.\n</think>\n\nFour.",
    "one closing tag, joined": "Hm.</think>Four.",
    "one closing tag, spaced": "Hm. </think> Four.",
    "blanks before": "\n\n<think>Hm.</think>Four.",
    "a byte-order mark before": "\ufeff<think>Hm.</think>Four.",
}  # fmt: skip

SPOKEN = {
    "code": "Models write `<think>` and `</think>` around it.",
    "a block of code": "So:\n```\n<think>\nHm.\n</think>\n```\nThat is it.",
    "indented code": "So:\n\n    <think>\n    Hm.\n    </think>\n\nThat is it.",
    "a sentence": "The tag <think> opens it, and the tag </think> closes it.",
    "a closing tag in a sentence": "Close it with </think> and go on.",
    "a closing tag at its end": "Close it with </think>.",
    "a pair in a sentence": "Some emit <think></think> and nothing in it.",
    "a tag that begins a text": "<think> tags mark what a model thinks.",
    "a pair that begins a text": "<think> opens it, and </think> closes it.",
    "an empty pair that begins a text": "<think>…</think> tags mark it.",
    "a closing tag that begins a text": "</think> closes it.",
    "a closing tag that begins a line": "Of tags:\n</think> closes it.",
    "a closing tag in a list": "Of tags:\n1. </think> Closes it.",
    "a tag between others": "Put notes between <thinking> and\n</thinking>.\nSo.",
    "a tag on a line of its own": "Put notes between <thinking> and\n</thinking>\nSo.",
    "a template": "Use:\n<reasoning>\nWhy?\n</reasoning>\n<answer>\nWhat?\n</answer>",
    "a template, joined": "Use:\n<reasoning>Why?</reasoning>\n<answer>What?</answer>",
    "reasoning in the middle": "Sure.\n<think>\nHm.\n</think>\nFour.",
    "a line that begins with it": "Of tags:\n<think> opens it and </think> closes it.",
    "JSON": '{"notes": "ends with x</think>y"}',
    "a task list": "- [ ] this\n- [x] that\n[A] is right.",
    "the word": "analysis",
    "the word, in a text": "analysisWe is no word.",
    "less than": "a < b, and c <d",
    "blanks": "\n  Four.\n",
}


PIECES = (
    *(tag for text in MARKED.values() for tag in re.findall(r"[<\[◁].*?[>\]▷]", text)),
    '"', "'", "`", "“", "”", "```", "\n", " ", "    ", ".", ",", "a", "It is", " so ", "1. ",
    '"</think>"', "'</think>'", "`<think>`", "</think >", "<think", "<|channel", "analysis",
    "assistantfinal", "." * 190, "." * 210,
)  # fmt: skip
"""What texts consist of that are hard to tell apart."""


def streamed(text: str, size: int) -> tuple[str, int]:
    """The deltas of a text in chunks of this size, and the number of withdrawals."""
    thoughts, heard = ReasoningFilter(), ""
    pieces = [text[at : at + size] for at in range(0, len(text), size)]
    for piece in [*pieces, None]:
        before = thoughts.withdrawals
        new = thoughts.close() if piece is None else thoughts.feed(piece)
        heard = (heard if thoughts.withdrawals == before else "") + new
    return heard, thoughts.withdrawals


class TestSplitting:
    """What counts as reasoning, and what only mentions it."""

    @pytest.mark.parametrize("text", MARKED.values(), ids=MARKED)
    def test_reasoning_is_separated(self, text):
        """The text is without tags and their content, whatever tags a template has."""
        split = split_reasoning(text)

        assert (split.text, split.reasoning) == ("Four.", "Hm.")

    @pytest.mark.parametrize("text", SPOKEN.values(), ids=SPOKEN)
    def test_tags_in_code_or_sentences_stay(self, text):
        """They are part of the text."""
        assert split_reasoning(text).text == text

    @pytest.mark.parametrize("size", [1, 2, 3, 5, 8, 13])
    def test_chunks_change_nothing(self, size):
        """Deltas of any size add up to the text of the whole."""
        for text in (*MARKED.values(), *(SPOKEN[k] for k in SPOKEN if k != "JSON")):
            heard, _ = streamed(text, size)

            assert re.sub(r"<\|return\|>$", "", heard) == split_reasoning(text).text

    @pytest.mark.parametrize("size", [1, 4, 100])
    def test_only_a_lone_closing_tag_withdraws_text(self, size):
        """Reasoning after an opening tag is never streamed."""
        assert streamed(MARKED["think"], size)[1] == 0
        assert streamed(MARKED["one closing tag"], size) == ("Four.", 1)

    @pytest.mark.parametrize(
        ("reply", "reasoning"),
        [
            ('<think>It is "</think>Four.', 'It is "'),
            ("<think>so it is</think>Four.", "so it is"),
            ("<think> so it is</think>Four.", "so it is"),
        ],
    )
    def test_reasoning_may_end_in_a_quote_or_a_word(self, reply, reasoning):
        """A closing tag after an opening quote or a word ends the reasoning."""
        split = split_reasoning(reply)

        assert (split.text, split.reasoning) == ("Four.", reasoning)
        for size in (1, 7, 100):
            assert streamed(reply, size)[0] == "Four."

    def test_a_quoted_closing_tag_does_not_end_reasoning(self):
        split = split_reasoning('<think>Is it `</think>` or "</think>"?</think>Four.')

        assert split.text == "Four."

    @pytest.mark.parametrize("quote", ['"', "'", "`", "“”"])
    @pytest.mark.parametrize("length", [0, 100, 200, 3_888, 5_000])
    def test_a_quoted_closing_tag_in_long_reasoning_does_not_end_it(self, quote, length):
        """Neither length nor chunks matter."""
        quoted = f"{quote[0]}</think>{quote[-1]}"
        early = f"I must not write {quoted} too early, secret plan"
        text = f"<think>{'.' * length} {early} {'.' * 400}</think>Four."

        for size in (1, 7, 199, 200, 201, 4_096, len(text)):
            assert streamed(text, size) == ("Four.", 0)
        assert split_reasoning(text).text == "Four."

    @pytest.mark.parametrize("quote", ['"', "'", "`", "“”"])
    def test_a_closing_tag_between_quoted_words_ends_reasoning(self, quote):
        word = f"{quote[0]}stop{quote[-1]}"

        for end in ("", "."):
            split = split_reasoning(f"<think>It is {word}{end}</think>{word} it is.")
            assert split.text == f"{word} it is."

    @given(
        st.sampled_from(["", "<think>"]),
        st.lists(st.sampled_from(PIECES), max_size=14).map("".join),
        st.integers(1, 250),
    )
    @example("<think>", 'It is "</think>" so ' + "." * 210 + "</think>Four.", 1)
    def test_random_chunks_change_nothing(self, start, rest, size):
        """The text is random, too."""
        text = start + rest
        whole = ReasoningFilter()
        whole.feed(text)
        whole.close()

        pieces = ReasoningFilter()
        for at in range(0, len(text), size):
            pieces.feed(text[at : at + size])
        pieces.close()

        assert (pieces.text, pieces.reasoning) == (whole.text, whole.reasoning)

    def test_time_is_linear_in_the_number_of_tags(self):
        """Four times as many tags take at most about four times as long."""
        for text in (
            "x\n</think>\n",
            "x<think> ",
            "<think> x\n",
            "`</think",
            "analysisA ",
            "<think> so\n",
        ):
            took = []
            for times in (1_000, 4_000):
                started = process_time()
                split_reasoning(text * times)
                took.append(process_time() - started)
            assert took[1] < 12 * took[0] + 0.2, text


class Speaker:
    """A model that sends its text in small pieces, and reviews as scripted."""

    def __init__(self, answer: str = "So.", synthesis: str = "All.", review: str = "{}") -> None:
        self.says = {"answer": answer, "synthesis": synthesis, "review": review, "repair": review}

    async def complete(self, call: Call, hear: Hear) -> Reply:
        text = self.says[call.stage]
        if call.schema is not None and "{}" in text:
            labels = call.schema["properties"]["ranking"]["items"]["items"]["enum"]
            text = text.replace("{}", _ballot(labels)).replace("<>", _ballot(labels[::-1]))
        for at in range(0, len(text), 3):
            hear(text[at : at + 3])
        return Reply(text)


def _ballot(labels: list[str]) -> str:
    return '{"ranking": [' + ", ".join(f'["{label}"]' for label in labels) + "]}"


def seat(name: str, **says: str) -> Member:
    """A member with this reply."""
    return Member(name, Speaker(**says), f"test:{name}", price=Price(0, 0))


async def deliberate(*others: Member, **options) -> tuple[Session, list[e.Event]]:
    """A session of these members and two that behave, with all of its events."""
    told: list[e.Event] = []
    async with council([*others, member("a"), member("b")], **options) as held:
        return await held.ask("How many?", listener=told.append), told


def deltas_of(told: list[e.Event], kind: type[e.Event]) -> str:
    """The deltas of texts, without those that were withdrawn."""
    text = ""
    for event in told:
        if isinstance(event, e.TextWithdrawn):
            text = ""
        elif isinstance(event, kind):
            text += event.text
    return text


class TestSessions:
    """Reasoning is not part of answers, ballots and final answers."""

    @pytest.mark.parametrize("text", MARKED.values(), ids=MARKED)
    async def test_an_answer_has_no_reasoning(self, text):
        """The record stores it separately."""
        session, told = await deliberate(seat("thinker", answer=text))

        assert session.answers["thinker"].text == "Four."
        [done] = [x for x in told if isinstance(x, e.AnswerDone) and x.seat == "thinker"]
        assert done.reasoning == "Hm."
        own = [x for x in told if getattr(x, "seat", None) == "thinker"]
        assert deltas_of(own, e.AnswerDelta).startswith("Four.")

    @pytest.mark.parametrize("text", ["<think>Hm.", "<think>Hm.</think>\n", "Hm.\n</think>\n \n"])
    async def test_a_reply_of_reasoning_alone_is_retried(self, text):
        session, told = await deliberate(seat("thinker", answer=text), attempts=2)

        assert session.unanswered == {"thinker": "sent its reasoning and no answer"}
        assert sum(isinstance(event, e.CallRetried) for event in told) == 1
        assert session.status == "degraded"

    async def test_a_ballot_after_the_reasoning_counts(self):
        """One inside it does not; the reply is stored whole."""
        review = "<think>Perhaps <>?</think>\n{}"
        _, told = await deliberate(seat("thinker", review=review), rubric_scoring=False)

        [cast] = [x for x in told if isinstance(x, e.BallotCast) and x.seat == "thinker"]
        [drawn] = [x for x in told if isinstance(x, e.SheetDrawn) and x.sheet.reviewer == "thinker"]
        by_label = sorted(zip(drawn.sheet.labels, drawn.sheet.candidates, strict=True))
        assert [group[0] for group in cast.ballot.groups] == [name for _, name in by_label]
        assert cast.replies[0].startswith("<think>Perhaps")
        assert (cast.read_by, cast.notes) == ("schema", ())

    async def test_a_ballot_inside_the_reasoning_does_not_count(self):
        review = "<think>{}</think>\nI cannot decide."
        session, _ = await deliberate(seat("thinker", review=review), rubric_scoring=False)

        [ballot] = [b for b in session.ballots if b.reviewer == "thinker"]
        assert ballot.abstained

    async def test_a_final_answer_has_no_reasoning(self):
        """None of it is streamed."""
        chair = seat("chair", synthesis="<think>\n[A] it is.\n</think>\n\nFour. [B]")
        async with council([member("a"), member("b")], [chair]) as held:
            told: list[e.Event] = []
            session = await held.ask("How many?", listener=told.append)

        assert session.text == "Four. [B]"
        assert deltas_of(told, e.SynthesisDelta) == "Four. [B]"

    async def test_a_lone_closing_tag_delays_later_streams(self):
        """The answer had one, so the final answer waits for its tag."""
        thinker = seat("thinker", answer="Hm.\n</think>\nFour.", synthesis="Hm.\n</think>\nFive.")
        async with council([thinker, member("b")], [thinker]) as held:
            told: list[e.Event] = []
            session = await held.ask("How many?", listener=told.append)

        withdrawn = [event for event in told if isinstance(event, e.TextWithdrawn)]
        assert [(event.seat, event.stage) for event in withdrawn] == [("thinker", "answer")]
        assert "".join(x.text for x in told if isinstance(x, e.SynthesisDelta)) == "Five."
        assert session.text == "Five."
        assert all(one.seq < other.seq for one, other in pairwise(told))

    async def test_a_withdrawn_text_delays_streams_of_later_questions(self):
        chair = seat("chair", synthesis="Hm.\n</think>\nFive.")
        withdrawn, heard = [], []
        async with council([member("a"), member("b")], [chair]) as held:
            for question in ("How many?", "And now?"):
                told: list[e.Event] = []
                await held.ask(question, listener=told.append)
                withdrawn.append(sum(isinstance(event, e.TextWithdrawn) for event in told))
                heard.append("".join(x.text for x in told if isinstance(x, e.SynthesisDelta)))

        assert withdrawn == [1, 0]
        assert heard[1] == "Five."

    @pytest.mark.parametrize(
        ("text", "first"),
        [
            ("Hm.\n</think>\nFive.", "Five."),
            ("<think>Hm.</think>Five. And so on.", "Five."),
            ("Four. And five.", "Four. And five."),
        ],
    )
    async def test_possible_reasoning_is_not_streamed_at_first(self, text, first):
        """It waits for a tag or the end of the text."""
        told: list[e.Event] = []
        careful = replace(seat("careful", answer=text), may_reason=True)
        async with council([careful, member("a"), member("b")]) as held:
            session = await held.ask("How many?", listener=told.append)

        own = [x for x in told if getattr(x, "seat", None) == "careful"]
        heard = [x.text for x in own if isinstance(x, e.AnswerDelta)]
        assert not [x for x in own if isinstance(x, e.TextWithdrawn)]
        assert "".join(heard) == session.answers["careful"].text
        assert "".join(heard).startswith(first)

    async def test_a_member_without_reasoning_is_streamed_from_its_second_text(self):
        careful = replace(seat("careful", answer="Four. And five."), may_reason=True)
        pieces = []
        async with council([careful, member("a"), member("b")]) as held:
            for question in ("How many?", "And now?"):
                told: list[e.Event] = []
                await held.ask(question, listener=told.append)
                pieces.append(
                    sum(isinstance(x, e.AnswerDelta) and x.seat == "careful" for x in told)
                )

        assert pieces[0] == 1
        assert pieces[1] > 1
