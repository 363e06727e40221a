"""A server of OpenAI's protocol."""
