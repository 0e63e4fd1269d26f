"""A played platform: it answers as a test sets it, over HTTP and graphql-transport-ws, and keeps the requests."""

from __future__ import annotations

import base64
import hashlib
import http.server
import json
import socket
import struct
import threading
import unittest
from typing import Any, Callable

Reply = tuple[int, dict[str, str], Any]
Talk = Callable[["Wire"], None]


def data(value: Any) -> Reply:
    return 200, {}, {"data": value}


def refusal(code: str, retryable: bool = False, headers: dict[str, str] | None = None) -> Reply:
    return 200, headers or {}, {"errors": [fault(code, retryable)]}


def fault(code: str, retryable: bool = False) -> dict[str, Any]:
    reasons = [{"code": "BAD_VALUE", "message": "m", "path": "input.a"}]
    return {"message": "no", "extensions": {"code": code, "retryable": retryable, "correlation_id": "c-1",
                                            "reasons": reasons}}


class Played:
    """Played answers one request after the other with replies, and talks to one connection after the other."""

    def __init__(self, case: unittest.TestCase, *replies: Reply, talks: tuple[Talk, ...] = ()) -> None:
        self.replies, self.talks, self.asked, self.heads = list(replies), list(talks), list[Any](), list[Any]()
        played = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                played.heads.append(self.headers)
                played.asked.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
                status, headers, body = played.replies.pop(0)
                raw = body if isinstance(body, bytes) else json.dumps(body).encode()
                self.send_response(status)
                for name, value in {**headers, "Content-Length": str(len(raw))}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(raw)

            def do_GET(self) -> None:
                self.close_connection = True
                talk = played.talks.pop(0)
                key = self.headers["Sec-WebSocket-Key"] + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
                accept = base64.b64encode(hashlib.sha1(key.encode()).digest()).decode()
                self.send_response(101)
                for name, value in {"Upgrade": "websocket", "Connection": "Upgrade", "Sec-WebSocket-Accept": accept,
                                    "Sec-WebSocket-Protocol": "graphql-transport-ws"}.items():
                    self.send_header(name, value)
                self.end_headers()
                wire = Wire(self.connection, self.rfile)
                played.asked.append(wire.hear()["payload"])
                wire.say({"type": "connection_ack"})
                played.asked.append(wire.hear()["payload"])
                talk(wire)

            def log_message(self, format: str, *args: Any) -> None:
                pass

        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        case.addCleanup(server.server_close)
        case.addCleanup(server.shutdown)
        self.url = f"http://127.0.0.1:{server.server_address[1]}"


class Wire:
    """Wire is the platform's end of a WebSocket."""

    def __init__(self, connection: socket.socket, file: Any) -> None:
        self._connection, self._file = connection, file

    def hear(self) -> Any:
        head = self._file.read(2)
        if len(head) < 2:
            return None  # the client has closed the connection
        length = head[1] & 127
        if length == 126:
            length = struct.unpack(">H", self._file.read(2))[0]
        mask, body = self._file.read(4), self._file.read(length)
        return json.loads(bytes(byte ^ mask[i % 4] for i, byte in enumerate(body)) or b"null")

    def say(self, message: Any) -> None:
        self._frame(1, json.dumps(message).encode())

    def next(self, value: Any) -> None:
        self.say({"id": "1", "type": "next", "payload": {"data": value}})

    def close(self, code: int) -> None:
        self._frame(8, struct.pack(">H", code))

    def _frame(self, kind: int, body: bytes) -> None:
        size = bytes([len(body)]) if len(body) < 126 else b"\x7e" + struct.pack(">H", len(body))
        self._connection.sendall(bytes([128 | kind]) + size + body)
