"""What `witan doctor` checks."""
