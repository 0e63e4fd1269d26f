"""Every operation against a platform of version 1 of the API, whose address is given to the tests."""

from __future__ import annotations

import os
import unittest
from pathlib import Path

from gpuaas_client import Client, Document, PlatformError, Query, operations

PLATFORM, NEWER = os.environ.get("OLDER_PLATFORM", ""), os.environ.get("NEWER_OPERATIONS", "")


@unittest.skipUnless(PLATFORM, "OLDER_PLATFORM names no platform of version 1: go test ./examples -run OlderPlatform does")
class OlderTest(unittest.TestCase):
    def test_every_operation_is_served_or_refused_as_newer(self) -> None:
        client, refused = Client(PLATFORM), []
        documents = [value for value in vars(operations).values() if isinstance(value, Document)]
        self.assertGreater(len(documents), 200)
        for document in documents:
            try:
                self.assertIsInstance(client.request(Query[object](document, {})), dict)
            except PlatformError as error:
                self.assertEqual("DOCUMENT_INVALID", error.code)
                refused.append(document.name)
        self.assertEqual(sorted(Path(NEWER).read_text().split()), sorted(refused))
        found = client.request(operations.get_instance("ins_1"))["instance"]
        self.assertEqual("a value of tomorrow", found["status"])
        self.assertNotIn("generation", found)


if __name__ == "__main__":
    unittest.main()
