"""The pure part: ballots in, outcomes out; independent of models."""
