"""Requests to the laboratory's server, and what it answers."""

import http.client
import json
import struct
from typing import Any

from sawtooth.lab import Server, Site
from sawtooth.lab.site import KINDS

SITE = Site({name: f"<title>sawtooth lab</title> {name}".encode() for name in KINDS})
SHORT: dict[str, Any] = {"duration": "1 s", "interval": "100 ms", "path": {"rate": "10 Mbit/s", "loss": "1%"}}


def asked(
    server: Server,
    path: str,
    method: str = "GET",
    body: str | bytes | None = None,
    *,
    key: str | None = "",
    **more: str,
) -> tuple[int, dict[str, str], bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=60)
    headers = {name.replace("_", "-"): value for name, value in more.items()}
    if key is not None:
        headers["X-Sawtooth-Key"] = key or server.key
    connection.request(method, path, body, headers)
    answer = connection.getresponse()
    return answer.status, dict(answer.getheaders()), answer.read()


def frames(body: bytes) -> list[tuple[dict[str, Any], bytes]]:
    found = []
    while body:
        head, rest = struct.unpack("<II", body[:8])
        found.append((json.loads(body[8 : 8 + head]), body[8 + head : 8 + head + rest]))
        body = body[8 + head + rest :]
    return found


def refused(answer: tuple[int, dict[str, str], bytes]) -> tuple[int, str, str | None]:
    status, headers, body = answer
    assert headers["Content-Type"] == "application/json; charset=utf-8"
    error = json.loads(body)["error"]
    assert error["message"]
    assert error["fix"]
    return status, error["code"], error["field"]
