"""The pure part: ballots in, outcomes out; knows no models."""
