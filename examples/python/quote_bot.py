#!/usr/bin/env python3
"""A bot that quotes only on fresh books, and stops when it does not know its balance. It prints what it would quote: the gateway
places no orders, so a real bot sends them to the exchange itself.

    bin/gateway demo                                    # in one terminal; it prints a key
    GATEWAY_KEY=gw_... examples/python/quote_bot.py     # in another

Each line begins with what the bot does:

    QUOTE  both sides, around the middle of a live book that is young enough, of an amount that the balance covers
    WAIT   the book is not live, or too old: its quotes would be taken out; the reason is the gateway's
    STOP   the balance is not known, so nothing is quoted until it is: a balance is live or an error, never an old one

It runs for ever, or for --rounds N lines.
"""

import argparse
import itertools
import os
import pathlib
import sys
import threading
import time
from decimal import ROUND_DOWN, ROUND_UP, Decimal

# The client is one file. A bot of your own has a copy of it beside it; this one takes it from where it is.
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "clients" / "python"))

from exchange_gateway import AuthenticationError, Gateway, GatewayError  # noqa: E402


class Funds:
    """The balance, asked for in a thread of its own: while an exchange hangs that takes seconds, in which the book moves."""

    def __init__(self, gateway, exchange, every):
        self._gateway, self._exchange, self._every = gateway, exchange, every
        self._lock = threading.Lock()
        self._balance = self._error = None
        self._asked = 0.0
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._over.set()
        self._thread.join()

    def known(self):
        """(balance, None), or (None, why not). One that was asked for three questions ago is not known any more."""
        with self._lock:
            if self._error is not None:
                return None, str(self._error)
            if self._balance is None:
                return None, "not answered yet"
            if time.monotonic() - self._asked > 3 * self._every:
                return None, "the last answer is %.1f s old" % (time.monotonic() - self._asked)
            return self._balance, None

    def _run(self):
        wait = 0.0
        while not self._over.wait(wait):
            asked, balance, error = time.monotonic(), None, None
            try:
                balance = self._gateway.balance(self._exchange)
            except GatewayError as err:
                error = err
            with self._lock:
                self._balance, self._error, self._asked = balance, error, asked
            # Before Retry-After an answer could only be the same again.
            wait = max(self._every, error.retry_after or 0.0) if error else self._every


def decide(book, balance, problem, options, tick):
    """What the bot does now: a state and the words for it. It needs nothing else, so it can be tried out with any book."""
    if balance is None:
        return "STOP", "the balance is not known: " + problem
    if book.stale:
        return "WAIT", "the book is %s: %s%s" % (book.freshness.status, book.freshness.reason, age(book))
    if book.freshness.older_than(options.max_age):
        return "WAIT", "the book is too old%s" % age(book)
    if book.mid is None:
        return "WAIT", "the book has one side"
    base, quote = book.symbol.split("/")
    bid = (book.mid * (1 - options.edge) / tick).to_integral_value(ROUND_DOWN) * tick
    ask = (book.mid * (1 + options.edge) / tick).to_integral_value(ROUND_UP) * tick
    buys, sells = free(balance, quote) >= bid * options.size, free(balance, base) >= options.size
    sides = [side for side, has in (("bid " + plain(bid), buys), ("ask " + plain(ask), sells)) if has]
    if not sides:
        return "WAIT", "the balance covers neither side"
    return "QUOTE", "%s of %s %s%s" % (", ".join(sides), plain(options.size), base, age(book))


def free(balance, asset):
    return balance.balances[asset].free if asset in balance.balances else Decimal(0)


def plain(number):
    return format(number, "f")


def age(book):
    return "" if book.freshness.age is None else ", confirmed %.1f s ago" % book.freshness.age


def tick_of(gateway, exchange, symbol):
    """The step of the pair's prices."""
    for m in gateway.markets(exchange).markets:
        if m.symbol == symbol and m.tick:
            return m.tick
    raise SystemExit("%s lists no %s with a price step" % (exchange, symbol))


def lines(gateway, options):
    """One decision at once, and then one each interval."""
    tick = tick_of(gateway, options.exchange, options.symbol)
    with Funds(gateway, options.exchange, options.balance_every) as funds:
        due = time.monotonic()
        last = None
        for book in gateway.watch_order_book(options.exchange, options.symbol, 5, every=options.interval / 2):
            balance, problem = funds.known()
            state, words = decide(book, balance, problem, options, tick)
            now = time.monotonic()
            if state != last or now >= due:  # a change of state is never kept back
                due, last = now + options.interval, state
                yield "%-5s  %s" % (state, words)


def arguments(argv):
    p = argparse.ArgumentParser(description="Quotes (in words) on fresh books alone.")
    p.add_argument("--gateway", default=os.environ.get("GATEWAY_URL", "http://127.0.0.1:8080"), metavar="URL", help="default $GATEWAY_URL, or %(default)s")
    p.add_argument("--exchange", default="okx")
    p.add_argument("--symbol", default="BTC/USDT")
    p.add_argument("--size", type=Decimal, default=Decimal("0.001"), help="of a quote, in the base asset")
    p.add_argument("--edge", type=Decimal, default=Decimal("0.0005"), help="share of the price between the middle and a quote")
    p.add_argument("--max-age", type=float, default=2.0, metavar="S", help="seconds since the exchange vouched for the book")
    p.add_argument("--interval", type=float, default=1.0, metavar="S", help="seconds between two lines, unless the state changes")
    p.add_argument("--balance-every", type=float, default=5.0, metavar="S", help="seconds between two questions for the balance")
    p.add_argument("--rounds", type=int, default=None, metavar="N", help="end after so many lines")
    return p.parse_args(argv)


def main(argv=None):
    options = arguments(argv)
    # Not as an argument: every user of the machine can read those.
    gateway = Gateway(options.gateway, os.environ.get("GATEWAY_KEY") or None)
    try:
        for line in itertools.islice(lines(gateway, options), options.rounds):
            print(line, flush=True)
    except AuthenticationError as err:
        if os.environ.get("GATEWAY_KEY"):
            return "the gateway does not take the key in GATEWAY_KEY. " + str(err)
        return "the gateway wants a key: set GATEWAY_KEY. " + str(err)
    except GatewayError as err:
        return str(err)
    except KeyboardInterrupt:
        pass
    finally:
        gateway.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
