"""The client against a played platform: what it sends, keeps and raises, and how feeds go on."""

from __future__ import annotations

import threading
import time
import unittest
from typing import Any
from unittest import mock

from gpuaas_client import ERROR_CODES, Client, PlatformError, operations
from gpuaas_client.generated.operations import LaunchInstanceInput

from .played import Played, Reply, Wire, data, fault, refusal

LAUNCH: LaunchInstanceInput = {"projectId": "prj_1", "appSlug": "demo", "name": "one"}
END = {"operationProgress": {"id": "op_1", "state": "SUCCEEDED"}}


def event(cursor: str) -> dict[str, Any]:
    return {"instanceTimeline": {"cursor": cursor}}


def cursor_of(item: Any) -> str:
    return str(item["instanceTimeline"]["cursor"])


class RequestTest(unittest.TestCase):
    def test_one_call_is_one_request_with_the_token_of_now(self) -> None:
        played = Played(self, (503, {}, b"busy"), data({"instance": {"id": "ins_1"}}))
        client = Client(played.url + "/", lambda: f"secret{len(played.asked)}")
        with self.assertRaises(PlatformError) as failed:
            client.request(operations.get_instance("ins_1"))
        self.assertEqual(("UNAVAILABLE", True, 1),
                         (failed.exception.code, failed.exception.retryable, len(played.asked)))
        self.assertEqual("ins_1", client.request(operations.get_instance("ins_1"), correlation_id="mine")["instance"]["id"])
        self.assertEqual(["Bearer secret0", "Bearer secret1"], [head["Authorization"] for head in played.heads])
        self.assertEqual("mine", played.heads[1]["X-Correlation-ID"])
        self.assertEqual({"id": "ins_1"}, played.asked[1]["variables"])

    def test_a_refusal_is_an_error_of_the_catalogue_with_its_reasons(self) -> None:
        client = Client(Played(self, refusal("FORBIDDEN")).url)
        with self.assertRaises(PlatformError) as failed:
            client.request(operations.get_instance("ins_1"))
        error = failed.exception
        self.assertEqual(("FORBIDDEN", "c-1", "input.a"), (error.code, error.correlation_id, error.reasons[0].path))
        self.assertIn(error.code, ERROR_CODES)

    def test_a_code_that_is_not_known_and_a_body_that_is_none_are_read(self) -> None:
        odd: Reply = (200, {}, {"errors": [{"message": 7, "extensions": {"code": "OF_TOMORROW", "reasons": [None, {"path": 1}]}}]})
        client = Client(Played(self, odd, (200, {}, b"[]"), (302, {"Location": "http://127.0.0.1:1/"}, b""), (401, {}, b"x")).url)
        codes = []
        for _ in range(4):
            with self.assertRaises(PlatformError) as failed:
                client.request(operations.get_instance("ins_1"))
            codes.append(failed.exception.code)
        self.assertEqual(["OF_TOMORROW", "INTERNAL", "REQUEST_INVALID", "UNAUTHENTICATED"], codes)

    def test_a_request_keeps_its_key_and_repeat_tries_what_passes(self) -> None:
        made = data({"launchInstance": {"instance": {"id": "ins_1"}}})
        mine: LaunchInstanceInput = {"projectId": "prj_1", "appSlug": "demo", "name": "one", "idempotencyKey": "mine"}
        played = Played(self, refusal("UNAVAILABLE", True, {"Retry-After": "7"}), made, refusal("CONFLICT"))
        client = Client(played.url)
        with mock.patch("gpuaas_client.client.time.sleep") as pause:
            self.assertEqual("ins_1", client.repeat(operations.launch_instance(LAUNCH))["launchInstance"]["instance"]["id"])
            pause.assert_called_once_with(7)
            with self.assertRaises(PlatformError) as failed:
                client.repeat(operations.launch_instance(mine))
        self.assertEqual("CONFLICT", failed.exception.code)
        keys = [asked["variables"]["input"]["idempotencyKey"] for asked in played.asked]
        self.assertEqual((keys[0], "mine"), (keys[1], keys[2]))
        self.assertRegex(keys[0], "^[0-9a-f-]{36}$")
        self.assertNotIn("idempotencyKey", LAUNCH)

    def test_who_is_not_there_is_an_error_that_passes(self) -> None:
        with self.assertRaises(PlatformError) as failed:
            Client("http://127.0.0.1:1").request(operations.get_instance("ins_1"))
        self.assertEqual(("NETWORK", True), (failed.exception.code, failed.exception.retryable))
        for url in ("gpu.example.com", "ftp://gpu.example.com", ""):
            with self.assertRaisesRegex(ValueError, "platform's address"):
                Client(url)

    def test_a_platform_of_version_1_is_asked_for_what_it_knows(self) -> None:
        old = data({"instance": {"id": "ins_1", "status": "OF_TOMORROW"}})
        played = Played(self, refusal("DOCUMENT_INVALID"), old, old, refusal("DOCUMENT_INVALID"))
        client, asks = Client(played.url), operations.get_instance("ins_1")
        self.assertEqual("OF_TOMORROW", client.request(asks)["instance"]["status"])
        client.request(asks)
        older = asks.document.older
        self.assertEqual([asks.document.text, older, older], [asked["query"] for asked in played.asked])
        with self.assertRaises(PlatformError):  # and once more it is refused
            client.request(asks)
        self.assertEqual([], played.replies)


