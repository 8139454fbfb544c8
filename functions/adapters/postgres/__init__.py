"""All access to Postgres; no other package contains SQL. Functions take the connection of an open transaction."""
