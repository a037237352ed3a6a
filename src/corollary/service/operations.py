"""Operations: what a service offers, declared once for all uses."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from starlette.responses import Response

from corollary.errors import InvalidInput

if TYPE_CHECKING:
    from corollary.service.exchange import Exchange

Operate = Callable[["Exchange"], Awaitable[Response]]


@dataclass(frozen=True)
class Parameter:
    """A parameter of a query string or form."""

    name: str
    meaning: str
    kind: str = "string"  # or integer; or strings: it may be given several times
    required: bool = False
    default: int | None = None
    most: int | None = None  # of an integer
    choices: tuple[str, ...] = ()
    longest: int | None = None  # characters
    example: str | None = None

    def parse(self, values: list[str]) -> str | int | None:
        """Parse the values of a request.

        >>> Parameter("limit", "", kind="integer", default=5, most=9).parse(["7"])
        7
        """
        if len(values) > 1:
            raise InvalidInput("E600", f"the parameter {self.name} is given {len(values)} times")
        if not values:
            if self.required:
                raise InvalidInput("E600", f"the parameter {self.name} is missing", self.meaning)
            return self.default
        [text] = values
        if self.kind == "integer":
            return self._number(text)
        if self.longest is not None and len(text) > self.longest:
            raise InvalidInput(
                "E600", f"the parameter {self.name} has more than {self.longest} characters"
            )
        if self.choices and text not in self.choices:
            raise InvalidInput(
                "E600",
                f"unknown value of the parameter {self.name}",
                f"choose one of {', '.join(self.choices)}",
            )
        return text

    def _number(self, text: str) -> int:
        most = 2**53 if self.most is None else self.most
        if not (text.isascii() and text.isdigit()) or len(text) > 16 or int(text) > most:
            raise InvalidInput(
                "E600", f"the parameter {self.name} must be a number from 0 to {most}"
            )
        return int(text)

    def schema(self) -> dict[str, Any]:
        """The JSON schema of the parameter."""
        if self.kind == "strings":
            return {"type": "array", "items": {"type": "string"}}
        schema: dict[str, Any] = {"type": self.kind}
        if self.kind == "integer":
            schema |= {"minimum": 0, "maximum": 2**53 if self.most is None else self.most}
        if self.longest is not None:
            schema["maxLength"] = self.longest
        if self.default is not None:
            schema["default"] = self.default
        if self.choices:
            schema["enum"] = [*self.choices]
        return schema


@dataclass(frozen=True)
class Operation:
    """A method of a path: what it needs, what it returns, and the function that does it."""

    method: str
    path: str
    summary: str
    operate: Operate
    role: str | None = "read"  # None: open to everybody
    parameters: tuple[Parameter, ...] = ()
    bodies: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)  # media type: schema
    body_required: bool = True
    responses: tuple[str, ...] = ("application/json",)  # media types of status 200
    status: int = 200
    creates: bool = False  # whether it may also answer 201
    errors: tuple[int, ...] = (400, 503)


MESSAGE = Parameter("message", "why, for the log", longest=500)
VERSION = Parameter("version", "an older version of the store", kind="integer")
COMMON_ERRORS = (401, 403, 429, 500, 503)
