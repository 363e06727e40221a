"""Run councils of models: stages, calls and money, as one stream of events."""
