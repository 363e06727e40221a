"""The configuration: files, environment variables and overrides."""
