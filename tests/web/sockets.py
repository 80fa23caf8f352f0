"""Connections to a server, byte by byte."""

import socket

from running import TOKEN, Served


def connected(server: Served, size: int | None = None, source: str | None = None) -> socket.socket:
    host, _, port = server.url.removeprefix("http://").partition(":")
    connection = socket.socket()
    if size is not None:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, size)
    if source is not None:
        connection.bind((source, 0))
    connection.settimeout(60)
    connection.connect((host, int(port)))
    return connection


def head(server: Served, path: str, *lines: str, method: str = "GET", token: str | None = TOKEN) -> bytes:
    host = server.url.removeprefix("http://")
    first = [f"{method} {path} HTTP/1.1", f"Host: {host}"] + ([f"Authorization: Bearer {token}"] if token else [])
    return "\r\n".join([*first, *lines, "", ""]).encode()


def whole(connection: socket.socket) -> bytes:
    """A reply whose body is a JSON object."""
    received = b""
    while not received.endswith(b"}"):
        part = connection.recv(100_000)
        assert part, received
        received += part
    return received