class FeedTest(unittest.TestCase):
    def setUp(self) -> None:
        self.enterContext(mock.patch("gpuaas_client.client.backoff", return_value=0.0))

    def test_a_feed_goes_on_behind_its_last_cursor_and_begins_again_where_that_has_expired(self) -> None:
        def first(wire: Wire) -> None:
            wire.next(event("c1"))
            wire.next(event("c2"))  # and the connection is lost

        def second(wire: Wire) -> None:
            wire.say({"type": "error", "payload": [fault("CURSOR_EXPIRED")]})

        def third(wire: Wire) -> None:
            wire.say({"type": "ping"})
            self.assertEqual({"type": "pong"}, wire.hear())
            wire.next(event("c9"))
            wire.hear()

        played = Played(self, talks=(first, second, third))
        restarts: list[int] = []
        with Client(played.url, "secret").subscribe(operations.watch_timeline(instance_id="ins_1", after="c0"), cursor_of=cursor_of,
                                                    restarted=lambda: restarts.append(1)) as feed:
            items = iter(feed)
            self.assertEqual(["c1", "c2", "c9"], [cursor_of(next(items)) for _ in range(3)])
        self.assertEqual([1], restarts)
        self.assertEqual(["c0", "c2", None], [asked["variables"].get("after") for asked in played.asked[1::2]])
        self.assertEqual({"authorization": "Bearer secret"}, played.asked[0])

    def test_a_feed_ends_with_what_trying_again_cannot_mend(self) -> None:
        def refused(wire: Wire) -> None:
            wire.say({"type": "error", "payload": [fault("FORBIDDEN")]})

        for talk, code in ((refused, "FORBIDDEN"), (lambda wire: wire.close(4403), "UNAUTHENTICATED")):
            with self.assertRaises(PlatformError) as failed:
                list(Client(Played(self, talks=(talk,)).url).subscribe(operations.watch_timeline(instance_id="i")))
            self.assertEqual(code, failed.exception.code)

    def test_an_operation_is_followed_by_its_id_over_a_lost_connection_and_an_older_platform(self) -> None:
        def older(wire: Wire) -> None:
            wire.say({"type": "error", "payload": [fault("DOCUMENT_INVALID")]})

        def running(wire: Wire) -> None:
            wire.next({"operationProgress": {"id": "op_1", "state": "RUNNING"}})
            wire.close(1001)

        def ended(wire: Wire) -> None:
            wire.next({"operationProgress": {"id": "op_1", "state": "RUNNING"}})
            wire.next(END)
            wire.hear()

        played = Played(self, talks=(older, running, ended))
        seen = [operation["state"] for operation in Client(played.url).operation("op_1").watch()]
        self.assertEqual(["RUNNING", "SUCCEEDED"], seen)
        document = operations.watch_operation("op_1").document
        self.assertEqual([document.text, document.older, document.older], [asked["query"] for asked in played.asked[1::2]])

    def test_a_feed_that_completes_first_is_asked_after(self) -> None:
        played = Played(self, data({"operation": {"id": "op_1", "state": "FAILED"}}),
                        talks=(lambda wire: wire.say({"id": "1", "type": "complete"}),))
        self.assertEqual("FAILED", Client(played.url).operation("op_1").wait()["state"])

    def test_waiting_ends_after_its_time_and_when_it_is_closed(self) -> None:
        def silent(wire: Wire) -> None:
            wire.hear()

        with self.assertRaises(TimeoutError):
            Client(Played(self, talks=(silent,)).url).operation("op_1").wait(seconds=0.2)
        reached = threading.Event()

        def tells(wire: Wire) -> None:
            reached.set()
            wire.hear()

        feed = Client(Played(self, talks=(tells,)).url).subscribe(operations.watch_timeline(instance_id="i"))

        def closes() -> None:
            reached.wait(10)
            feed.close()

        threading.Thread(target=closes).start()
        began = time.monotonic()
        self.assertEqual([], list(feed))
        self.assertLess(time.monotonic() - began, 5, "the reader was not woken")


if __name__ == "__main__":
    unittest.main()
