"""The application: operations, running sessions, spending, configuration and redaction."""
