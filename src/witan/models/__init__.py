"""The adapters of the Model port: HTTP, pydantic-ai, programs, scripts; and the seats they take."""
