"""Values of the page: sessions and outcomes as words and numbers."""
