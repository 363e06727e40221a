"""What the page shows, as values: from sessions and outcomes to words and numbers."""
