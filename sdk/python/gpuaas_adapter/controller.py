"""The main of an adapter: flags, structured log, HTTP server, signals. An adapter's own main is then one call:

    sys.exit(main(name="my-adapter", manifest=manifest, make=make_app, build="1.0.0"))
"""

from __future__ import annotations

import argparse
import signal
import socket
import sys
import threading
from pathlib import Path
from typing import Callable, Sequence

from .app import App, Operation
from .engine import Engine
from .log import Log, new_log
from .routes import Routes
from .server import Server, Tls
from .sign import KeySet, Verifier

_STOP_SECONDS = 5


class Controller:
    """Controller is a running adapter: its engine and its server."""

    def __init__(self, *, name: str, build: str, apps: Sequence[App], state_dir: Path, issuer: str, jwks_url: str,
                 graphql_url: str, log: Log, listener: socket.socket, tls: Tls | None = None) -> None:
        for app in apps:
            app.complete()
        by_slug = {app.slug: app for app in apps}

        def find(slug: str, kind: str) -> Operation | None:
            return by_slug[slug].operations.get(kind) if slug in by_slug else None

        self.engine = Engine(state_dir / "journal", log, find)
        routes = Routes(self.engine, list(apps), name, build, graphql_url)
        self.server = Server(listener, routes, Verifier(issuer, name, KeySet(jwks_url)), log, tls)
        self._thread = threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.2}, daemon=True)

    @property
    def address(self) -> str:
        """address is where the adapter listens, as HOST:PORT."""
        host, port = self.server.server_address[:2]
        return f"[{host!s}]:{port}" if ":" in str(host) else f"{host!s}:{port}"

    def start(self) -> None:
        """start resumes the operations that had not ended, and serves."""
        self.engine.start()
        self._thread.start()

    def stop(self) -> None:
        """stop parks the runs, which the next start resumes, ends long polls, and closes the server."""
        self.engine.stop()
        self.server.shutdown()
        self._thread.join(_STOP_SECONDS)
        self.server.socket.close()


def main(*, name: str, manifest: bytes, make: Callable[[Path], App], build: str,
         argv: Sequence[str] | None = None) -> int:
    """main runs an adapter until SIGINT or SIGTERM and returns its exit code: 0 after a stop on request, 1 after a
    failure. make gets the app's own folder below --state-dir. build names the running build, such as a release: a
    report of the conformance suite is for one build."""
    flags = _flags(name).parse_args(argv)
    if flags.print_manifest:
        sys.stdout.buffer.write(manifest)
        return 0
    for needed in ("platform_url", "state_dir"):
        if not getattr(flags, needed):
            print(f"--{needed.replace('_', '-')} must be given", file=sys.stderr)
            return 2
    try:
        return _serve(flags, make, build)
    except (OSError, RuntimeError, ValueError) as error:
        print(error, file=sys.stderr)
        return 1


def _flags(name: str) -> argparse.ArgumentParser:
    flags = argparse.ArgumentParser(allow_abbrev=False)
    flags.add_argument("--listen", default="127.0.0.1:0", help="address to listen on (default %(default)s)")
    flags.add_argument("--name", default=name, help="the adapter's registered name (default %(default)s)")
    flags.add_argument("--platform-url", default="", help="the platform's URL")
    flags.add_argument("--jwks-url", default="",
                       help="the platform's key set (default platform-url/.well-known/jwks.json)")
    flags.add_argument("--issuer", default="", help="issuer of the platform's request tokens (default platform-url)")
    flags.add_argument("--state-dir", default="", help="directory of the journal; it must survive restarts")
    flags.add_argument("--log-level", default="info", help="debug, info, warn or error (default %(default)s)")
    flags.add_argument("--tls-cert", default="",
                       help="certificate chain to serve https with, PEM; read for every handshake")
    flags.add_argument("--tls-key", default="", help="private key of --tls-cert, PEM")
    flags.add_argument("--tls-client-ca", default="", help="CA of the platform's client certificate, PEM; callers "
                       "without a certificate of this CA are refused")
    flags.add_argument("--print-manifest", action="store_true", help="print the app manifest and exit")
    return flags


def _serve(flags: argparse.Namespace, make: Callable[[Path], App], build: str) -> int:
    platform, state = flags.platform_url.rstrip("/"), Path(flags.state_dir)
    log = new_log(flags.log_level, adapter=flags.name)
    own = state / "app"
    own.mkdir(mode=0o700, parents=True, exist_ok=True)
    controller = Controller(
        name=flags.name, build=build, apps=[make(own)], state_dir=state, issuer=flags.issuer or platform,
        jwks_url=flags.jwks_url or f"{platform}/.well-known/jwks.json", graphql_url=f"{platform}/graphql", log=log,
        listener=listen(flags.listen), tls=_tls(flags),
    )
    stop = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.set())
    controller.start()
    log.info("listening", address=controller.address, platform=platform, build=build)
    stop.wait()
    log.info("stopping")
    controller.stop()
    return 0


def _tls(flags: argparse.Namespace) -> Tls | None:
    if bool(flags.tls_cert) != bool(flags.tls_key):
        raise ValueError("--tls-cert and --tls-key go together")
    if flags.tls_client_ca and not flags.tls_cert:
        raise ValueError("--tls-client-ca needs --tls-cert")
    if not flags.tls_cert:
        return None
    return Tls(Path(flags.tls_cert), Path(flags.tls_key), Path(flags.tls_client_ca) if flags.tls_client_ca else None)


def listen(address: str) -> socket.socket:
    """listen binds HOST:PORT."""
    host, colon, port = address.rpartition(":")
    if not colon or not port.isdecimal() or int(port) > 65535:
        raise ValueError("--listen must be HOST:PORT")
    host = host.strip("[]")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, int(port)))
    except OSError as error:
        listener.close()
        raise OSError(f"--listen {address}: {error.strerror}") from error
    return listener
