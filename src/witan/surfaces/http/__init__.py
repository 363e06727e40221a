"""The council over HTTP: a native API, and that of OpenAI."""
