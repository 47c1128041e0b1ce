"""The client in ccxt's words: what a bot that was written for ccxt calls, reads and catches."""

import os
import subprocess
import sys
import tempfile
import time
import unittest
from unittest import mock

from stage import FRESH, ROOT, Canned, Demo, answer, eg, problem, until

import exchange_gateway as ccxt  # the one line that changes

BOOK = {"symbol": "BTC/USDT", "bids": [], "asks": [], "timestamp": 1795917600118, "datetime": "2026-11-29T02:00:00.118Z", "nonce": 7,
        "info": {"exchange": "okx", "stale": False, "freshness": FRESH}}


def canned(test, *answers):
    server = Canned(*answers)
    test.addCleanup(server.close)
    return server, ccxt.okx({"gateway": server.url, "enableRateLimit": False})


class Shapes(unittest.TestCase):
    def test_a_book_is_floats_whatever_json_wrote(self):
        text = answer(BOOK).replace(b'"bids": []', b'"bids": [[64073.10,1],[64073,0.58849577]]'.replace(b" ", b""))
        text = text.replace(b"Content-Length", b"X-Was")  # which the replacement made wrong; the end of the connection is its end
        server, okx = canned(self, text)
        b = okx.fetch_order_book("BTC/USDT", 2)
        self.assertEqual(b["bids"], [[64073.1, 1.0], [64073.0, 0.58849577]])
        self.assertTrue(all(type(n) is float for level in b["bids"] for n in level))
        self.assertEqual(server.requests[0].split(" ")[1], "/v1/exchanges/okx/orderbook?symbol=BTC%2FUSDT&depth=2&format=ccxt")

    def test_a_greater_age_is_asked_for_by_option_or_param(self):
        server, okx = canned(self, answer(BOOK))
        okx.fetch_order_book("BTC/USDT", params={"accept_stale": 60000})
        okx.options["accept_stale"] = 7000
        okx.fetch_order_book("BTC/USDT")
        okx.fetch_order_book("BTC/USDT", None, {"accept_stale": 0})
        self.assertEqual([r.split(" ")[1].partition("accept_stale=")[2] for r in server.requests], ["60000&format=ccxt", "7000&format=ccxt", "0&format=ccxt"])

    def test_a_param_that_nobody_knows_is_refused_not_ignored(self):
        server, okx = canned(self, answer(BOOK))
        for call in (lambda: okx.fetch_order_book("BTC/USDT", 5, {"acceptStale": 1}), lambda: okx.fetch_balance({"acount": "x"}),
                     lambda: okx.fetch_markets({"type": "swap"}), lambda: okx.fetch_ticker("BTC/USDT", {"accept_stale": "long"})):
            self.assertRaises(ccxt.BadRequest, call)
        self.assertEqual(server.dialled, 0)

    def test_what_is_no_book_is_a_bad_response(self):
        for wrong in ({"bids": [["1", "2"]]}, {"bids": None}, {"asks": [[True, 1]]}, {"asks": [1]}):
            _, okx = canned(self, answer(dict(BOOK, **wrong)))
            with self.subTest(wrong), self.assertRaises(ccxt.BadResponse):
                okx.fetch_order_book("BTC/USDT")

    def test_orders_are_placed_elsewhere(self):
        okx = ccxt.okx()
        for name in ("create_order", "createOrder", "cancel_order", "cancel_all_orders", "fetch_open_orders", "fetchOHLCV", "fetch_time",
                     "watch_order_book", "withdraw_all", "set_leverage", "edit_order"):
            with self.subTest(name), self.assertRaises(ccxt.NotSupported) as caught:
                getattr(okx, name)("BTC/USDT", "limit", "buy", 1, 1)
            self.assertIn(name, str(caught.exception))
        self.assertFalse(okx.has["createOrder"] or okx.has["somethingNew"])
        self.assertTrue(okx.has["fetchOrderBook"])
        with self.assertRaises(AttributeError):
            okx.no_such_thing  # noqa: B018

    def test_every_other_method_of_ccxts_is_refused_in_a_sentence(self):
        okx = ccxt.okx()
        for name in ("load_trading_limits", "load_time_difference", "calculate_fee", "fee_to_precision", "currency_to_precision",
                     "decimal_to_precision", "safe_string", "parse_order", "build_ohlcvc", "set_sandbox_mode", "enable_demo_trading", "deposit",
                     "withdraw", "transfer", "nonce", "sign", "market_ids", "public_get_ticker", "privatePostOrder", "sapi_get_system_status",
                     "fapiPublicGetTime", "fapiPrivateV2GetAccount", "v3_private_get_brokerage_accounts", "check_required_credentials",
                     "currency", "request", "fetch2", "redeem_gift_code", "convert_to_spot", "is_tick_precision"):
            with self.subTest(name), self.assertRaises(ccxt.NotSupported) as caught:
                getattr(okx, name)("BTC/USDT")
            self.assertIn(name, str(caught.exception))
        for name in ("_fetch_order", "__len__", "__deepcopy__", "_set_leverage", "apikey"):
            self.assertFalse(hasattr(okx, name), name)
        self.assertEqual(okx.timeframes, {})

    def test_numbers_as_the_exchange_takes_them(self):
        okx = ccxt.okx()
        self.assertRaises(ccxt.ExchangeError, okx.price_to_precision, "BTC/USDT", 1)  # no markets yet, as in ccxt
        def market(tick, lot):
            return {"id": "X", "precision": {"price": tick, "amount": lot}}
        okx.markets = {"BTC/USDT": market(0.01, 1e-05), "HALF/USD": market(0.5, 0.25), "PEPE/USDT": market(1e-10, 100.0), "NO/STEP": market(None, None)}
        price, amount, cost = okx.price_to_precision, okx.amount_to_precision, okx.costToPrecision
        for got, want in (
            (price("BTC/USDT", 64073.105), "64073.11"), (price("BTC/USDT", "64073.104999999999999999"), "64073.1"), (price("BTC/USDT", 64073), "64073"),
            (price("BTC/USDT", 0.005), "0.01"), (price("HALF/USD", 1.25), "1.5"), (price("HALF/USD", 1.2), "1"), (price("PEPE/USDT", 7.12345e-06), "0.0000071235"),
            (price("BTC/USDT", 1e21), "1" + "0" * 21), (price("BTC/USDT", ccxt.Decimal("100.00")), "100"), (price("HALF/USD", -1.25), "-1.5"),
            (amount("BTC/USDT", 0.000019), "0.00001"), (amount("BTC/USDT", 0.3), "0.3"), (amount("HALF/USD", "0.99"), "0.75"), (amount("PEPE/USDT", 1299.9), "1200"),
            (cost("BTC/USDT", 10.999), "10.99"), (cost("BTC/USDT", 0.001), "0"), (cost("BTC/USDT", -0.001), "0"), (okx.market_id("BTC/USDT"), "X"),
        ):
            self.assertEqual(got, want)
        for wrong in (lambda: price("BTC/USDT", 0.004), lambda: amount("BTC/USDT", 0.000009), lambda: amount("PEPE/USDT", 99.9)):
            self.assertRaises(ccxt.InvalidOrder, wrong)
        for wrong in (None, True, "1e", float("nan"), float("inf"), [1], "1e999999"):
            with self.subTest(wrong):
                self.assertRaises(ccxt.BadRequest, price, "BTC/USDT", wrong)
        self.assertRaises(ccxt.NotSupported, price, "NO/STEP", 1)
        self.assertRaises(ccxt.BadSymbol, amount, "NO/SUCH", 1)

    def test_an_option_that_is_nearly_ours_is_refused(self):
        server, okx = canned(self, answer(BOOK))
        for wrong in ("acceptStale", "accept-stale", "stale", "max_age_ms", "maxAge"):
            okx.options = {"defaultType": "spot", wrong: 60000}
            with self.subTest(wrong), self.assertRaises(ccxt.BadRequest) as caught:
                okx.fetch_ticker("BTC/USDT")
            self.assertIn("accept_stale", str(caught.exception))
        for wrong in ("gateway_key", "gatewaykey", "gatewayURL", "accept_stale", "maxAge"):
            with self.subTest(wrong), self.assertRaises(ccxt.BadRequest) as caught:
                ccxt.okx({wrong: "gw_example_not-a-key"})
            self.assertNotIn("gw_example", str(caught.exception))
        self.assertEqual(server.dialled, 0)

    def test_keywords_are_pythons_own(self):
        gw = ccxt.Gateway("http://127.0.0.1:9")
        for call in (lambda: gw.order_book("okx", "BTC/USDT", maxAge=1), lambda: gw.price("BTC/USDT", maxAgeMs=1), lambda: gw.watch_circuits(silenceMs=1),
                     lambda: gw.watch_order_book("okx", "BTC/USDT", everyMs=1), lambda: ccxt.Gateway("http://127.0.0.1:9", apikey="x")):
            self.assertRaises(TypeError, call)

    def test_ccxts_configuration_is_taken_and_credentials_are_dropped(self):
        okx = ccxt.okx({"apiKey": "theirs", "secret": "theirs-secret", "password": "p", "timeout": 2500, "enableRateLimit": True, "options": {"defaultType": "spot"}})
        self.assertEqual((okx.id, okx.name, okx.timeout, okx.options["defaultType"], okx.gateway._door.timeout), ("okx", "OKX", 2500, "spot", 2.5))
        self.assertNotIn("theirs", repr(vars(okx)) + repr(vars(okx.gateway._door)))
        with mock.patch.dict(os.environ, {"GATEWAY_URL": "http://127.0.0.1:9", "GATEWAY_KEY": "gw_example_key"}):
            self.assertEqual(repr(ccxt.binance()), "binance(Gateway('127.0.0.1:9'))")
            self.assertEqual(ccxt.binance().gateway._door.headers["Authorization"], "Bearer gw_example_key")
            other = ccxt.coinbase({"gateway": "http://127.0.0.1:8", "gatewayKey": "gw_other"})
            self.assertEqual((other.gateway._door.headers["Authorization"], other.gateway._door.port), ("Bearer gw_other", 8))

    def test_requests_keep_their_distance(self):
        server = Canned(answer(BOOK))
        self.addCleanup(server.close)
        okx = ccxt.okx({"gateway": server.url, "rateLimit": 100})
        began = time.monotonic()
        for _ in range(4):
            okx.fetch_order_book("BTC/USDT")
        self.assertGreaterEqual(time.monotonic() - began, 0.3)

    def test_time_as_ccxt_writes_it(self):
        okx = ccxt.okx
        self.assertEqual(okx.iso8601(1795917600118), "2026-11-29T02:00:00.118Z")
        self.assertEqual(okx.parse8601("2026-11-29T02:00:00.118Z"), 1795917600118)
        self.assertEqual([okx.iso8601(t) for t in (None, -1, "x", 10 ** 30)], [None] * 4)
        self.assertEqual([okx.parse8601(t) for t in (None, "yesterday", 7)], [None] * 3)
        self.assertAlmostEqual(okx.milliseconds() / 1000, time.time(), delta=5)

    def test_tickers_need_symbols(self):
        self.assertRaises(ccxt.ArgumentsRequired, ccxt.okx().fetch_tickers)
        self.assertRaises(ccxt.ExchangeError, ccxt.okx().market, "BTC/USDT")

    def test_errors_are_ccxts(self):
        _, okx = canned(self, problem(503, "exchange_maintenance", ccxt_class="OnMaintenance", retryable=True, retry_after_ms=3000))
        with self.assertRaises(ccxt.OnMaintenance) as caught:
            okx.fetch_balance()
        self.assertIsInstance(caught.exception, ccxt.ExchangeNotAvailable)
        self.assertEqual(caught.exception.retry_after, 3)


