"""The council over HTTP: a native API, and OpenAI's."""
