"""Loops that are slower than what they watch: they find what is newest, at its true age, and leave nothing behind."""

import os
import subprocess
import sys
import time
import unittest
import warnings
from unittest import mock

from stage import CUT, PATIENCE, ROOT, SNAPSHOT, STREAM, Canned, Watching, eg, event, levels, problem, readers, state, until


def updates(first, last):
    """Versions, each of which changes the size of the best bid to its number."""
    return b"".join(event("update", "e.1-%d" % i, seq=i, prev_seq=i - 1, exchange_seq=i, bids=[["10.0", str(i)]]) for i in range(first, last + 1))


class SlowLoops(Watching):
    """What a consumer finds that was away for a while."""

    def away(self, books, turns=1):
        """The first book, and then the server goes on while nobody takes anything."""
        first = self.take(books)
        for _ in range(turns):
            self.server.turn()
        time.sleep(1)
        return first

    def test_the_newest_book_and_how_many_it_missed(self):
        books = self.watch((STREAM + event("snapshot", "e.1-9", seq=9, conflated=8, bids=[["10.0", "9"]], asks=[["10.5", "3"]]), updates(10, 500)))
        seen = [self.away(books)]
        until("the newest", lambda: seen.append(next(books)) or seen[-1].seq == 500)
        self.assertEqual(sum(1 + b.missed for b in seen), 500)
        self.assertLess(len(seen), 400)
        self.assertTrue(all(levels(b.bids) == [("10.0", str(b.seq))] for b in seen))

    def test_a_version_that_was_taken_away_counts_as_missed(self):
        books = self.watch((STREAM + SNAPSHOT, updates(2, 3) + event("status", status="withheld", reason="withheld")))
        self.away(books)
        b = next(books)
        self.assertEqual((state(b), b.bids, b.missed), (("withheld", "withheld"), (), 2))

    def test_that_it_is_stale(self):
        books = self.watch((STREAM + SNAPSHOT, updates(2, 9), event("status", status="stale", reason="timeout")))
        self.away(books, 2)
        b = next(books)
        self.assertEqual((state(b), b.seq), (("stale", "timeout"), 9))

    def test_that_the_connection_was_lost(self):
        books = self.watch((STREAM + SNAPSHOT, updates(2, 9), CUT), (STREAM,))
        self.away(books, 2)
        b = next(books)
        self.assertEqual((state(b), b.seq, b.missed), (("stale", "disconnected"), 9, 7))

    def test_that_the_gateway_fell_silent(self):
        books = self.watch([STREAM + SNAPSHOT, 60.0], [STREAM, 60.0], silence=0.2)
        next(books)
        time.sleep(0.5)
        self.assertEqual(state(next(books)), ("stale", "silent"))

    def test_the_error_that_ended_it(self):
        books = self.watch((STREAM + SNAPSHOT, updates(2, 9), CUT), (problem(401, "unauthenticated"), CUT))
        self.away(books, 4)
        until("its thread ended", lambda: not readers())
        with self.assertRaises(eg.Unauthenticated):
            next(books)
        with self.assertRaises(StopIteration):
            next(books)

    def test_a_thread_that_breaks_is_told_of(self):
        books = self.watch((STREAM + SNAPSHOT, updates(2, 2)))
        self.take(books)
        with mock.patch.object(eg._Kept, "apply", side_effect=ZeroDivisionError), self.assertRaises(ZeroDivisionError):
            self.take(books)

    def test_the_age_goes_on_while_nobody_takes_it(self):
        books = self.watch((STREAM + SNAPSHOT, updates(2, 2)))
        self.away(books)
        fresh = next(books).freshness
        self.assertGreater(fresh.age - fresh.age_at_receipt, 0.5)  # it was read when it came, and not when it was taken

    def test_what_comes_late_is_older_for_it(self):
        books = self.watch([STREAM + SNAPSHOT, 1.0, updates(2, 2), 60.0])  # the second was sent when the first was
        b = until("it came", lambda: b if (b := next(books)).seq == 2 else None)
        self.assertGreater(b.freshness.age_at_receipt, 0.25 + 0.5)

    @unittest.skipUnless(hasattr(os, "fork"), "needs fork")
    def test_a_forked_process_leaves_it_alone(self):
        books = self.watch((STREAM + SNAPSHOT, updates(2, 2)))
        self.take(books)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # of forking with threads, which is what is tried here
            child = os.fork()
        if child == 0:
            try:
                next(books)
            except RuntimeError:
                os._exit(7)
            finally:
                os._exit(1)
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), 7)
        b = self.take(books)
        self.assertEqual((state(b), b.seq, self.server.dialled), (("live", None), 2, 1))

    def test_the_process_ends_by_itself(self):
        server = Canned((STREAM + SNAPSHOT,))
        self.addCleanup(server.close)
        watch = "gw.watch_order_book('okx', 'BTC/USDT', 5)"
        for name, rest in {
            "left open": "books = %s; next(books)",
            "in a circle": "kept = [%s]; kept.append(kept); next(kept[0])",
            "left by an error": "for b in %s: raise SystemExit",
            "waited for by another thread": "threading.Thread(target=list, args=(%s,), daemon=True).start(); time.sleep(0.5)",
        }.items():
            with self.subTest(name):
                server.turn()
                program = "import sys, threading, time; sys.path.insert(0, sys.argv[1]); from exchange_gateway import Gateway; gw = Gateway(sys.argv[2])\n"
                command = [sys.executable, "-c", program + rest % watch, str(ROOT / "clients" / "python"), server.url]
                done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE)
                self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "", ""))


