"""Posts lines of JSON to the agent, on a kept connection to its Unix socket or loopback port.

It speaks just enough HTTP/1.1 for that: `http.client` would cost a job several times as much.
"""

import socket

DEFAULT_PLACE = "http://127.0.0.1:8081"
TIMEOUT_SECONDS = 1.0
MOST_HEAD_BYTES = 16384
MOST_BODY_BYTES = 65536


def place(text):
    """Where to post, as (family, address, name of the host); `None` where `text` is no such place, or
    one on another machine."""
    text = text or DEFAULT_PLACE
    if text.startswith("unix:"):
        path = text[len("unix:"):]
        path = path[2:] if path.startswith("//") else path
        return (socket.AF_UNIX, path, "localhost") if path.startswith("/") else None
    if text.startswith("http://"):
        text = text[len("http://"):]
    host, colon, port = text.split("/")[0].rpartition(":")
    if not colon or not port.isdigit() or not 0 < int(port) < 65536:
        return None
    if host in ("[::1]", "::1"):
        return socket.AF_INET6, ("::1", int(port)), "[::1]:" + port
    if host == "localhost" or host.startswith("127."):
        address = "127.0.0.1" if host == "localhost" else host
        return socket.AF_INET, (address, int(port)), host + ":" + port
    return None


class Connection:
    """A connection that is made when it is needed, and reopened after an error."""

    def __init__(self, where):
        self._where = where
        self._socket = None

    def post(self, body):
        """Posts `body`, which is bytes, and gives the status of the answer. Raises `OSError` where
        there is none."""
        try:
            if self._socket is None:
                self._connect()
            head = (
                "POST /log_ccl HTTP/1.1\r\nHost: %s\r\nContent-Type: application/x-ndjson\r\n"
                "Content-Length: %d\r\n\r\n" % (self._where[2], len(body))
            )
            self._socket.sendall(head.encode("ascii") + body)
            return self._answer()
        except (OSError, ValueError) as error:
            self.close()
            if isinstance(error, OSError):
                raise
            raise OSError("the answer is no HTTP") from error

    def close(self):
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def _connect(self):
        family, address, _ = self._where
        made = socket.socket(family, socket.SOCK_STREAM)
        try:
            made.settimeout(TIMEOUT_SECONDS)
            made.connect(address)
        except OSError:
            made.close()
            raise
        self._socket = made

    def _answer(self):
        received = b""
        while b"\r\n\r\n" not in received:
            received += self._some()
            if len(received) > MOST_HEAD_BYTES:
                raise OSError("the head of the answer is too long")
        head, _, rest = received.partition(b"\r\n\r\n")
        status, _, lines = head.decode("latin-1").partition("\r\n")
        length, is_last = 0, False
        for line in lines.split("\r\n"):
            name, _, value = line.partition(":")
            if name.strip().lower() == "content-length":
                length = int(value)
            elif name.strip().lower() == "connection":
                is_last = "close" in value.lower()
        if not 0 <= length <= MOST_BODY_BYTES:
            raise OSError("the answer is too long")
        while len(rest) < length:
            rest += self._some()
        if is_last:
            self.close()
        return int(status.split(" ")[1])

    def _some(self):
        piece = self._socket.recv(4096)
        if not piece:
            raise OSError("the agent closed the connection")
        return piece
