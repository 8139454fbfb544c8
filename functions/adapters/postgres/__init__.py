"""Everything said to Postgres: the only package with SQL text. Functions take the connection of an open transaction."""
