"""Books that are kept from a stream, message by message, from a server that says what it is told to say."""

import time
import unittest
from decimal import Decimal
from unittest import mock

from stage import CUT, SNAPSHOT, STREAM, Watching, answer, eg, event, levels, problem, readers, state, until

BIDS = [("10.0", "1"), ("9.5", "2")]


class Streams(Watching):
    def test_a_snapshot_and_what_changes_it(self):
        books = self.watch((STREAM + event("status") + SNAPSHOT, event(
            "update", "e.1-2", seq=2, prev_seq=1, exchange_seq=71, bids=[["10.00", "0"], ["9.50", "4"], ["9.75", "1"]], asks=[["10.4", "7"]])), depth=5)
        b = self.take(books)
        self.assertEqual((levels(b.bids), levels(b.asks)), (BIDS, [("10.5", "3")]))
        self.assertEqual((state(b), b.epoch, b.seq, b.nonce, b.complete), (("live", None), "e.1", 1, 70, True))
        self.assertAlmostEqual(b.freshness.age_at_receipt, 0.25)
        b = self.take(books)
        self.assertEqual((levels(b.bids), levels(b.asks)), ([("9.75", "1"), ("9.50", "4")], [("10.4", "7"), ("10.5", "3")]))
        self.assertEqual((b.seq, b.nonce, b.mid, b.missed), (2, 71, Decimal("10.075"), 0))
        request = self.server.requests[0]
        self.assertTrue(request.startswith("GET /v1/stream/orderbook?exchange=okx&symbol=BTC%2FUSDT&depth=5 HTTP/1.1\r\n"))
        self.assertIn("\r\nAuthorization: Bearer gw_example\r\n", request)
        self.assertNotIn("Last-Event-ID", request)

    def test_a_lost_connection_is_stale_at_once_and_goes_on_where_it_was(self):
        update = event("update", "e.1-2", seq=2, prev_seq=1, bids=[["9.5", "0"]])
        books = self.watch((STREAM + event("status") + SNAPSHOT, CUT), (STREAM + event("status") + update,))
        self.assertEqual(state(self.take(books)), ("live", None))
        b = self.take(books)
        self.assertEqual((state(b), levels(b.bids)), (("stale", "disconnected"), BIDS))
        first = b.freshness.age
        b = self.take(books)
        self.assertEqual((state(b), levels(b.bids), b.seq), (("live", None), [("10.0", "1")], 2))
        self.assertGreater(first, 0.25)  # it goes on while nobody answers
        self.assertIn("\r\nLast-Event-ID: e.1-1\r\n", self.server.requests[1])

    def test_live_is_not_believed_before_levels_or_a_heartbeat_prove_it(self):
        beat = b'event: heartbeat\ndata: {"type":"heartbeat","sent_at":"2026-11-29T02:00:15Z"}\n\n'
        second = [STREAM + event("status"), 0.3, beat, 5.0]
        books = self.watch((STREAM + event("status") + SNAPSHOT, CUT), second, every=0.1)
        self.server.turn()
        until("it is live", lambda: not next(books).stale)
        began = time.monotonic()
        self.server.turn()
        seen = [until("it is not", lambda: state(b) if (b := next(books)).stale else None)]
        while seen[-1][0] != "live":
            seen.append(state(next(books)))
        self.assertEqual(set(seen[:-1]), {("stale", "disconnected")})
        self.assertGreaterEqual(time.monotonic() - began, 0.3)

    def test_a_heartbeat_proves_nothing_that_the_gateway_does_not_say(self):
        beat = event("heartbeat")
        books = self.watch((STREAM + SNAPSHOT, event("status", status="stale", reason="timeout"), beat + event(
            "update", "e.1-2", seq=2, prev_seq=1, status="stale", bids=[["9.5", "1"]]), event("status") + beat))
        self.assertEqual([state(self.take(books)) for _ in range(4)], [("live", None), ("stale", "timeout"), ("stale", "timeout"), ("live", None)])

    def test_a_gap_asks_for_the_whole_book(self):
        for name, wrong in {
            "prev_seq": event("update", "e.1-3", seq=3, prev_seq=2, bids=[["9.9", "1"]]),
            "epoch": event("update", "e.2-2", epoch="e.2", seq=2, prev_seq=1, bids=[["9.9", "1"]]),
            "crossed": event("update", "e.1-2", seq=2, prev_seq=1, bids=[["10.5", "1"]]),
            "too deep": event("update", "e.1-2", seq=2, prev_seq=1, bids=[["9.%d" % i, "1"] for i in range(5)]),
        }.items():
            with self.subTest(name):
                books = self.watch((STREAM + SNAPSHOT, wrong), (STREAM + SNAPSHOT,))
                self.take(books)
                b = self.take(books)
                self.assertEqual((state(b), b.bids, b.asks, b.freshness.age, b.seq), (("stale", "gap"), (), (), None, None))
                self.assertEqual((state(self.take(books)), self.server.dialled), (("live", None), 2))
                self.assertNotIn("Last-Event-ID", self.server.requests[1])

    def test_an_update_before_any_snapshot_is_a_gap(self):
        books = self.watch((STREAM + event("update", "e.1-2", seq=2, prev_seq=1),), (STREAM + SNAPSHOT,))
        self.assertEqual([state(self.take(books)) for _ in range(2)], [("stale", "gap"), ("live", None)])

    def test_rubbish_is_forgotten_and_asked_for_again(self):
        for wrong in (
            b"event: update\ndata: {\n\n", b"event: update\ndata: []\n\n", b"event: status\ndata: \xff\n\n", b"event: heartbeat\ndata: 1\n\n", event("snapshot", seq="1"),
            event("snapshot", bids=[["1"]]), event("snapshot", confirmed_at=7), event("snapshot", epoch=None), event("status", status=None),
            b"data: " + b"x" * (5 << 20),
        ):
            with self.subTest(wrong[:60]):
                books = self.watch((STREAM + SNAPSHOT, wrong), (STREAM + SNAPSHOT,))
                self.take(books)
                self.assertEqual([state(self.take(books)) for _ in range(2)], [("stale", "bad_answer"), ("live", None)])

    def test_messages_that_nobody_knows_are_passed_over(self):
        books = self.watch((STREAM + b": hello\n\nevent: eclipse\ndata: {}\n\n" + SNAPSHOT,))
        self.assertEqual(state(self.take(books)), ("live", None))

    def test_any_cut_into_pieces_is_the_same_stream(self):
        whole = event("status") + SNAPSHOT + event("update", "e.1-2", seq=2, prev_seq=1, asks=[["10.6", "1"]])
        for ends in (b"\n", b"\r\n"):
            text = whole.replace(b"\n", ends)
            for size in (1, 2, 3, 7, 64, len(text)):
                parts = [text[i:i + size] for i in range(0, len(text), size)]
                chunked = b"".join(b"%x;a=b\r\n%s\r\n" % (len(p), p) for p in parts)
                reader, chunks, events = eg._EventReader(), eg._Dechunker(), []
                for i in range(0, len(chunked), size):
                    events += reader.feed(chunks.feed(chunked[i:i + size]))
                self.assertEqual([(e.type, e.id) for e in events], [("status", None), ("snapshot", "e.1-1"), ("update", "e.1-2")])
                self.assertFalse(chunks.ended)
                self.assertEqual((chunks.feed(b"0\r\n\r\n"), chunks.ended), (b"", True))

    def test_chunks_that_are_none_are_refused(self):
        for wrong in (b"x\r\n", b"-1\r\n", b"\r\n", b"123456789\r\n", b"1" * 2000):
            with self.subTest(wrong[:20]), self.assertRaises(ValueError):
                eg._Dechunker().feed(wrong)

    def test_silence_counts_as_lost(self):
        books = self.watch((STREAM + SNAPSHOT,), (STREAM + SNAPSHOT,), silence=1.0)
        began = time.monotonic()
        self.take(books)
        self.assertEqual(state(next(books)), ("stale", "silent"))
        self.assertGreaterEqual(time.monotonic() - began, 1.0)
        self.assertEqual(state(self.take(books)), ("live", None))

    def test_a_byte_now_and_then_is_silence_too(self):
        books = self.watch([STREAM + SNAPSHOT] + [b":", 0.05] * 400, (STREAM + SNAPSHOT,), silence=1.0)
        next(books)
        self.assertEqual(state(next(books)), ("stale", "silent"))

    def test_every_gives_the_loop_a_turn(self):
        books = self.watch([STREAM + SNAPSHOT, 30.0], every=0.05)
        ages = [next(books).freshness.age for _ in range(6)]
        self.assertEqual(ages, sorted(ages))
        self.assertEqual(self.server.dialled, 1)

    def test_withheld_takes_the_book_away(self):
        books = self.watch((STREAM + SNAPSHOT, event("status", status="withheld", reason="withheld"), event("status") + SNAPSHOT))
        self.take(books)
        b = self.take(books)
        self.assertEqual((state(b), b.bids, b.asks, b.freshness.age, b.complete), (("withheld", "withheld"), (), (), None, False))
        self.assertEqual(state(self.take(books)), ("live", None))

    def test_a_refusal_that_passes_is_waited_for_as_long_as_it_says(self):
        books = self.watch(
            problem(503, "overloaded", retryable=True, retry_after_ms=1000), answer("busy", "503 Busy", "text/html", "Retry-After: 1"), (STREAM + SNAPSHOT,))
        began = time.monotonic()
        self.assertEqual([state(next(books)) for _ in range(2)], [("stale", "overloaded"), ("stale", "disconnected")])
        self.assertEqual(state(self.take(books)), ("live", None))
        self.assertGreaterEqual(time.monotonic() - began, 2)

    def test_a_refusal_that_stays_is_raised(self):
        for refusal, kind in ((problem(401, "unauthenticated"), eg.Unauthenticated), (problem(404, "symbol_unknown"), eg.SymbolUnknown),
                              (problem(501, "not_supported"), eg.ExchangeNotSupported), (answer("{}"), eg.BadAnswer), (b"SSH-2.0\r\n\r\n", eg.BadAnswer)):
            with self.subTest(kind), self.assertRaises(kind):
                next(self.watch(refusal))
            self.assertEqual(self.server.dialled, 1)

    def test_a_refusal_in_chunks_is_read(self):
        body = problem(404, "symbol_unknown").split(b"\r\n\r\n")[1]
        head = b"HTTP/1.1 404 Not Found\r\nContent-Type: application/problem+json\r\nTransfer-Encoding: chunked\r\n\r\n"
        with self.assertRaises(eg.SymbolUnknown):
            next(self.watch(head + b"%x\r\n" % len(body) + body + b"\r\n0\r\n\r\n"))

    def test_a_key_that_was_revoked_ends_it(self):
        farewell = b'event: close\ndata: {"type":"close","reason":"the key is no longer valid"}\n\n'
        books = self.watch((STREAM + SNAPSHOT, farewell, CUT), (problem(401, "unauthenticated"), CUT))
        self.assertEqual(state(self.take(books)), ("live", None))
        self.server.turn()
        self.assertEqual(state(self.take(books)), ("stale", "disconnected"))
        self.server.turn()
        with self.assertRaises(eg.Unauthenticated):
            self.take(books)
        self.assertEqual(readers(), [])

    def test_leaving_the_loop_hangs_up(self):
        books = self.watch([STREAM + SNAPSHOT, 0.2] + [b":\n\n", 0.01] * 2000)
        for _ in books:
            break
        self.assertEqual(len(readers()), 1)
        books.close()
        self.assertEqual(readers(), [])
        until("the server notices", lambda: not any(t.is_alive() for t in self.server._threads[1:]))

    def test_a_hang_up_waits_for_nobody(self):
        books = self.watch([60.0], every=0.05)  # it is connected, and nothing answers
        self.assertEqual(state(next(books)), ("syncing", "connecting"))
        until("it asks", lambda: self.server.requests)
        books.close()
        self.assertEqual(readers(), [])
        books = self.watch(problem(503, "overloaded", retryable=True, retry_after_ms=60_000))
        next(books)  # a minute to wait
        books.close()
        self.assertEqual(readers(), [])

    def test_arguments_that_make_no_sense(self):
        for wrong in ({"silence": 0}, {"every": 0}, {"every": -1.0}):
            with self.assertRaises(ValueError):
                eg.Gateway().watch_order_book("okx", "BTC/USDT", **wrong)


class Backoff(unittest.TestCase):
    def test_it_doubles_to_half_a_minute_and_is_never_before_retry_after(self):
        with mock.patch.object(eg.random, "uniform", lambda low, high: high):
            self.assertEqual([eg._backoff(n, None) for n in (0, 1, 4, 5, 1000)], [1, 2, 16, 30, 30])
        self.assertEqual(eg._backoff(0, 99.0), 99.0)


if __name__ == "__main__":
    unittest.main()
