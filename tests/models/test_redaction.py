"""Redaction: words of others in our messages are short, plain and without secrets."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from witan.models.providers import Redaction

KEY_LETTERS = st.sampled_from("abcXYZ019-_+/=.%")
KEYS = st.text(KEY_LETTERS, min_size=4, max_size=40)


@given(KEYS, st.text(max_size=400), st.text(max_size=400))
def test_a_secret_is_nowhere_in_what_is_shown(secret, before, after):
    """Wherever a key stands in a text, and wherever the text is cut, none of it is shown."""
    shown = Redaction([secret])(f"{before}{secret}{after}")

    assert secret not in shown
    assert len(shown) <= 300


@given(st.text(max_size=500))
def test_a_message_is_one_printable_line(text):
    """No line break, control character or invisible mark is left."""
    assert Redaction([])(text).isprintable()


def test_a_secret_cut_by_marks_is_found():
    """A key that is echoed with invisible characters in it, or quoted for a URL, is taken out."""
    redact = Redaction(["sk-a+b/c=="])

    assert redact("key sk-a\x00+b\u200b/c== and sk-a%2Bb/c%3D%3D") == "key *** and ***"


def test_a_long_text_says_that_it_goes_on():
    """300 characters are shown of a longer text, an ellipsis the last of them."""
    shown = Redaction([])("word " * 100)

    assert len(shown) == 300
    assert shown.endswith("word word…")


def test_it_shows_no_secret_itself():
    """Its representation holds no key."""
    assert "sk-secret" not in repr(Redaction(["sk-secret"]))


@given(st.text(KEY_LETTERS, min_size=16, max_size=40), st.text(max_size=400), st.text(max_size=400))
def test_a_reply_keeps_its_form(secret, before, after):
    """A secret is taken out of a reply, whose lines and length stay as they are."""
    hidden = Redaction([secret]).hide(f"{before}{secret}{after}")

    assert secret not in hidden
    assert Redaction([secret]).hide(text := before.replace(secret, "")) == text


@pytest.mark.parametrize("word", ["ollama", "EMPTY", "not-needed"])
def test_a_word_that_serves_as_a_key_stays_in_replies(word):
    """What stands in for a key on a server that wants none may well be said in an answer."""
    assert Redaction([word]).hide(f"Run {word}\n serve.") == f"Run {word}\n serve."
