"""The adapter without a platform: python3 -m unittest. `appctl adapter check` executes the node tasks, too."""

import tempfile
import unittest
from pathlib import Path

from adapter import app
from gpuaas_adapter.testing import FakePlatform


class AdapterTest(unittest.TestCase):
    def test_an_instance_lives_from_launch_to_teardown(self) -> None:
        platform = self.enterContext(FakePlatform())
        adapter = platform.adapter([app], Path(self.enterContext(tempfile.TemporaryDirectory())))
        adapter.start()
        self.addCleanup(adapter.stop)
        for operation, kind in (("op_1", "instance.create"), ("op_2", "instance.decommission")):
            platform.call(adapter, "PUT", f"/v1/operations/{operation}", platform.dispatch(operation, kind, app))
            self.assertEqual("succeeded", platform.await_end(adapter, operation)["state"])

    def test_more_members_than_the_manifest_allows_are_refused(self) -> None:
        platform = self.enterContext(FakePlatform())
        adapter = platform.adapter([app], Path(self.enterContext(tempfile.TemporaryDirectory())))
        adapter.start()
        self.addCleanup(adapter.stop)
        body = platform.dispatch("op_1", "instance.create", app, members=17)
        code, error = platform.call(adapter, "PUT", "/v1/operations/op_1", body)
        self.assertEqual((422, "ABOVE_MAXIMUM"), (code, error["code"]))


if __name__ == "__main__":
    unittest.main()
