"""The kit's parts, each alone."""

from __future__ import annotations

import errno
import os
import tempfile
import threading
import unittest
from pathlib import Path
from unittest import mock

from gpuaas_adapter import Interrupted, Keys, UsageLog, pause, seal, within
from gpuaas_adapter.contract import clip
from gpuaas_adapter.feed import BLOCK, Feed
from gpuaas_adapter.journal import Journal
from gpuaas_adapter.scope import Scope, using
from gpuaas_adapter.sign import KeySet
from gpuaas_adapter.types import canonical


class PartsTest(unittest.TestCase):
    def setUp(self) -> None:
        self.folder = Path(self.enterContext(tempfile.TemporaryDirectory()))

    def test_a_torn_line_is_cut_off(self) -> None:
        journal = Journal(self.folder)
        self.addCleanup(journal.close)
        journal.append("op_1", {"at": 1, "n": 1}, durable=True)
        with open(self.folder / "operations" / "op_1.jsonl", "ab") as file:
            file.write(b'{"at": 2, "n"')
        self.assertEqual([{"at": 1, "n": 1}], journal.read("op_1"))
        journal.append("op_1", {"at": 2, "n": 2}, durable=True)
        self.assertEqual([1, 2], [record["n"] for record in journal.read("op_1")])

    def test_of_a_line_that_the_disk_did_not_take_nothing_stays(self) -> None:
        journal = Journal(self.folder)
        self.addCleanup(journal.close)
        journal.append("op_1", {"n": 1}, durable=True)
        full = OSError(errno.ENOSPC, "no space left")
        with mock.patch("os.fsync", side_effect=full), mock.patch("os.ftruncate", side_effect=full):
            with self.assertRaises(OSError) as caught:
                journal.append("op_1", {"n": 2}, durable=True)
        self.assertEqual(errno.ENOSPC, caught.exception.errno)
        journal.append("op_1", {"n": 3}, durable=True)
        self.assertEqual([1, 3], [record["n"] for record in journal.read("op_1")])

    def test_a_folder_has_one_user(self) -> None:
        journal = Journal(self.folder)
        with self.assertRaises(RuntimeError):
            Journal(self.folder)
        journal.close()
        Journal(self.folder).close()
        self.assertEqual(0o700, os.stat(self.folder).st_mode & 0o777)

    def test_versions_are_never_given_twice(self) -> None:
        raised: list[int] = []
        feed = Feed("e", 0, raised.append)
        status = {"operationId": "op_1", "state": "running"}
        feed.put(status)
        cursor = feed.wait("", 0)["cursor"]
        again = Feed("e", raised[-1], raised.append)
        again.put(status)
        self.assertEqual(1, len(again.wait(cursor, 0)["operations"]))
        self.assertGreaterEqual(int(cursor.split(":")[1]), 1)
        self.assertGreaterEqual(raised[-1], 2 * BLOCK)

    def test_a_full_page_is_continued_and_loses_nothing(self) -> None:
        feed = Feed("e", 0, lambda _: None)
        for n in range(1200):
            feed.put({"operationId": f"op_{n}", "state": "running"})
        cursor, seen = "", set()
        while page := feed.wait(cursor, 0):
            cursor = page["cursor"]
            seen |= {status["operationId"] for status in page["operations"]}
            if len(page["operations"]) < 500:
                break
        self.assertEqual(1200, len(seen))

    def test_a_reader_is_woken(self) -> None:
        feed = Feed("e", 0, lambda _: None)
        cursor = feed.wait("", 0)["cursor"]
        pages: list[object] = []
        reader = threading.Thread(target=lambda: pages.append(feed.wait(cursor, 30)["operations"]))
        reader.start()
        feed.put({"operationId": "op_1", "state": "running"})
        reader.join(10)
        self.assertEqual(1, len(pages))

    def test_a_scope_ends_what_waits_in_it(self) -> None:
        with self.assertRaises(TimeoutError), within(0.05):
            pause(30)
        outer = Scope()
        threading.Timer(0.05, outer.end, (Interrupted("canceled"),)).start()
        with self.assertRaises(Interrupted) as caught, using(outer), within(30):
            pause(30)
        self.assertEqual("canceled", caught.exception.why)

    def test_usage_is_counted_once_and_read_again(self) -> None:
        log = UsageLog(self.folder)
        for _ in range(2):
            log.add("ins_1", {"id": "a", "quantity": "1"}, {"id": "b", "quantity": "2"})
        page = log.page("ins_1", "")
        self.assertEqual((2, ["a", "b"]), (page["count"], [record["id"] for record in page["records"]]))
        again = UsageLog(self.folder)
        again.add("ins_1", {"id": "b", "quantity": "2"}, {"id": "c", "quantity": "3"})
        self.assertEqual(["c"], [record["id"] for record in again.page("ins_1", page["cursor"])["records"]])
        self.assertEqual(page["records"] + [{"id": "c", "quantity": "3"}], again.page("ins_1", "other.7")["records"])
        with self.assertRaises(ValueError):
            again.page("../x", "")

    def test_a_counter_is_read_on_where_it_was(self) -> None:
        for total in (3, 3, 10):
            UsageLog(self.folder).count("ins_1", "mem_1", "beats", "run-a", total)
        UsageLog(self.folder).count("ins_1", "mem_1", "beats", "run-b", 2)
        records = UsageLog(self.folder).records("ins_1")
        self.assertEqual(["3", "7", "2"], [record["quantity"] for record in records])
        self.assertEqual(records[0]["to"], records[1]["from"])

    def test_the_same_words_are_the_same_password(self) -> None:
        first, again = Keys(self.folder / "key"), Keys(self.folder / "key")
        self.assertEqual(first.password("a", "bc"), again.password("a", "bc"))
        self.assertNotEqual(first.password("a", "bc"), first.password("ab", "c"))

    def test_texts_are_cut_between_characters(self) -> None:
        self.assertEqual("ä", clip("äö", 3))
        self.assertEqual('{"a":1,"b":[1,null]}', canonical({"b": [1.0, None], "a": 1}))

    def test_a_box_needs_a_key_and_an_instance(self) -> None:
        for key, instance in (("", "ins_1"), ("AAAA", "ins_1"), ("A" * 43 + "=", "")):
            with self.assertRaises(ValueError):
                seal(key, instance, b"x")

    def test_a_platform_that_is_away_is_asked_every_five_seconds(self) -> None:
        now = [0.0]
        keys = KeySet("http://127.0.0.1:9/none", lambda: now[0])
        with mock.patch.object(keys, "_fetch") as fetch:
            for at in (0.0, 1.0, 4.9, 5.1):
                now[0] = at
                with self.assertRaises(KeyError):
                    keys.key("kid")
        self.assertEqual(2, fetch.call_count)


if __name__ == "__main__":
    unittest.main()
