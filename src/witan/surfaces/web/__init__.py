"""The page: a session, stored or under way, as HTML. Nothing here decides anything."""
