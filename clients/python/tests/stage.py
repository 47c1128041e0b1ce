"""What the tests play against: the demo, a relay that can be cut, and a server that says what it is told to say."""

import json
import os
import pathlib
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import urllib.parse
import urllib.request
from unittest import mock

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "clients" / "python"))

import exchange_gateway as eg  # noqa: E402

PATIENCE = 30  # seconds, on a loaded machine


class Demo:
    """The gateway on simulated exchanges: that of GATEWAY_DEMO, a ready file, or one of its own."""

    def __init__(self, own=False):
        self._dir = self._process = None
        path = os.environ.get("GATEWAY_DEMO")
        if own or not path:
            self._dir = tempfile.mkdtemp(prefix="exchange-gateway-python-")
            path = os.path.join(self._dir, "ready.json")
            free = "127.0.0.1:0"
            self._process = subprocess.Popen(
                [str(ROOT / "bin" / "gateway"), "demo", "--listen", free, "--admin-listen", free, "--control", free, "--every", "24h", "--ready-file", path],
                stdout=subprocess.DEVNULL,
            )
            until("the demo listens", lambda: os.path.exists(path) or self._alive())
        with open(path, encoding="utf-8") as f:
            self.__dict__.update(json.load(f))

    def _alive(self):
        if self._process.poll() is not None:
            raise RuntimeError("the demo ended by itself")

    def gateway(self, **options):
        return eg.Gateway(self.public, self.key, **options)

    def fault(self, exchange, **what):
        return self._tell("POST", "/v1/faults/" + exchange, what)

    def heal(self, exchange):
        """Ends the faults and waits until the exchange is asked again. A circuit stays open for some seconds, and closes only when
        somebody asks: for a balance, and for a book that no stream has."""
        self._tell("DELETE", "/v1/faults/" + exchange)
        gw = self.gateway()
        symbol = "BTC/USD" if exchange == "coinbase" else "BTC/USDT"

        def well():
            try:
                gw.balance(exchange)
                gw.order_book(exchange, "ETH/USDT", 1, max_age_ms=0)
                circuits = {c["class"]: c["state"] for c in gw.status(exchange).document["circuits"]}
                closed = all(circuits[c] == "closed" for c in ("market_data", "account", "stream"))
                return closed and not gw.order_book(exchange, symbol, 5).stale
            except eg.GatewayError:
                return False
        until(exchange + " is well", well)
        gw.close()

    def truth(self, exchange, book):
        """The exchange's own book of that sequence, as many levels as the book may have."""
        query = urllib.parse.urlencode({"symbol": book.exchange_symbol, "seq": book.nonce, "depth": book.depth})
        b = self._tell("GET", "/v1/book/%s?%s" % (exchange, query))
        return tuple([eg.Level(eg.Decimal(l["price"]), eg.Decimal(l["size"])) for l in b[side] or []] for side in ("bids", "asks"))

    def _tell(self, method, path, body=None):
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.control + path, data, {"Content-Type": "application/json"}, method=method)
        with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
            return json.load(answer)

    def kill(self):
        """Ends one of its own as an accident does."""
        self._process.kill()
        self._process.wait(PATIENCE)

    def close(self):
        if self._process:
            self._process.terminate()
            self._process.wait(PATIENCE)
            shutil.rmtree(self._dir, ignore_errors=True)


