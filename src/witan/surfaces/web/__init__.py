"""The page: sessions and reports as HTML, and forms."""
