"""Ibid's search beside that of others: each in a process of its own, on one Postgres, with the same vectors."""
