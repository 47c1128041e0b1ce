"""The client against the gateway on simulated exchanges, in good times and in an outage."""

import itertools
import threading
import time
import unittest
from datetime import datetime, timezone
from decimal import Decimal

from stage import Demo, Relay, eg, until


class AgainstTheDemo(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.demo = Demo()
        cls.addClassCleanup(cls.demo.close)
        cls.gw = cls.demo.gateway()
        cls.addClassCleanup(cls.gw.close)


class GoodTimes(AgainstTheDemo):
    def test_every_route_answers_what_the_client_reads(self):
        gw = self.gw
        self.assertEqual([e.exchange for e in gw.exchanges().exchanges], ["binance", "coinbase", "okx"])
        b = gw.order_book("okx", "BTC/USDT", depth=3)
        self.assertEqual((len(b.bids), len(b.asks), b.stale, b.symbol), (3, 3, False, "BTC/USDT"))
        self.assertLess(b.bids[0].price, b.asks[0].price)
        t = gw.ticker("binance", "BTC/USDT")
        self.assertIsInstance(t.last, Decimal)
        self.assertEqual(t.mid, (t.bid + t.ask) / 2)
        several = gw.tickers("binance", ["BTC/USDT", "NO/SUCH"])
        self.assertEqual((list(several.tickers), list(several.problems)), (["BTC/USDT"], ["NO/SUCH"]))
        self.assertIn("BTC/USDT", [m.symbol for m in gw.markets("coinbase").markets])
        self.assertEqual(gw.status("okx").status, "ok")
        self.assertEqual(set(gw.order_books("BTC/USDT", depth=1).books), {"binance", "coinbase", "okx"})
        p = gw.price("BTC/USDT", ["okx", "binance"])
        self.assertEqual((p.exchange, p.fallback, p.passed), ("okx", False, {}))
        funds = gw.balance("okx").balances["BTC"]
        self.assertEqual(funds.total, funds.free + funds.used)
        self.assertEqual(gw.balance("okx", wallet="funding").account_type, "funding")
        self.assertIn("exchanges", gw.circuits())
        self.assertIn("/v1/price", gw.openapi()["paths"])
        self.assertIsInstance(gw.ready(), tuple)
        gw.live()
        self.assertEqual([kind for kind, _ in itertools.islice(gw.watch_circuits(), 2)], ["snapshot", "state"])

    def test_the_digits_are_those_of_the_exchange(self):
        for exchange, symbol in (("binance", "BTC/USDT"), ("okx", "BTC/USDT")):
            b = self.gw.order_book(exchange, symbol, depth=100)
            self.assertEqual((b.bids, b.asks), tuple(map(tuple, self.demo.truth(exchange, b))))

    def test_each_code_of_the_gateway_is_a_class_below_that_of_ccxt(self):
        for e in self.gw.errors():
            kind = eg._BY_CODE.get(e.code)
            self.assertIsNotNone(kind, e.code)
            self.assertEqual(eg._ccxt_name(kind), e.ccxt_class, e.code)

    def test_what_is_wrong_is_said_by_the_class(self):
        nobody, astray = eg.Gateway(self.demo.public), eg.Gateway(self.demo.public + "/no")
        self.addCleanup(nobody.close)
        self.addCleanup(astray.close)
        for kind, ask in {
            eg.SymbolUnknown: lambda: self.gw.order_book("okx", "NO/SUCH"), eg.ExchangeUnknown: lambda: self.gw.ticker("mtgox", "BTC/USDT"),
            eg.InvalidParameter: lambda: self.gw.order_book("okx", "BTC/USDT", depth=0),
            eg.AccountUnknown: lambda: self.gw.balance("okx", account="nobodys"),
            eg.Unauthenticated: lambda: nobody.balance("okx"), eg.NotFound: lambda: astray.live(),
        }.items():
            with self.subTest(kind), self.assertRaises(kind) as caught:
                ask()
            self.assertFalse(caught.exception.retryable)
            self.assertTrue(caught.exception.request_id)

    def test_a_client_over_its_quota_is_told_for_how_long(self):
        with self.assertRaises(eg.ClientRateLimited) as caught:
            for _ in range(2000):  # 100 a second by default
                self.gw.live()
                self.gw.exchanges()
        self.assertIsInstance(caught.exception, eg.RateLimitExceeded)
        self.assertGreaterEqual(caught.exception.retry_after, 1)
        time.sleep(caught.exception.retry_after)
        self.gw.exchanges()

    def test_many_threads_may_share_a_gateway(self):
        failures = []
        gw = eg.Gateway(self.demo.public)  # without a key there is no quota
        self.addCleanup(gw.close)

        def ask():
            try:
                for _ in range(20):
                    gw.order_book("okx", "BTC/USDT", depth=1)
            except eg.GatewayError as err:
                failures.append(err)
        threads = [threading.Thread(target=ask) for _ in range(12)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        self.assertEqual(failures, [])
        self.assertLessEqual(len(gw._door._idle), eg._MAX_IDLE)


class Outage(AgainstTheDemo):
    def test_an_exchange_that_is_closed(self):
        books = self.gw.watch_order_book("okx", "BTC/USDT", 5, every=0.2)
        self.addCleanup(books.close)
        until("the stream is live", lambda: not next(books).stale)
        self.demo.fault("okx", kind="maintenance", **{"for": "60s"})
        self.addCleanup(self.demo.heal, "okx")

        streamed = until("the stream says so", lambda: stale(next(books)))
        self.assertTrue(streamed.bids and streamed.freshness.reason)
        age = streamed.freshness.age
        self.assertGreater(next(books).freshness.age, age)  # nobody vouches for it, so it grows

        book = until("an old book", lambda: stale(self.gw.order_book("okx", "BTC/USDT", 5)))
        self.assertTrue(book.bids)
        self.assertIn(book.freshness.reason, ("maintenance", "circuit_open"))
        self.assertIsNotNone(book.freshness.confirmed_at)
        time.sleep(0.2)
        self.assertGreater(self.gw.order_book("okx", "BTC/USDT", 5).freshness.age, 0.2)
        with self.assertRaises(eg.BookTooStale) as caught:
            self.gw.order_book("okx", "BTC/USDT", 5, max_age_ms=100)
        self.assertIsInstance(caught.exception, eg.ExchangeNotAvailable)
        self.assertGreater(caught.exception.age, 0.1)
        with self.assertRaises(eg.NotLive):
            self.gw.order_book("okx", "BTC/USDT", 5, require_live=True)

        with self.assertRaises((eg.ExchangeMaintenance, eg.CircuitOpen)) as caught:
            self.gw.balance("okx")
        self.assertGreaterEqual(caught.exception.retry_after, 1)
        self.assertIsInstance(until("its circuit opens", lambda: refused(self.gw, eg.CircuitOpen)), eg.CircuitOpen)

        p = self.gw.price("BTC/USDT", ["okx", "binance"])
        self.assertEqual((p.exchange, p.fallback, list(p.passed)), ("binance", True, ["okx"]))
        self.assertIsInstance(p.passed["okx"], eg.GatewayError)

        self.demo.heal("okx")
        self.assertEqual(until("the stream recovers", lambda: live(next(books))).freshness.reason, None)

    def test_an_exchange_that_hangs_gives_no_balance(self):
        self.demo.fault("coinbase", kind="hang", **{"class": "account", "for": "60s"})
        self.addCleanup(self.demo.heal, "coinbase")
        with self.assertRaises((eg.UpstreamTimeout, eg.CircuitOpen)) as caught:
            self.gw.balance("coinbase")
        self.assertGreaterEqual(caught.exception.retry_after, 1)
        self.assertIsInstance(caught.exception, eg.NetworkError)

    def test_a_gateway_that_hangs_is_found_out(self):
        relay = Relay(self.demo.public)
        self.addCleanup(relay.close)
        gw = eg.Gateway(relay.url, self.demo.key, timeout=2.0)
        self.addCleanup(gw.close)
        gw.live()
        relay.flow.clear()
        with self.assertRaises(eg.GatewayTimeout):
            gw.live()
        relay.flow.set()
        gw.live()


class Dropped(AgainstTheDemo):
    DROPS = 20

    def test_a_book_is_the_exchanges_after_each_drop(self):
        """Every version that is called live is compared, whole, with the exchange's book of the same sequence."""
        relay = Relay(self.demo.public)
        self.addCleanup(relay.close)
        gw = eg.Gateway(relay.url)
        for exchange, depth in (("okx", 5), ("binance", 50)):
            books = gw.watch_order_book(exchange, "BTC/USDT", depth, silence=5.0)
            self.addCleanup(books.close)
            compared = differences = 0
            for drop in range(self.DROPS // 2):
                dialled = relay.dialled
                relay.cut()  # before the first of them nobody is connected
                if drop % 3 == 2:
                    relay.flow.clear()  # it also takes a while until the next connection gives anything
                    threading.Timer(0.3, relay.flow.set).start()
                if drop:
                    until("the loss is told, or over", lambda: stale(next(books)) or relay.dialled > dialled)
                for _ in range(3):
                    b = until("a live book", lambda: live(next(books)))
                    compared += 1
                    differences += self.demo.truth(exchange, b) != (list(b.bids), list(b.asks))
            self.assertEqual((compared, differences), (3 * self.DROPS // 2, 0))
        self.assertGreaterEqual(relay.dialled, self.DROPS)


class SlowLoop(unittest.TestCase):
    TURNS = 20

    def test_it_gets_the_newest_book_until_the_gateway_is_killed(self):
        demo = Demo(own=True)
        self.addCleanup(demo.close)
        gw = eg.Gateway(demo.public)
        books = gw.watch_order_book("binance", "BTC/USDT", 50)
        self.addCleanup(books.close)
        until("the stream is live", lambda: not next(books).stale)
        compared = missed = 0
        for _ in range(self.TURNS):
            time.sleep(0.3)
            b = next(books)
            self.assert_true_age(b)
            missed += b.missed
            if live(b):
                compared += 1
                self.assertLess(b.freshness.age, 2)  # the book changes each 100 ms or so
                self.assertEqual(demo.truth("binance", b), (list(b.bids), list(b.asks)))
        self.assertGreaterEqual(compared, self.TURNS // 2)
        self.assertGreaterEqual(missed, self.TURNS // 2)
        demo.kill()
        time.sleep(0.5)
        b = next(books)
        self.assertEqual((b.stale, b.freshness.reason), (True, "disconnected"))
        self.assertGreater(b.freshness.age, 0.4)
        self.assert_true_age(b)

    def assert_true_age(self, b):
        """The demo has the clock of this machine."""
        age = b.freshness.age
        self.assertAlmostEqual((datetime.now(timezone.utc) - b.freshness.confirmed_at).total_seconds(), age, delta=1)


def stale(b):
    return b if b.stale else None


def live(b):
    return None if b.stale else b


def refused(gw, kind):
    try:
        gw.balance("okx")
    except kind as err:
        return err
    except eg.GatewayError:
        return None
    return None


if __name__ == "__main__":
    unittest.main()
