"""The command line: python -m functions.local COMMAND; --help lists the commands."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from pydantic import ValidationError

from functions.core import errors
from functions.core.api_keys import SCOPES
from functions.runtime.config import Config


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command; an error is one line on stderr and exit code 1."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    if arguments[:1] in (["migrate"], ["stamp"], ["eval"]):
        return _run_tool(arguments[0], arguments[1:])
    options = _parser().parse_args(arguments)
    try:
        return _run(options)
    except errors.IbidError as exc:
        print(f"ibid: {exc.message}", file=sys.stderr)
    except ValidationError as exc:
        faults = "; ".join(f"{'.'.join(map(str, e['loc'])).upper()}: {e['msg']}" for e in exc.errors())
        where = "environment" if exc.title == Config.__name__ else "command"
        print(f"ibid: the {where} is not valid: {faults}", file=sys.stderr)
    except OSError as exc:  # a folder or a file that this user may not use
        print(f"ibid: {exc.strerror}: {exc.filename or 'unknown file'} (IBID_HOME moves the data)", file=sys.stderr)
    except KeyboardInterrupt:
        return 130
    return 1


def _run_tool(name: str, arguments: list[str]) -> int:
    if name == "migrate":
        from functions.local.database import migrate

        return migrate.main(arguments)
    if name == "stamp":
        from functions.local.database import stamp

        return stamp.main(arguments)
    from functions.local.evaluation import command

    return command.main(arguments)


def _run(options: argparse.Namespace) -> int:
    config = Config()
    if options.command == "serve":
        from functions.local.server import serve

        return serve.serve(config, page_sources=options.page_sources)
    if options.command == "work":
        from functions.local.server import priority, worker
        from functions.runtime.services import Services

        limit = priority.WorkerThreads(config).count
        services = Services(config, model_threads=priority.MODEL_THREADS, model_limit=limit)
        worker.work(services, parent=options.parent)
        return 0
    if options.command == "reindex":
        from functions.local import reindex

        return reindex.run(config)
    if options.command == "ratings":
        from functions.local import ratings

        return ratings.run(config)
    if options.command == "forget-user":
        from functions.local import forget_user

        return forget_user.run(config, options.user_id, options.yes)
    from functions.local import terminal

    return terminal.run(config, options)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m functions.local", description="Ibid on one machine.")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    serve = commands.add_parser("serve", help="serve the page and the API on 127.0.0.1 (PORT)")
    serve.add_argument("--page-sources", action="store_true", help="serve the modules of the page one by one")
    ingest = commands.add_parser("ingest", help="add files to the library")
    ingest.add_argument("files", nargs="+", metavar="FILE")
    ask = commands.add_parser("ask", help="ask a question; prints the answer with file, page and quote")
    ask.add_argument("question", metavar="QUESTION")
    token = commands.add_parser("token", help="print a bearer token for a local user")
    token.add_argument("--user", default="local", metavar="NAME")
    token.add_argument("--admin", action="store_true")
    key = commands.add_parser("key", help="make an API key of the local user, and print it")
    key.add_argument("name", metavar="NAME", help="what the key is for")
    key.add_argument("--scope", action="append", required=True, choices=SCOPES, help="may be repeated")
    key.add_argument("--days", type=int, default=365, help="how long it is valid (365)")
    commands.add_parser("reindex", help="re-index the library with the embedding model of the environment")
    commands.add_parser("ratings", help="print the rated answers of all users as JSON lines, for an evaluation")
    forget = commands.add_parser(
        "forget-user", help="delete all data of one user, and print how many rows and files were deleted"
    )
    forget.add_argument("user_id", metavar="USER_ID")
    forget.add_argument("--yes", action="store_true", help="do not ask for confirmation")
    work = commands.add_parser("work", help="run a worker (serve starts one itself)")
    work.add_argument("--parent", type=int)
    for name, text in (
        ("migrate", "migrate the database at DATABASE_URL"),
        ("stamp", "copy changed SQL functions into a new migration"),
        ("eval", "measure search and answers on a question set"),
    ):
        commands.add_parser(name, help=text)
    return parser


if __name__ == "__main__":
    sys.exit(main())
