"""The example bot: what it decides, and what it says of an exchange that breaks."""

import os
import re
import subprocess
import sys
import threading
import unittest
from dataclasses import replace
from decimal import Decimal

from stage import ROOT, Demo, eg

sys.path.insert(0, str(ROOT / "examples" / "python"))

import quote_bot  # noqa: E402

NOW = eg.datetime(2026, 11, 29, tzinfo=eg.timezone.utc)


def book(status="live", reason=None, age=0.0, bids=(("99", "1"),), asks=(("101", "1"),)):
    fresh = eg.Freshness(status, "stream", NOW, NOW, reason, None, None, age, eg.time.monotonic())
    sides = [tuple(eg.Level(Decimal(p), Decimal(s)) for p, s in side) for side in (bids, asks)]
    return eg.OrderBook("okx", "BTC/USDT", "BTC-USDT", sides[0], sides[1], fresh, 5, True, None, None)


def balance(**free):
    return eg.Balance("okx", "main", "trading", {a: eg.Funds(Decimal(n), Decimal(0), Decimal(n)) for a, n in free.items()}, NOW, NOW, None)


class Decisions(unittest.TestCase):
    options = quote_bot.arguments(["--size", "0.5", "--edge", "0.0125", "--max-age", "2"])

    def decide(self, b, funds, problem=None):
        return quote_bot.decide(b, funds, problem, self.options, Decimal("0.1"))

    def test_both_sides_of_a_fresh_book(self):
        self.assertEqual(self.decide(book(), balance(BTC="0.5", USDT="49.35")), ("QUOTE", "bid 98.7, ask 101.3 of 0.5 BTC, confirmed 0.0 s ago"))

    def test_only_what_the_balance_covers(self):
        self.assertTrue(self.decide(book(), balance(BTC="0.5"))[1].startswith("ask 101.3 of"))
        self.assertTrue(self.decide(book(), balance(USDT="49.35"))[1].startswith("bid 98.7 of"))
        self.assertEqual(self.decide(book(), balance(USDT="49.34", BTC="0.4"))[0], "WAIT")

    def test_nothing_on_a_book_that_is_old_in_any_way(self):
        funds = balance(BTC="0.5", USDT="1000")
        for b in (book("stale", "timeout"), book("withheld", "withheld", None, (), ()), book("syncing", "connecting"), book(age=2.1), book(asks=())):
            state, words = self.decide(b, funds)
            self.assertEqual(state, "WAIT", words)
        self.assertIn("timeout", self.decide(book("stale", "timeout"), funds)[1])

    def test_nothing_without_a_balance_whatever_the_book(self):
        for b in (book(), book("stale", "timeout")):
            self.assertEqual(self.decide(b, None, "because"), ("STOP", "the balance is not known: because"))

    def test_an_age_that_nobody_knows_is_too_old(self):
        b = book()
        self.assertEqual(self.decide(replace(b, freshness=replace(b.freshness, age_at_receipt=None)), balance(BTC="1"))[0], "WAIT")


class AgainstTheDemo(unittest.TestCase):
    def setUp(self):
        self.demo = Demo()
        self.addCleanup(self.demo.close)

    def start(self, *more, key=True):
        env = dict(os.environ, GATEWAY_URL=self.demo.public, GATEWAY_KEY=self.demo.key if key else "")
        bot = subprocess.Popen(
            [sys.executable, str(ROOT / "examples" / "python" / "quote_bot.py"), "--interval", "0.2", "--balance-every", "0.5", *more],
            env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )
        patience = threading.Timer(60, bot.kill)
        patience.start()
        self.addCleanup(patience.cancel)
        self.addCleanup(bot.stdout.close)
        self.addCleanup(bot.stderr.close)
        self.addCleanup(bot.wait)
        self.addCleanup(bot.kill)
        return bot

    def until(self, bot, state):
        """The states up to the first line of that one."""
        seen = []
        for line in bot.stdout:
            self.assertRegex(line, r"^(QUOTE|WAIT |STOP )  \S")
            seen.append(line.split()[0])
            if seen[-1] == state:
                return seen
        raise AssertionError("the bot ended after %r: %s" % (seen[-5:], bot.stderr.read()))

    def test_it_quotes_ends_and_shows_no_key(self):
        bot = self.start("--rounds", "25")
        out, err = bot.communicate(timeout=60)
        self.assertEqual((bot.returncode, err, len(out.splitlines())), (0, "", 25))
        self.assertIn("QUOTE", out)
        self.assertNotIn("gw_", out)

    def test_a_balance_that_hangs_stops_it_though_the_book_is_fresh(self):
        bot = self.start("--max-age", "30")
        self.until(bot, "QUOTE")
        self.demo.fault("okx", kind="hang", **{"class": "account", "for": "60s"})
        self.assertEqual(set(self.until(bot, "STOP")), {"QUOTE", "STOP"})
        self.assertNotIn("QUOTE", [bot.stdout.readline().split()[0] for _ in range(10)])
        self.demo.heal("okx")
        self.until(bot, "QUOTE")

    def test_an_old_book_makes_it_wait(self):
        bot = self.start("--max-age", "0.0001", "--rounds", "25")
        out, _ = bot.communicate(timeout=60)
        self.assertTrue(re.search(r"^WAIT   the book is too old, confirmed ", out, re.MULTILINE), out)

    def test_it_says_what_is_missing(self):
        bot = self.start("--rounds", "20", key=False)
        out, _ = bot.communicate(timeout=60)
        self.assertEqual({line.split()[0] for line in out.splitlines()}, {"STOP"})
        self.assertIn("unauthenticated", out)


if __name__ == "__main__":
    unittest.main()
