"""Compares Ibid's search with others, each in a process of its own, on one Postgres with the same vectors."""
