"""Answers and refusals, word by word, from a server that says what it is told to say."""

import copy
import json
import pickle
import socket
import unittest
from decimal import Decimal

from stage import BOOK, FRESH, Canned, answer, eg, problem


def ask(canned, call, **options):
    """Asks a server that has one answer, and closes it."""
    server = Canned(*canned) if isinstance(canned, list) else Canned(canned)
    gw = eg.Gateway(server.url, options.pop("key", None), options.pop("timeout", 5.0))
    try:
        return call(gw), server
    finally:
        gw.close()
        server.close()


def book(gw):
    return gw.order_book("okx", "BTC/USDT", depth=2, max_age_ms=2000, require_live=True)


class Answers(unittest.TestCase):
    def test_a_book_keeps_every_digit(self):
        b, server = ask(answer(BOOK), book)
        self.assertEqual([str(n) for l in b.bids for n in l], ["64073.00", "0.58849577", "64072.9", "0.1"])
        self.assertEqual((b.mid, b.spread, b.nonce, b.timestamp.microsecond), (Decimal("64073.05"), Decimal("0.10"), 7, 118000))
        self.assertEqual(server.requests[0].split(" ")[1], "/v1/exchanges/okx/orderbook?symbol=BTC%2FUSDT&depth=2&max_age_ms=2000&require=live")

    def test_a_debt_is_where_something_is_owed(self):
        rows = {"BTC": {"free": "0", "used": "0", "total": "-0.250", "debt": "0.250"}, "USDT": {"free": "5", "used": "0", "total": "5"}}
        said = {"exchange": "okx", "account": "main", "account_type": "trading", "balances": rows, "timestamp": None,
                "requested_at": "2026-11-29T02:00:00.123Z", "received_at": "2026-11-29T02:00:00.243Z"}
        b, _ = ask(answer(said), lambda gw: gw.balance("okx"))
        self.assertEqual([str(b.balances["BTC"].debt), str(b.balances["BTC"].total), b.balances["USDT"].debt], ["0.250", "-0.250", None])

    def test_mid_is_exact_whatever_the_context_rounds_to(self):
        deep = dict(BOOK, bids=[["0.%s1" % ("0" * 40), "1"]], asks=[["123456789012345678901234567890", "1"]])
        b, _ = ask(answer(deep), book)
        self.assertEqual(str(b.mid), "61728394506172839450617283945.%s5" % ("0" * 41))

    def test_the_age_goes_on(self):
        b, _ = ask(answer(BOOK), book)
        first = b.freshness.age
        self.assertGreaterEqual(first, 0.042)
        self.assertGreater(b.freshness.age, first)
        self.assertTrue(b.freshness.older_than(0.042))
        self.assertFalse(b.freshness.older_than(3600))

    def test_the_key_is_sent_and_never_shown(self):
        _, server = ask(answer(BOOK), book, key="gw_example_secret")
        self.assertIn("\r\nAuthorization: Bearer gw_example_secret\r\n", server.requests[0])
        self.assertNotIn("secret", repr(eg.Gateway("http://127.0.0.1:1", "gw_example_secret")))
        with self.assertRaises(ValueError) as caught:
            eg.Gateway("http://127.0.0.1:1", "gw_example_secret\r\nX: y")
        self.assertNotIn("secret", str(caught.exception))

    def test_an_address_that_is_none_is_refused_at_once(self):
        for url in ("127.0.0.1:8080", "ftp://host", "http://", "http://user:word@host", "http://host?x=1"):
            with self.assertRaises(ValueError):
                eg.Gateway(url)

    def test_a_path_before_the_routes_is_kept(self):
        server = Canned(answer({"status": "ok"}))
        eg.Gateway(server.url + "/gateway/").live()
        server.close()
        self.assertTrue(server.requests[0].startswith("GET /gateway/livez HTTP/1.1\r\n"))

    def test_an_exchange_cannot_leave_its_place_in_the_path(self):
        _, server = ask(answer(BOOK), lambda gw: gw.order_book("okx/../../admin?x#y", "A/B"))
        self.assertIn("/v1/exchanges/okx%2F..%2F..%2Fadmin%3Fx%23y/orderbook?", server.requests[0])

    def test_what_is_not_as_documented_is_a_bad_answer(self):
        def but(**fields):
            return answer(dict(copy.deepcopy(BOOK), **fields))
        for wrong in (
            answer(b"\xff{}"), answer("{"), answer("[]"), answer("[" * 100_000), answer("NaN"), answer("{}"), answer("null"),
            but(bids=None), but(bids=[["1"]]), but(bids=[["1", 2]]), but(bids=[["NaN", "1"]]), but(bids=[["1e5", "1"]]), but(bids=[["1" * 600, "1"]]), but(bids=[["-1", "1"]]),
            but(nonce=10 ** 400), but(nonce=1 << 63), but(freshness=dict(FRESH, age_ms=10 ** 400)),
            but(bids=[["1_0", "1"]]), but(bids=[["\u0661", "1"]]), but(stale=False, freshness=dict(FRESH, age_ms=True)),
            but(freshness=dict(FRESH, confirmed_at="yesterday")), but(freshness=dict(FRESH, confirmed_at="2026-13-29T02:00:00Z")),
            but(timestamp=10 ** 40), but(complete="yes"), but(depth="2"),
        ):
            with self.subTest(wrong[-80:]), self.assertRaises(eg.BadAnswer) as caught:
                ask(wrong, book)
            self.assertFalse(caught.exception.retryable)
            self.assertLess(len(str(caught.exception)), 300)


