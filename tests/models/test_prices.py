"""Prices: what the list knows, and nothing where it does not."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from witan.deliberation.ports import Price
from witan.models.providers import list_price


@pytest.mark.parametrize("provider", ["openai", "openai-responses", "azure"])
def test_a_known_model_has_a_price_per_million_tokens(provider):
    """The rates are dollars per million tokens, under every name of the provider."""
    assert list_price(provider, "gpt-4o") == Price(2.5, 10.0)


def test_the_price_makes_the_cost_of_a_call():
    """A thousand tokens in and a hundred out cost what the rates say."""
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
def test_a_model_is_priced_at_its_dearest_tier(provider, model, price):
    """Where long prompts cost more per token, that is the price: no prompt costs more."""
    assert list_price(provider, model) == price


@pytest.mark.parametrize(
    ("model", "price"),
    [
        ("deepseek-chat", Price(0.27, 1.1)),
        ("deepseek-reasoner", Price(0.55, 2.19)),
    ],
)
@given(minute=st.integers(0, 24 * 60 - 1))
def test_a_model_is_priced_at_its_dearest_hour(model, price, minute):
    """Whenever it is asked, a price is that of the hours that cost most."""
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
def test_what_is_not_known_has_no_price(provider, model):
    """Unknown is unknown: another provider's model, a local one, one not paid by the token."""
    assert list_price(provider, model) is None


@given(provider=st.text(max_size=20), model=st.text(max_size=40))
def test_no_name_raises(provider, model):
    """Whatever the names are, there is a price or there is none."""
    price = list_price(provider, model)

    assert price is None or (price.input_usd >= 0 and price.output_usd >= 0)
