"""OpenAI's protocol, served."""
