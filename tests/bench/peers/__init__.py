"""Ibid's search compared with other systems: each in a separate process, on one Postgres, with the same vectors."""