class Operators(Watching):
    """What operators see of a gateway, whose consumer was away."""

    def circuits(self, *answers):
        self.server = Canned(*answers)
        self.addCleanup(self.server.close)
        items = eg.Gateway(self.server.url).watch_circuits()
        self.addCleanup(items.close)
        return items

    @staticmethod
    def item(kind, n):
        return ("event: %s\ndata: {\"n\":%d}\n\n" % (kind, n)).encode()

    def test_all_events_and_the_newest_state(self):
        item = self.item
        items = self.circuits((STREAM + item("snapshot", 0), item("state", 1) + item("event", 2) + item("state", 3) + item("event", 4) + item("state", 5), CUT))
        self.assertEqual(self.take(items), ("snapshot", {"n": 0}))
        self.server.turn()
        self.server.turn()
        until("its thread ended", lambda: not readers())
        self.assertEqual([next(items) for _ in range(3)], [("event", {"n": 2}), ("event", {"n": 4}), ("state", {"n": 5})])
        with self.assertRaises(eg.GatewayUnreachable):
            next(items)

    def test_so_many_events_that_the_watch_ends(self):
        most = eg._CircuitReader.MOST
        items = self.circuits((STREAM + self.item("snapshot", 0), b"".join(self.item("event", n) for n in range(most + 1))))
        self.take(items)
        self.server.turn()
        until("its thread ended", lambda: not readers())
        self.assertEqual([next(items)[1]["n"] for _ in range(most)], list(range(most)))
        with self.assertRaises(eg.GatewayUnreachable) as caught:
            next(items)
        self.assertTrue(caught.exception.retryable)


class Delay(unittest.TestCase):
    def test_it_is_what_a_message_took_more_than_the_quickest(self):
        d, start = eg._Delay(), eg._EPOCH

        def late(sent, read):
            return round(d.of(start + eg.timedelta(seconds=sent), read), 3)
        self.assertEqual([late(100, 5000.5), late(101, 5001.1), late(102, 5002.3)], [0, 0, 0])  # 500, 100 and 300 ms of difference
        self.assertEqual([late(103, 5003.3), late(103.1, 5008.1), late(103.2, 5008.1), late(108, 5008.1)], [0, 4.898, 4.798, 0])
        # An hour's drift of 1 in 2,000 is no delay; what lay for half a minute is, also after an hour.
        self.assertEqual({late(108 + i * 10, 5008.1 + i * 10.005) for i in range(360)}, {0})
        self.assertGreater(late(3800, 5000 + 3800 + 30), 25)


if __name__ == "__main__":
    unittest.main()
