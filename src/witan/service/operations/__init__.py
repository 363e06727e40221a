"""What every surface asks of stored sessions and of ballots, in one way: they block, briefly."""
