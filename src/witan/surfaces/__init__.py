"""Parse, call and print, without logic of their own."""
