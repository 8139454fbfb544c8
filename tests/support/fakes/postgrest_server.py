"""PostgREST on loopback, as far as Supabase's clients need it to call functions: `POST /rest/v1/rpc/NAME`.

    with FakePostgrest(dsn, schemas=("ibid",)) as server:
        client = supabase.create_client(server.base_url, server.make_token(ADA))

Like the real one, it finds a function by the names of the arguments, turns one JSON object into them with
`json_to_record`, runs the call as the role of the token, and answers errors by their SQLSTATE
(https://docs.postgrest.org/en/v13/references/errors.html).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import jwt
import psycopg
from psycopg import sql

from functions.core import models
from tests.support.fakes.json_server import Body, FakeServer, Fault

SECRET = "a secret of at least thirty-two bytes"

_ARGUMENTS = """
    select unnest(p.proargnames[:p.pronargs]), unnest(p.proargtypes::oid[])::regtype::text
    from pg_proc p where p.proname = %s and p.pronamespace = to_regnamespace(%s)
"""
_CALL = sql.SQL("""
    select coalesce(json_agg(called), '[]')
    from json_to_record({body}) as given (no_argument text{columns}), lateral {schema}.{name}({arguments}) called
""")


class FakePostgrest(FakeServer):
    def __init__(self, dsn: str, *, schemas: Sequence[str]) -> None:
        """The first of the exposed `schemas` is the one of requests that name none."""
        super().__init__()
        self.dsn = dsn
        self.schemas = schemas

    def make_token(self, user: models.User | None) -> str:
        """The token of a user, or the one of nobody: the publishable key."""
        claims = {"role": "anon"} if user is None else {"role": "authenticated", "sub": user.id}
        return jwt.encode(claims, SECRET, "HS256")

    def answer(self, route: str, body: Body) -> Fault:
        headers = {name.lower(): value for name, value in self.requests[-1]["headers"].items()}
        schema, name = headers.get("content-profile", self.schemas[0]), route.rpartition("/")[2]
        if schema not in self.schemas:
            return _refuse(406, "PGRST106", f"Invalid schema: {schema}")
        claims = jwt.decode(headers["authorization"].removeprefix("Bearer "), SECRET, ["HS256"])
        with psycopg.connect(self.dsn) as connection:
            types: dict[str, str] = dict(connection.execute(_ARGUMENTS, (name, schema)).fetchall())
            if not types or body.keys() - types.keys():
                return _refuse(404, "PGRST202", f"Could not find the function {schema}.{name}")
            call = _write_call(schema, name, body, types)
            try:
                _take_role(connection, claims)
                row = connection.execute(call).fetchone()
            except psycopg.Error as exc:
                status = {"42501": 401 if claims["role"] == "anon" else 403}.get(exc.sqlstate or "", 400)
                return _refuse(status, exc.sqlstate, exc.diag.message_primary)
        assert row is not None
        return Fault(body=row[0])


def _take_role(connection: psycopg.Connection, claims: Mapping[str, Any]) -> None:
    connection.execute(
        "select set_config('role', %s, true), set_config('request.jwt.claims', %s, true)",
        (claims["role"], json.dumps(claims)),
    )


def _write_call(schema: str, name: str, body: Body, types: Mapping[str, str]) -> sql.Composed:
    columns = [sql.SQL(", {} {}").format(sql.Identifier(key), sql.SQL(types[key])) for key in body]
    arguments = [sql.SQL("{0} := given.{0}").format(sql.Identifier(key)) for key in body]
    return _CALL.format(
        body=sql.Literal(json.dumps(body)),
        columns=sql.SQL("").join(columns),
        schema=sql.Identifier(schema),
        name=sql.Identifier(name),
        arguments=sql.SQL(", ").join(arguments),
    )


def _refuse(status: int, code: str | None, message: str | None) -> Fault:
    return Fault(status, body={"code": code, "message": message, "details": None, "hint": None})