def until(what, ok):
    """Waits for ok() to be true and returns what it gave."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        got = ok()
        if got:
            return got
        time.sleep(0.05)
    raise AssertionError("%s: not within %d s" % (what, PATIENCE))


def readers():
    """The threads that read a stream."""
    return [t for t in threading.enumerate() if t.name == "exchange-gateway-stream"]


class Listener:
    """A TCP server on a free port, each connection in a thread of its own, all of them ended by close."""

    def __init__(self):
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = "http://127.0.0.1:%d" % self._listener.getsockname()[1]
        self._lock = threading.Lock()
        self._open = []
        self._threads = []
        self.dialled = 0
        self._start(self._accept)

    def _start(self, run, *args):
        t = threading.Thread(target=run, args=args, daemon=True)
        self._threads.append(t)
        t.start()

    def _accept(self):
        while True:
            try:
                conn, _ = self._listener.accept()
            except OSError:
                return
            with self._lock:
                self.dialled += 1
                self._open.append(conn)
            self._start(self._serve, conn, self.dialled)

    def _serve(self, conn, number):
        try:
            self.serve(conn, number)
        except OSError:
            pass  # it was cut, or the client left
        finally:
            conn.close()

    def serve(self, conn, number):
        raise NotImplementedError

    def cut(self):
        """Ends every connection that is open; the next may come."""
        with self._lock:
            cut, self._open = self._open, []
        for c in cut:
            try:
                c.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass  # it has ended already

    def close(self):
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self.cut()
        for t in list(self._threads):
            t.join(PATIENCE)


class Relay(Listener):
    """Passes bytes on to the gateway, until it is cut or told to hold them back."""

    def __init__(self, target):
        u = urllib.parse.urlsplit(target)
        self._to = (u.hostname, u.port)
        self.flow = threading.Event()
        self.flow.set()
        super().__init__()

    def serve(self, conn, number):
        with socket.create_connection(self._to) as up:
            with self._lock:
                self._open.append(up)
            self._start(self._pump, conn, up)
            self._pump(up, conn)

    def _pump(self, source, sink):
        try:
            while True:
                part = source.recv(1 << 16)
                if not part:
                    break
                self.flow.wait(PATIENCE)
                sink.sendall(part)
        except OSError:
            pass
        finally:
            for s in (source, sink):
                try:
                    s.shutdown(socket.SHUT_RDWR)
                except OSError:
                    pass


CUT = "the end of a connection"


class Canned(Listener):
    """Answers each connection with the next of some answers, and keeps what was asked. The last answer is for all further ones.

    An answer is bytes; or a list of bytes and of seconds to wait; or a tuple of bytes each of which waits for its turn, as does CUT,
    without which the connection stays."""

    def __init__(self, *answers):
        self._answers = answers
        self.requests = []
        self._over = threading.Event()
        self._turns = threading.Semaphore(0)
        super().__init__()

    def turn(self):
        """Lets what comes next of a tuple go."""
        self._turns.release()

    def serve(self, conn, number):
        head = b""
        while b"\r\n\r\n" not in head:
            part = conn.recv(4096)
            if not part:
                return
            head += part
        self.requests.append(head.decode("latin-1"))
        answer = self._answers[min(number, len(self._answers)) - 1]
        for part in [answer] if isinstance(answer, bytes) else answer:
            if isinstance(answer, tuple):
                self._turns.acquire()
                if part is CUT or self._over.is_set():
                    return
            if isinstance(part, float):
                self._over.wait(part)
            else:
                conn.sendall(part)
        if isinstance(answer, tuple):
            conn.recv(1)  # until the client leaves, or the server is closed

    def close(self):
        self._over.set()
        for _ in range(self.dialled + 1):
            self._turns.release()
        super().close()


def answer(body, status="200 OK", content_type="application/json", *more):
    """A whole answer of HTTP."""
    if not isinstance(body, bytes):
        body = (body if isinstance(body, str) else json.dumps(body)).encode()
    head = ["HTTP/1.1 " + status, "Content-Type: " + content_type, "Content-Length: %d" % len(body), "Connection: close", *more]
    return "\r\n".join(head + ["", ""]).encode() + body


def problem(status, code, *more, **fields):
    """A problem document as the gateway writes it."""
    p = {"type": "/v1/errors#" + code, "title": "Title", "status": status, "detail": "A detail.", "code": code, "origin": "gateway",
         "ccxt_class": "ExchangeError", "exchange": None, "retryable": False, "retry_after_ms": None, "circuit": None, "request_id": "r-1"}
    p.update(fields)
    return answer(p, "%d Status" % status, "application/problem+json", *more)


FRESH = {"status": "live", "source": "rest", "age_ms": 42, "confirmed_at": "2026-11-29T02:00:00.123Z", "changed_at": None,
         "reason": None, "circuit": "closed", "exchange_lag_ms": None}
BOOK = {"exchange": "okx", "symbol": "BTC/USDT", "exchange_symbol": "BTC-USDT", "stale": False, "freshness": FRESH, "depth": 2,
        "complete": True, "timestamp": 1795917600118, "datetime": "2026-11-29T02:00:00.118Z", "nonce": 7,
        "bids": [["64073.00", "0.58849577"], ["64072.9", "0.1"]], "asks": [["64073.10", "1.07909367"]]}

STREAM = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\nretry: 1000\n\n"


def event(kind, id=None, **fields):
    """One event of a stream, with what is always there."""
    d = {"type": kind, "channel": "orderbook", "exchange": "okx", "symbol": "BTC/USDT", "exchange_symbol": "BTC-USDT", "depth": 5,
         "epoch": "e.1", "status": "live", "confirmed_at": "2026-11-29T02:00:00.1Z", "sent_at": "2026-11-29T02:00:00.35Z"}
    if kind in ("snapshot", "update"):
        d.update(seq=1, prev_seq=None, complete=True, exchange_seq=70, exchange_time=None, changed_at=None, conflated=0, bids=[], asks=[])
    else:
        d.update(reason=None, since=None)
    d.update(fields)
    name = "id: %s\n" % id if id else ""
    return ("%sevent: %s\ndata: %s\n\n" % (name, kind, json.dumps(d, separators=(",", ":")))).encode()


SNAPSHOT = event("snapshot", "e.1-1", bids=[["10.0", "1"], ["9.5", "2"]], asks=[["10.5", "3"]])


def levels(side):
    return [(str(l.price), str(l.size)) for l in side]


def state(b):
    return b.freshness.status, b.freshness.reason


class Watching(unittest.TestCase):
    """What is watched from a server that says what it is told to say."""

    def setUp(self):
        jitter = mock.patch.object(eg.random, "uniform", lambda low, high: low)  # 50 ms
        jitter.start()
        self.addCleanup(jitter.stop)

    def watch(self, *answers, depth=5, **options):
        """A server that gives one connection after the other these bytes, and the client's books."""
        self.server = Canned(*answers)
        self.addCleanup(self.server.close)
        gw = eg.Gateway(self.server.url, "gw_example", 5.0)
        books = gw.watch_order_book("okx", "BTC/USDT", depth, **options)
        self.addCleanup(books.close)
        return books

    def take(self, books):
        """What the next bytes of the server make of the book."""
        self.server.turn()
        return next(books)