class Refusals(unittest.TestCase):
    def refuse(self, canned, kind, **options):
        with self.assertRaises(kind) as caught:
            ask(canned, book, **options)
        self.assertIs(type(caught.exception), kind)
        return caught.exception

    def test_a_problem_is_an_error_of_its_code_and_of_ccxt(self):
        e = self.refuse(problem(
            503, "book_too_stale", ccxt_class="ExchangeNotAvailable", exchange="okx", retryable=True, retry_after_ms=3000, circuit="open",
            reason="timeout", age_ms=12345), eg.BookTooStale)
        self.assertEqual((e.code, e.status, e.ccxt_class, e.origin, e.exchange), ("book_too_stale", 503, "ExchangeNotAvailable", "gateway", "okx"))
        self.assertEqual((e.retryable, e.retry_after, e.circuit, e.reason, e.age, e.request_id), (True, 3.0, "open", "timeout", 12.345, "r-1"))
        for above in (eg.ExchangeNotAvailable, eg.NetworkError, eg.OperationFailed, eg.GatewayError, eg.BaseError):
            self.assertIsInstance(e, above)
        self.assertNotIsInstance(e, eg.ExchangeError)
        self.assertEqual(str(e), "[book_too_stale] okx: A detail. (retry after 3 s, request r-1)")

    def test_a_parameter_at_fault_is_named(self):
        e = self.refuse(problem(400, "unknown_parameter", parameter="dept", allowed=["symbol", "depth"]), eg.UnknownParameter)
        self.assertEqual((e.parameter, e.allowed, e.retryable, e.retry_after), ("dept", ["symbol", "depth"], False, None))

    def test_each_exchange_that_did_not_answer_says_why(self):
        row = {"exchange": "okx", "problem": {"code": "circuit_open", "detail": "No.", "retryable": True, "retry_after_ms": 2000}}
        e = self.refuse(problem(503, "price_unavailable", venues=[row, {"exchange": 1}, None]), eg.PriceUnavailable)
        self.assertEqual([(k, type(v), v.retry_after) for k, v in e.venues.items()], [("okx", eg.CircuitOpen, 2.0)])

    def test_a_code_that_nobody_knows_is_the_class_that_ccxt_has_for_it(self):
        e = self.refuse(problem(503, "lunar_eclipse", ccxt_class="OnMaintenance", retryable=True, retry_after_ms=1000), eg.UnknownOnMaintenance)
        self.assertIsInstance(e, eg.OnMaintenance)
        self.assertEqual((e.code, e.retry_after), ("lunar_eclipse", 1.0))
        self.refuse(problem(418, "lunar_eclipse", ccxt_class="Eclipse"), eg.UnknownExchangeError)
        self.refuse(problem(503, "lunar_eclipse", ccxt_class=None, retryable=True), eg.UnknownOperationFailed)

    def test_fields_of_a_wrong_type_lose_nothing_else(self):
        e = self.refuse(problem(503, "circuit_open", "Retry-After: 7", retryable=True, retry_after_ms="soon", detail=None, venues={}, allowed=[1]), eg.CircuitOpen)
        self.assertEqual((e.retry_after, e.detail, e.venues, e.allowed), (7.0, "Title", {}, []))

    def test_a_proxy_without_a_gateway_behind_it_is_worth_another_try(self):
        e = self.refuse(answer("<html>", "502 Bad Gateway", "text/html", "Retry-After: 5"), eg.GatewayUnreachable)
        self.assertEqual((e.status, e.retryable, e.retry_after, e.code), (502, True, 5.0, "gateway_unreachable"))
        self.refuse(answer("{", "503 Busy", "application/problem+json"), eg.GatewayUnreachable)

    def test_another_server_is_no_gateway(self):
        for other in (answer("<html>", "404 Not Found", "text/html"), answer("", "302 Found", "text/html", "Location: http://127.0.0.1:1/")):
            self.assertFalse(self.refuse(other, eg.BadAnswer).retryable)
        self.refuse(b"SSH-2.0-OpenSSH\r\n", eg.GatewayUnreachable)

    def test_an_answer_that_breaks_off_is_never_half_an_answer(self):
        whole = answer(BOOK)
        for cut in (0, 20, len(whole) - 1):
            self.assertTrue(self.refuse(whole[:cut], eg.GatewayUnreachable).retryable)
        chunked = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n{\"a\":"
        self.refuse(chunked, eg.GatewayUnreachable)

    def test_nobody_there(self):
        with socket.create_server(("127.0.0.1", 0)) as s:
            url = "http://127.0.0.1:%d" % s.getsockname()[1]
        with self.assertRaises(eg.GatewayUnreachable) as caught:
            eg.Gateway(url).live()
        self.assertTrue(caught.exception.retryable)
        self.assertIsInstance(caught.exception, eg.ExchangeNotAvailable)

    def test_the_timeout_bounds_the_whole_answer(self):
        slow = [b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n"] + [b" ", 0.1] * 40
        for late in ([5.0], slow):
            e = self.refuse([late], eg.GatewayTimeout, timeout=0.3)
            self.assertIsInstance(e, eg.RequestTimeout)
            self.assertTrue(e.retryable)

    def test_errors_survive_pickling(self):
        e = self.refuse(problem(503, "circuit_open", exchange="okx", retryable=True, retry_after_ms=3000), eg.CircuitOpen)
        again = pickle.loads(pickle.dumps(e))
        self.assertEqual((type(again), str(again), again.retry_after), (type(e), str(e), 3.0))


class Connections(unittest.TestCase):
    def test_a_connection_is_used_again_and_replaced_when_it_was_closed(self):
        body = json.dumps({"status": "ok"}).encode()
        kept = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body) + body
        server = Canned(kept)  # it says that the connection stays open, and closes it
        with eg.Gateway(server.url) as gw:
            for _ in range(3):
                gw.live()
        server.close()
        self.assertEqual((server.dialled, len(server.requests)), (3, 3))

    def test_a_request_that_was_read_is_not_sent_twice(self):
        server = Canned(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{")
        with eg.Gateway(server.url) as gw, self.assertRaises(eg.GatewayUnreachable):
            gw.balance("okx")
        server.close()
        self.assertEqual(len(server.requests), 1)


if __name__ == "__main__":
    unittest.main()
