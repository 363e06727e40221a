"""Prices of models: from the list, or unknown."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from witan.deliberation.ports import Price
from witan.models.providers import list_price


@pytest.mark.parametrize("provider", ["openai", "openai-responses", "azure"])
def test_known_model_has_a_price_per_million_tokens(provider):
    """The rates are dollars per million tokens, under every name of the provider."""
    assert list_price(provider, "gpt-4o") == Price(2.5, 10.0)


def test_price_gives_the_cost_of_a_call():
    """A thousand tokens in and a hundred out cost as much as the rates say."""
    price = list_price("openai", "gpt-4o")

    assert price is not None
    assert price.of(1_000, 100) == pytest.approx(0.0025 + 0.001)


@pytest.mark.parametrize(
    ("provider", "model", "price"),
    [
        ("google", "gemini-2.5-pro", Price(2.5, 15.0)),
        ("anthropic", "claude-sonnet-4-5", Price(6.0, 22.5)),
        ("openrouter", "qwen/qwen3-coder-flash", Price(0.52, 2.6)),
    ],
)
def test_price_is_that_of_the_most_expensive_tier(provider, model, price):
    """Where long prompts cost more per token, that is the price."""
    assert list_price(provider, model) == price


@pytest.mark.parametrize(
    ("model", "price"),
    [
        ("deepseek-chat", Price(0.27, 1.1)),
        ("deepseek-reasoner", Price(0.55, 2.19)),
    ],
)
@given(minute=st.integers(0, 24 * 60 - 1))
def test_price_is_that_of_the_most_expensive_hours(model, price, minute):
    """The time of the lookup does not matter."""
    now = datetime(2026, 11, 5, tzinfo=UTC) + timedelta(minutes=minute)

    assert list_price("deepseek", model, now) == price


@pytest.mark.parametrize(
    ("provider", "model"),
    [
        ("openai", "gpt-unheard-of"),
        ("ollama", "gpt-4o"),
        ("http", "gpt-4o"),
        ("openai", "tts-1"),
        ("openai", "text-embedding-3-small"),
        ("", ""),
    ],
)
def test_unlisted_model_has_no_price(provider, model):
    """Such as another provider's model, a local one, and one not paid by the token."""
    assert list_price(provider, model) is None


@given(provider=st.text(max_size=20), model=st.text(max_size=40))
def test_any_name_gives_a_price_or_none(provider, model):
    """No provider and no name raises an exception."""
    price = list_price(provider, model)

    assert price is None or (price.input_usd >= 0 and price.output_usd >= 0)