class BesideCCXT(unittest.TestCase):
    """Where ccxt itself is installed."""

    def run_with(self, errors, program):
        with tempfile.TemporaryDirectory() as d:
            os.makedirs(os.path.join(d, "ccxt", "base"))
            for path in ("ccxt/__init__.py", "ccxt/base/__init__.py"):
                open(os.path.join(d, path), "w").close()
            with open(os.path.join(d, "ccxt", "base", "errors.py"), "w") as f:
                f.write(errors)
            env = dict(os.environ, PYTHONPATH=os.pathsep.join([d, str(ROOT / "clients" / "python")]))
            subprocess.run([sys.executable, "-c", program], env=env, check=True, timeout=60)

    def test_its_classes_are_ours(self):
        tree, names = [], set()
        for c in (*eg._CCXT, eg.BaseError):
            for above in reversed(c.__mro__[:-2]):  # all but BaseException and object
                if above is not Exception and above.__name__ not in names:
                    names.add(above.__name__)
                    tree.append("class %s(%s): pass" % (above.__name__, above.__base__.__name__))
        self.run_with("\n".join(tree), (
            "import ccxt.base.errors as theirs, exchange_gateway as eg\n"
            "assert eg.NetworkError is theirs.NetworkError and eg.BaseError is theirs.BaseError\n"
            "assert issubclass(eg.CircuitOpen, theirs.ExchangeNotAvailable) and issubclass(eg.GatewayError, theirs.BaseError)\n"
            "assert eg._UNKNOWN['OnMaintenance'].__mro__[2] is theirs.OnMaintenance\n"
            "e = eg.CircuitOpen('No.'); assert (e.code, e.ccxt_class) == ('circuit_open', 'ExchangeNotAvailable')\n"
        ))

    def test_one_that_is_too_old_is_left_alone(self):
        self.run_with("class BaseError(Exception): pass\nclass NetworkError(BaseError): pass", (
            "import ccxt.base.errors as theirs, exchange_gateway as eg\n"
            "assert eg.NetworkError is not theirs.NetworkError and issubclass(eg.NetworkError, eg.OperationFailed)\n"
        ))


