"""Bytes that nobody meant: what comes out is an answer or an error of this client's, and a kept book is a book or nothing.

RANDOM_SECONDS=15 goes on for so long; without it there are ROUNDS of each."""

import json
import os
import random
import time
import unittest

from stage import BOOK, FRESH, SNAPSHOT, eg, event

ROUNDS = 1500

NONE = dict.fromkeys(("bidVolume", "askVolume", "open", "high", "low", "change", "percentage", "baseVolume", "quoteVolume"))
TICKER = {"exchange": "okx", "symbol": "BTC/USDT", "exchange_symbol": "BTC-USDT", "stale": False, "freshness": FRESH, "timestamp": None, "datetime": None,
          "bid": "1", "ask": "2", "mid": "1.5", "spread": "1", "last": "1.2", "stats_freshness": FRESH, **NONE}
PROBLEM = {"code": "circuit_open", "detail": "No.", "ccxt_class": "ExchangeNotAvailable", "retryable": True, "retry_after_ms": 1, "age_ms": 3, "allowed": ["a"]}
BALANCE = {"exchange": "okx", "account": "main", "account_type": "trading", "balances": {"BTC": {"free": "1", "used": "0", "total": "1"}},
           "requested_at": "2026-11-29T02:00:00Z", "received_at": "2026-11-29T02:00:00.5Z", "timestamp": 1795917600118}
READ = (
    (eg._order_book, BOOK), (eg._ticker, TICKER), (eg._balance, BALANCE),
    (eg._order_books, {"symbol": "BTC/USDT", "best_bid": {"exchange": "okx", "price": "1", "size": "2"}, "best_ask": None,
                       "venues": [{"exchange": "okx", "orderbook": BOOK, "problem": None}, {"exchange": "x", "orderbook": None, "problem": PROBLEM}]}),
    (lambda d, now: eg._problem_error(d.fields, 503, "7"), dict(PROBLEM, venues=[{"exchange": "okx", "problem": PROBLEM}])),
    (lambda d, now: eg._floats(d.fields, "orderbook"), {"bids": [[1, 2.5]], "asks": []}),
)
WEIRD = (None, True, 0, -1, 10 ** 400, 2.5, "", "1e5", "NaN", "-0", "0" * 600, "live", [], [[]], {}, "2026-02-30T00:00:00Z", 1 << 63, "\ud800")


def mutated(rng, doc):
    """The text of a document with one or more things about it changed: a value, a field, or bytes."""
    doc = json.loads(json.dumps(doc))
    for _ in range(rng.randint(0, 3)):
        at = doc
        while True:
            keys = list(at) if isinstance(at, dict) else list(range(len(at)))
            if not keys:
                break
            key = rng.choice(keys)
            if isinstance(at[key], (dict, list)) and rng.random() < 0.7:
                at = at[key]
                continue
            if rng.random() < 0.3:
                del at[key]
            else:
                at[key] = rng.choice(WEIRD)
            break
    text = bytearray(json.dumps(doc).encode())
    for _ in range(rng.choice((0, 0, 0, 1, 5))):
        text[rng.randrange(len(text))] = rng.randrange(256)
    return bytes(text[:rng.randrange(len(text))] if rng.random() < 0.1 else text)


class Random(unittest.TestCase):
    def rounds(self):
        end = time.monotonic() + float(os.environ.get("RANDOM_SECONDS", "0"))
        seed = 0
        while seed < ROUNDS or time.monotonic() < end:
            yield seed, random.Random(seed)
            seed += 1

    def test_documents(self):
        read_well = 0
        for seed, rng in self.rounds():
            read, doc = rng.choice(READ)
            text = mutated(rng, doc)
            try:
                parse = float if doc is READ[-1][1] else eg.Decimal
                read(eg._Doc(eg._parse(text, parse)), 0.0)
                read_well += 1
            except ValueError:
                pass
            except Exception as err:
                raise AssertionError("seed %d: %r" % (seed, text)) from err
        self.assertGreater(read_well, ROUNDS // 20)

    def test_streams(self):
        live = 0
        for seed, rng in self.rounds():
            kept, reader, chunks = eg._Kept("okx", "BTC/USDT", 5), eg._EventReader(), eg._Dechunker()
            text = b"".join(self.messages(rng))
            sizes = rng.choice((False, True))
            try:
                while text:
                    size = rng.randint(1, 400)
                    part, text = text[:size], text[size:]
                    if sizes:
                        part = chunks.feed(b"%x\r\n%s\r\n" % (len(part), part))
                    for e in reader.feed(part):
                        kept.apply(e)
                        live += self.check(kept.book())
            except (ValueError, eg._Gap):
                kept.forget()
                self.check(kept.book())
            except Exception as err:
                raise AssertionError("seed %d" % seed) from err
        self.assertGreater(live, ROUNDS // 20)

    def messages(self, rng):
        seq = 1
        yield SNAPSHOT
        for _ in range(rng.randint(1, 8)):
            seq += rng.random() < 0.95
            price, size = "%.1f" % rng.uniform(9, 11.5), rng.choice(("0", "1", "0.00"))
            e = event(rng.choice(("update", "update", "update", "status", "heartbeat")), seq=seq, prev_seq=seq - 1, **{rng.choice(("bids", "asks")): [[price, size]]})
            e = bytearray(e)
            if rng.random() < 0.1:
                e[rng.randrange(len(e))] = rng.randrange(256)
            yield bytes(e)

    def check(self, b):
        """Whatever came: sorted, not crossed, no deeper than asked, no level of nothing."""
        bids, asks = [l.price for l in b.bids], [l.price for l in b.asks]
        self.assertEqual((bids, asks), (sorted(set(bids), reverse=True), sorted(set(asks))))
        self.assertFalse(bids and asks and bids[0] >= asks[0])
        self.assertTrue(max(len(bids), len(asks)) <= 5 and all(l.size for l in b.bids + b.asks))
        self.assertTrue(b.stale or b.seq is not None)
        return not b.stale


if __name__ == "__main__":
    unittest.main()
