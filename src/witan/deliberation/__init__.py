"""Run councils of models, as one stream of events."""
