"""Redaction: foreign text in our messages is short, plain and without secrets."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from witan.models.providers import Redaction

KEY_LETTERS = st.sampled_from("abcXYZ019-_+/=.%")
KEYS = st.text(KEY_LETTERS, min_size=4, max_size=40)


@given(KEYS, st.text(max_size=400), st.text(max_size=400))
def test_secret_is_never_shown(secret, before, after):
    """Wherever a key is in a text, and wherever the text is cut, none of it is shown."""
    output = Redaction([secret])(f"{before}{secret}{after}")

    assert secret not in output
    assert len(output) <= 300


@given(st.text(max_size=500))
def test_message_is_one_printable_line(text):
    """No line break, control character or invisible mark remains."""
    assert Redaction([])(text).isprintable()


def test_disguised_secret_is_redacted():
    """A key with invisible characters in it, or quoted for a URL, is removed."""
    redact = Redaction(["sk-a+b/c=="])

    assert redact("key sk-a\x00+b\u200b/c== and sk-a%2Bb/c%3D%3D") == "key *** and ***"


def test_long_text_ends_in_an_ellipsis():
    """A longer text is cut to 300 characters, an ellipsis the last of them."""
    output = Redaction([])("word " * 100)

    assert len(output) == 300
    assert output.endswith("word word…")


def test_repr_hides_secrets():
    """It does not contain the key."""
    assert "sk-secret" not in repr(Redaction(["sk-secret"]))


@given(st.text(KEY_LETTERS, min_size=16, max_size=40), st.text(max_size=400), st.text(max_size=400))
def test_reply_keeps_its_form(secret, before, after):
    """A secret is removed from a reply; the lines and length of the rest stay."""
    hidden = Redaction([secret]).hide(f"{before}{secret}{after}")

    assert secret not in hidden
    assert Redaction([secret]).hide(text := before.replace(secret, "")) == text


@pytest.mark.parametrize("word", ["ollama", "EMPTY", "not-needed"])
def test_placeholder_key_stays_in_replies(word):
    """A word used as the key of a server without keys may occur in an answer."""
    assert Redaction([word]).hide(f"Run {word}\n serve.") == f"Run {word}\n serve."
