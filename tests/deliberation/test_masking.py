"""Masking removes names that reveal an author, and nothing else."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from witan.deliberation.texts import mask

COUNCIL = ("critic", "acme-7b", "http://host/v1#house-blend-2")

GIVEAWAYS = {
    "As ChatGPT, I would wait.": "As [model], I would wait.",
    "I'm GPT-4o mini, and I agree.": "I'm [model], and I agree.",
    "gpt-4o-2024-08-06 said so": "[model] said so",
    "GPT-5.2 and gpt-oss-120b": "[model] and [model]",
    "Claude 3.5 Sonnet, Claude Opus 4, claude-3-haiku-20240307": "[model], [model], [model]",
    "Llama 3 and llama3.1:8b": "[model] and [model]",
    "Gemini 2.5 Pro, Gemini Flash": "[model], [model]",
    "DeepSeek-R1 is by DeepSeek": "[model] is by [vendor]",
    "Qwen2.5-72B-Instruct": "[model]",
    "Mixtral, by Mistral AI": "[model], by [vendor]",
    "OpenAI, Anthropic and xAI": "[vendor], [vendor] and [vendor]",
    "As Claude, I cannot know.": "As [model], I cannot know.",
    "As Gemini my view is": "As [model] my view is",
    "As an AI assistant, Claude, I": "As an AI assistant, [model], I",
    "I, Claude, hold": "I, [model], hold",
    "My name is Claude and I help.": "My name is [model] and I help.",
    "I am Gemini, a large language model built by Google.": (
        "I am [model], a large language model built by [vendor]."
    ),
    "I'm Grok, made by xAI.": "I'm [model], made by [vendor].",
    "I’m Google’s Gemini.": "I’m [model].",
    "I'm Google's Gemini 2.5 Pro.": "I'm [vendor]'s [model].",
    "I am Command R+, created by Cohere.": "I am [model], created by [vendor].",
    "I am an AI assistant called Claude.": "I am an AI assistant called [model].",
    "I was trained by Google.": "I was trained by [vendor].",
    "I am a large language model, trained by Google.": (
        "I am a large language model, trained by [vendor]."
    ),
    "As an AI developed by Meta, I": "As an AI developed by [vendor], I",
    "My creators at Meta say": "My creators at [vendor] say",
    "As critic, I disagree": "As [model], I disagree",
    "Acme 7B and acme-7b-instruct": "[model] and [model]",
    "house-blend-2 here": "[model] here",
}

INNOCENT = [
    "Claude Monet painted at Giverny.",
    "My name is Claude Monet and I paint.",
    "I am Claude Debussy's biographer.",
    "The Gemini constellation rises; Gemini 4 flew in 1965.",
    "I am a Gemini.",
    "As Gemini rises, the sky darkens.",
    "Llama wool is warm; my llama 3 years ago gave plenty.",
    "I grok it.",
    "The mistral blows down the Rhône.",
    "A meta-analysis reads metadata.",
    "Kubernetes was developed by Google, React was created by Meta.",
    "I'm using React, created by Meta.",
    "As Google says, I should index less.",
    "A nova is a star; the command line; press Command R.",
    "The anthropic principle. Anthropic reasoning misleads.",
    "XAI methods explain models; O3 is ozone; a GPT partition table.",
    "Beethoven's opus 5, a haiku, a sonnet 3 pages long.",
    "The critic said no; as a critic, I agree.",
    "I am a model railway fan.",
]


class TestNames:
    """Names that reveal the author are masked."""

    @pytest.mark.parametrize("text", GIVEAWAYS)
    def test_a_name_of_the_author_is_masked(self, text):
        """It is a model, a vendor, or a word by which an author names itself."""
        assert mask(text, "What is best?", COUNCIL) == GIVEAWAYS[text]

    def test_the_whole_answer_is_searched(self):
        text = "OpenAI\nmade GPT-4, and GPT-4 says:\n\nI am Claude."

        assert mask(text, "", ()) == "[vendor]\nmade [model], and [model] says:\n\nI am [model]."


class TestOtherMeanings:
    """Words with other meanings stay."""

    @pytest.mark.parametrize("text", INNOCENT)
    def test_other_meanings_stay(self, text):
        """Painters, stars, animals, winds and tools keep their names."""
        assert mask(text, "What is best?", COUNCIL) == text

    @pytest.mark.parametrize(
        ("question", "answer"),
        [
            ("Is GPT-4 better than Claude 3?", "GPT-4 beats Claude 3."),
            ("Is gpt4 good?", "GPT-4o is."),
            ("Who founded OpenAI?", "OpenAI was founded in 2015."),
            ("Who are you, Claude?", "I am Claude."),
            ("What does Google train?", "I was trained by Google."),
            ("What is acme-7b?", "acme-7b is a model."),
        ],
    )
    def test_names_in_the_question_stay(self, question, answer):
        """An answer may mention them."""
        assert mask(answer, question, COUNCIL) == answer

    @pytest.mark.parametrize("question", ["What is metadata?", "Is egpty a word?", ""])
    def test_a_part_of_a_word_is_not_a_name(self, question):
        """A question about metadata does not name Meta."""
        answer = "I was made by Meta; GPT-4 was not."

        assert "by [vendor]; [model] was not" in mask(answer, question, ())


PIECES = st.sampled_from(
    [
        *(word for text in (*GIVEAWAYS, *INNOCENT) for word in text.split()),
        *("[model]", "[vendor]", ",", ".", "\n", "-", "as", "I am", "I'm", "made by", "called"),
    ]
)


@given(st.lists(PIECES, max_size=30), st.sampled_from([" ", "", ", "]))
def test_masking_is_idempotent(pieces, gap):
    once = mask(gap.join(pieces), "What about llamas?", COUNCIL)

    assert mask(once, "What about llamas?", COUNCIL) == once


@pytest.mark.parametrize(
    "piece",
    ["I am a ", "as an AI ", "GPT-4-", "claude ", "I'm a a a model ", "gemini-2.", "my name is "],
)
def test_time_is_linear_for_a_hostile_answer(piece):
    """A hundred thousand characters of partial matches take seconds."""
    text = piece * (100_000 // len(piece)) + "Claude Monet, Google"

    began = time.process_time()
    mask(text, "", COUNCIL)

    assert time.process_time() - began < 5
