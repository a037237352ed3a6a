"""`corollary serve`: a store over HTTP, and a page to look at it."""

from __future__ import annotations

import argparse
import os

from corollary.cli import arguments
from corollary.errors import InvalidInput, OperationFailed


def add_arguments(parser: arguments.Parser) -> None:
    """Add the arguments of the command."""
    parser.description = (
        "Serve a store over HTTP until Ctrl-C: the SPARQL 1.1 Protocol at /sparql, proofs, changes"
        " and live feeds (listed at /openapi.json), and a page at /. Without tokens, only this"
        " machine can connect, and nobody can write unless --open allows it."
    )
    arguments.add_store(parser)
    parser.add_argument(
        "--host", default="127.0.0.1", help="the address to listen on (default: %(default)s)"
    )
    parser.add_argument(
        "--port",
        type=arguments.natural,
        default=7878,
        help="the port to listen on; 0 chooses a free one (default: %(default)s)",
    )
    parser.add_argument(
        "--tokens",
        metavar="FILE",
        help="who may do what: lines of a role (read, write, admin), a name and a token",
    )
    parser.add_argument(
        "--open",
        action="store_true",
        help="let everybody who can connect change facts and rules; local addresses only",
    )
    parser.add_argument(
        "--cors",
        action="append",
        default=[],
        metavar="ORIGIN",
        help="let pages of this origin use the service; may be given several times",
    )
    parser.add_argument(
        "--workers",
        type=arguments.positive,
        default=max(2, os.cpu_count() or 1),
        metavar="N",
        help="processes that answer queries, besides the one that writes (default: all cores)",
    )
    number = arguments.add_number
    number(parser, "--limit-seconds", 30, "of each request", arguments.seconds, "S")
    parser.add_argument(
        "--limit-memory",
        type=arguments.bytes_,
        default=4 << 30,
        metavar="SIZE",
        help="of each worker, such as 500M or 8G (default: 4G)",
    )
    number(parser, "--limit-rows", 1_000_000, "of each answer")
    parser.add_argument(
        "--limit-request",
        type=arguments.bytes_,
        default=10 << 20,
        metavar="SIZE",
        help="of the body of each request (default: 10M)",
    )
    number(parser, "--limit-waiting", 64, "requests that wait for a worker; others are refused")
    number(parser, "--limit-subscribers", 2000, "open feeds")
    arguments.add_output(parser, json="report errors as JSON", quiet="do not log requests")
    parser.set_defaults(command=serve)


def serve(options: argparse.Namespace) -> None:
    """Serve a store until a signal."""
    try:
        from corollary.service import server
    except ModuleNotFoundError as error:
        raise OperationFailed(
            "E403", f"{error.name} is not installed", "pip install 'corollary[serve]'"
        ) from None
    from corollary.service.settings import Limits, Settings
    from corollary.service.tokens import Tokens

    if options.open and options.tokens:
        raise InvalidInput("E313", "--open and --tokens exclude each other")
    if options.port > 65_535:
        raise InvalidInput("E313", f"there is no port {options.port}", "ports end at 65535")
    limits = Limits(
        options.limit_seconds,
        options.limit_memory,
        options.limit_rows,
        options.limit_request,
        options.limit_waiting,
        options.limit_subscribers,
    )
    settings = Settings(
        options.store,
        dict(options.storage_option),
        options.host,
        options.port,
        options.workers,
        limits=limits,
        tokens=Tokens.read(options.tokens) if options.tokens else None,
        open=options.open,
        cors=tuple(options.cors),
    )
    server.run(settings, quiet=options.quiet)
