"""Addresses to listen on: a socket is bound before the application starts, so that a port in use is a clear error."""

from __future__ import annotations

import ipaddress
import socket

from sparcets.core.errors import ConfigError

LOOPBACK = ("127.0.0.1", "localhost", "::1")


def is_loopback(host: str) -> bool:
    """Return whether an address can be reached from this machine only.

    >>> is_loopback("localhost"), is_loopback("127.0.0.2"), is_loopback("0.0.0.0")
    (True, True, False)
    """
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def accepted_hosts(host: str) -> tuple[str, ...] | None:
    """Return the host names that requests may name if this address is listened on; None for any."""
    return (*LOOPBACK, host) if is_loopback(host) else None


def bind(host: str, port: int) -> socket.socket:
    """Return a listening socket; port 0 selects a free port."""
    opened = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_STREAM)
    opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        opened.bind((host, port))
        opened.listen()  # requests sent while the app is loading wait instead of being refused
    except OSError as error:
        opened.close()
        raise ConfigError(
            f"cannot listen on {host}, port {port}: {error.strerror or error}. Choose another with --port or --host."
        ) from error
    return opened


def address_of(opened: socket.socket, host: str) -> str:
    """Return the address that a socket can be reached at."""
    return f"http://{f'[{host}]' if ':' in host else host}:{opened.getsockname()[1]}"
