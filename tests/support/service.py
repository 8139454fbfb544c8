"""Reads serverless.yml: its functions, their handlers, and their routes."""

from __future__ import annotations

from functools import cache
from typing import Any

import yaml

from tests.support.requirements import REPOSITORY


class _Loader(yaml.SafeLoader):
    """Reads CloudFormation's short forms (`!Ref x`, `!GetAtt x.y`) as one-key mappings."""


def _short_form(loader: yaml.SafeLoader, tag: str, node: yaml.Node) -> dict[str, Any]:
    if isinstance(node, yaml.SequenceNode):
        return {tag: loader.construct_sequence(node, deep=True)}
    assert isinstance(node, yaml.ScalarNode)
    return {tag: loader.construct_scalar(node)}


_Loader.add_multi_constructor("!", _short_form)


@cache
def read() -> dict[str, Any]:
    return yaml.load((REPOSITORY / "serverless.yml").read_text(encoding="utf-8"), _Loader)


def functions() -> dict[str, dict[str, Any]]:
    return read()["functions"]


def reserved_concurrency() -> dict[str, int]:
    """Function name → what it reserves in an account that is large enough (RESERVED_CONCURRENCY=full)."""
    return read()["custom"]["reservedConcurrency"]["full"]


def secrets(name: str) -> list[str]:
    """The parameters that a function reads when it starts."""
    return functions()[name]["environment"]["SECRETS"].split(",")


def readable_secrets(name: str) -> set[str]:
    """The parameters that the role of a function may read."""
    (policy,) = read()["resources"]["Resources"][functions()[name]["role"]]["Properties"]["Policies"]
    (granted,) = [s["Resource"] for s in policy["PolicyDocument"]["Statement"] if s["Action"] == "ssm:GetParameters"]
    return {resource.removeprefix("${self:custom.mayRead.").removesuffix("}") for resource in granted}


def python_handlers() -> dict[str, str]:
    """Function name → the dotted name of the module whose `handler` it runs."""
    handlers = {name: function["handler"] for name, function in functions().items()}
    return {
        name: handler.removesuffix(".handler").replace("/", ".")
        for name, handler in handlers.items()
        if handler.endswith(".handler")
    }


def routes(name: str) -> set[tuple[str, str]]:
    """The (method, path) pairs that the gateway sends to a function."""
    events = functions()[name].get("events", [])
    return {tuple(event["httpApi"].split(" ")) for event in events if "httpApi" in event}
