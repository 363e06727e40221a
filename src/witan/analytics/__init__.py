"""Leaderboards and audits: the views, the queries and the engines that run them."""
