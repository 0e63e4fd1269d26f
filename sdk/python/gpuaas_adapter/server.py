"""HTTP around the routes: nothing is answered without a valid request token, whose signature is verified before the
body is read, so that strangers cannot fill the adapter's memory with bodies."""

from __future__ import annotations

import http.server
import json
import re
import socket
import ssl
import threading
from pathlib import Path
from typing import Any

from .contract import MAX_BODY, Refusal
from .log import Log
from .platform import trace_id
from .routes import Answer, Request, Routes
from .sign import Unsigned, Verifier

_MAX_CONNECTIONS = 256
_READ_SECONDS = 30
_IDLE_SECONDS = 120
_WRITE_SECONDS = 180
_DRAIN = 8 << 20
_CORRELATION = re.compile(r"[A-Za-z0-9._-]{1,64}")


class Server(http.server.ThreadingHTTPServer):
    """Server serves the contract on one address."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, listener: socket.socket, routes: Routes, verifier: Verifier, log: Log,
                 tls: Tls | None = None) -> None:
        super().__init__(listener.getsockname()[:2], _Handler, bind_and_activate=False)
        self.socket.close()
        self.socket = listener
        self.socket.listen(self.request_queue_size)
        self.server_address = listener.getsockname()
        self.routes, self.verifier, self.log, self._tls = routes, verifier, log, tls
        self._free = threading.BoundedSemaphore(_MAX_CONNECTIONS)

    def process_request(self, request: Any, client_address: Any) -> None:
        """process_request waits for a free place: more connections wait in the kernel's queue."""
        self._free.acquire()
        super().process_request(request, client_address)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """process_request_thread serves one connection; the handshake is here, so that it delays no other."""
        try:
            if self._tls is not None:
                request.settimeout(_READ_SECONDS)
                request = self._tls.context().wrap_socket(request, server_side=True)
            super().process_request_thread(request, client_address)
        except OSError as error:
            self.log.debug("connection refused", error=str(error))
            self.shutdown_request(request)
        finally:
            self._free.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """handle_error logs the error of a connection; a caller that disconnected is not a fault."""
        self.log.debug("connection ended", exc_info=True)


class Tls:
    """Tls serves https with certificates that are read again for every handshake."""

    def __init__(self, cert: Path, key: Path, client_ca: Path | None) -> None:
        self._cert, self._key, self._client_ca = cert, key, client_ca
        self.context()

    def context(self) -> ssl.SSLContext:
        """context returns the TLS context for one handshake."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.load_cert_chain(self._cert, self._key)
        if self._client_ca is not None:
            context.verify_mode = ssl.CERT_REQUIRED
            context.load_verify_locations(self._client_ca)
        return context


class _Handler(http.server.BaseHTTPRequestHandler):
    server: Server
    protocol_version = "HTTP/1.1"
    wbufsize = -1
    disable_nagle_algorithm = True

    def handle_one_request(self) -> None:
        self.connection.settimeout(_IDLE_SECONDS)
        super().handle_one_request()

    def log_message(self, format: str, *args: Any) -> None:
        """The server's own lines, which quote what strangers send, are left out."""

    def _serve(self) -> None:
        self.connection.settimeout(_READ_SECONDS)
        self._unread = True
        if self.command == "GET" and self.path == "/healthz":
            return self._write(200, b"ok\n", "text/plain")
        log = self.server.log.bind(method=self.command, path=self.path.partition("?")[0])
        correlation = self.headers.get("X-Correlation-ID", "")
        self._correlation = correlation if _CORRELATION.fullmatch(correlation) else ""
        if self._correlation:
            log = log.bind(correlation_id=self._correlation)
        if known := trace_id(self.headers.get("traceparent", "")):
            log = log.bind(trace_id=known)
        status, body = self._answer(log)
        raw = json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")
        if len(raw) > MAX_BODY:
            log.error("the answer is larger than 1 MiB", status=status)
            status, raw = 500, b'{"code":"INTERNAL","message":"the answer could not be written"}'
        log.debug("request", status=status)
        self.connection.settimeout(_WRITE_SECONDS)
        self._write(status, raw, "application/json")

    do_GET = do_PUT = do_POST = do_DELETE = do_PATCH = do_HEAD = do_OPTIONS = _serve

    def _answer(self, log: Log) -> Answer:
        try:
            claims = self.server.verifier.open(self.headers.get("Authorization"))
            body = self._read()
            self.server.verifier.check(claims, self.command, self.path, body)
            headers = {name.lower(): value for name, value in self.headers.items()}
            return self.server.routes.answer(Request(self.command, self.path, headers, body, log))
        except Unsigned as refusal:
            log.warning("request refused", reason=refusal.reason)
            return refusal.status, refusal.body()
        except Refusal as refusal:
            return refusal.status, refusal.body()
        except Exception as error:  # an interruption, too, is not the caller's fault
            log.error("request failed", exc_info=error)
            return 500, Refusal(500, "INTERNAL", "the adapter had an internal error", retryable=True).body()

    def _read(self) -> bytes:
        too_large = Refusal(413, "DOCUMENT_TOO_LARGE", "the body is larger than 1 MiB")
        if "chunked" in self.headers.get("Transfer-Encoding", "").lower():
            body = b""
            while size := int(self.rfile.readline(64).partition(b";")[0], 16):
                if len(body) + size > MAX_BODY:
                    raise too_large
                body += self.rfile.read(size + 2)[:-2]
            while self.rfile.readline(1024) not in (b"\r\n", b"\n", b""):
                pass
            self._unread = False
            return body
        length = self.headers.get("Content-Length", "0")
        if not length.isdecimal():
            raise Refusal(400, "INVALID_ARGUMENT", "Content-Length is not a number", "Content-Length")
        if int(length) > MAX_BODY:
            raise too_large
        body = self.rfile.read(int(length))
        self._unread = False
        return body

    def _write(self, status: int, raw: bytes, media: str) -> None:
        has_body = "Transfer-Encoding" in self.headers or self.headers.get("Content-Length", "0") != "0"
        self.close_connection = self.close_connection or (self._unread and has_body)
        self.send_response_only(status)
        for name, value in (("Content-Type", media), ("Content-Length", str(len(raw))), ("Cache-Control", "no-store")):
            self.send_header(name, value)
        if getattr(self, "_correlation", ""):
            self.send_header("X-Correlation-ID", self._correlation)
        if status == 503:
            self.send_header("Retry-After", "1")
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(raw)
        self.wfile.flush()
        if self.close_connection and self._unread and has_body:
            self._drain()

    def _drain(self) -> None:
        """_drain reads what was not read of a refused request, within bounds: a caller that still writes would
        otherwise not read the answer."""
        self.connection.settimeout(5)
        left = _DRAIN
        try:
            while left > 0 and (piece := self.connection.recv(64 << 10)):
                left -= len(piece)
        except OSError:
            pass