class AgainstTheDemo(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.demo = Demo()
        cls.addClassCleanup(cls.demo.close)

    def exchange(self, kind, **config):
        e = kind({"gateway": self.demo.public, "gatewayKey": self.demo.key, "enableRateLimit": True, **config})
        self.addCleanup(e.close)
        return e

    def test_what_a_bot_does_at_its_start_and_in_its_loop(self):
        for name in ccxt.exchanges:
            with self.subTest(name):
                e = self.exchange(getattr(ccxt, name))
                markets = e.load_markets()
                self.assertIs(e.load_markets(), markets)
                self.assertIn("BTC/USDT", e.symbols)
                m = e.market("BTC/USDT")
                self.assertEqual((m["base"], m["quote"], m["spot"], m["active"], m["id"]), ("BTC", "USDT", True, True, m["id"]))
                self.assertIs(e.market(m["id"])["symbol"], m["symbol"])
                self.assertIsInstance(m["precision"]["price"], float)
                self.assertRaises(ccxt.BadSymbol, e.market, "NO/SUCH")

                b = e.fetch_order_book("BTC/USDT", 5)
                self.assertEqual(set(b), {"symbol", "bids", "asks", "timestamp", "datetime", "nonce", "info"})
                self.assertEqual((len(b["bids"]), b["info"]["stale"], b["info"]["freshness"]["status"]), (5, False, "live"))
                self.assertEqual(b["datetime"], e.iso8601(b["timestamp"]))
                t = e.fetch_ticker("BTC/USDT")
                self.assertEqual(set(eg._TICKER_NUMBERS) | {"symbol", "timestamp", "datetime", "info"}, set(t))
                self.assertTrue(t["bid"] < t["ask"] and t["close"] == t["last"] and type(t["last"]) is float)
                self.assertEqual(set(e.fetch_tickers(["BTC/USDT", "ETH/USDT"])), {"BTC/USDT", "ETH/USDT"})

                funds = e.fetch_balance()
                self.assertEqual(funds["BTC"], {k: funds[k]["BTC"] for k in ("free", "used", "total")})
                self.assertIs(type(funds["free"]["BTC"]), float)
                self.assertIn(e.fetch_status()["status"], ("ok", "unknown"))  # Coinbase announces nothing

    def test_numbers_are_the_floats_next_to_the_exchanges_digits(self):
        okx, gw = self.exchange(ccxt.okx), self.demo.gateway()
        self.addCleanup(gw.close)
        self.assertEqual(okx.fetch_balance()["total"], {a: float(f.total) for a, f in gw.balance("okx").balances.items()})

        def same():
            mine, theirs = okx.fetch_order_book("BTC/USDT", 20), gw.order_book("okx", "BTC/USDT", 20)
            return mine["nonce"] == theirs.nonce and (mine["bids"], [list(map(float, l)) for l in theirs.bids])
        mine, theirs = until("two books of one sequence", same)
        self.assertEqual(mine, theirs)

    def test_an_outage(self):
        okx = self.exchange(ccxt.okx)
        okx.fetch_order_book("BTC/USDT", 5)
        self.demo.fault("okx", kind="maintenance", **{"for": "60s"})
        self.addCleanup(self.demo.heal, "okx")

        def too_old():
            try:
                okx.fetch_order_book("BTC/USDT", 5)
            except ccxt.ExchangeNotAvailable as err:
                return err
            return None
        self.assertRaises(ccxt.ExchangeNotAvailable, okx.fetch_balance)
        err = until("5,000 ms are over", too_old)
        self.assertIsInstance(err, ccxt.BookTooStale)
        self.assertGreater(err.age, 5)
        self.assertRaises(ccxt.ExchangeNotAvailable, okx.fetch_ticker, "BTC/USDT")
        b = okx.fetch_order_book("BTC/USDT", 5, {"accept_stale": 600_000})
        self.assertTrue(b["info"]["stale"] and b["info"]["freshness"]["age_ms"] > 5000 and len(b["bids"]) == 5)
        self.assertTrue(self.exchange(ccxt.okx, options={"accept_stale": 600_000}).fetch_ticker("BTC/USDT")["info"]["stale"])


if __name__ == "__main__":
    unittest.main()
