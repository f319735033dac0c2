"""The address on which a server listens."""

import argparse
import os
import socket

__all__ = ["LOCAL_HOSTS", "check_address", "port_number"]

LOCAL_HOSTS = ("127.0.0.1", "localhost", "::1")
"""The names that this machine has for itself."""


def port_number(text: str) -> int:
    """The number of a port to listen on; 0 is any free one."""
    if not text.isdecimal() or int(text) > 65535:
        raise argparse.ArgumentTypeError(f"expected a port from 0 to 65535, got {text}")
    return int(text)


def check_address(host: str, port: int) -> None:
    """Raises an error if a server cannot listen there: before models are loaded, not after."""
    try:
        flags = socket.AI_PASSIVE
        addresses = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=flags)
        # An address of IPv4 if there is one: `localhost` may have one of IPv6 that does not work.
        family, _, _, _, address = min(addresses)
        with socket.socket(family, socket.SOCK_STREAM) as listener:
            if os.name == "posix":
                # As servers do: not in use is a port that only closed connections had.
                listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind(address)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise ValueError(f"cannot listen on {host}, port {port}: {reason}") from None
