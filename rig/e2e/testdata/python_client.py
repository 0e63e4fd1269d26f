"""Asks a real platform about an instance that has ended, with the typed client: its operations, and its timeline twice,
the second time behind the first item. Prints how many items there are."""

import os
import sys

from gpuaas_client import Client, PlatformError, operations

client = Client(os.environ["APPCTL_SERVER"], os.environ["APPCTL_TOKEN"])
instance = client.request(operations.get_instance(sys.argv[1]))["instance"]
assert instance["status"] == "STOPPED", instance["status"]
page = client.repeat(operations.list_operations(project_id=instance["projectId"], first=100))["operations"]
mine = [edge["node"] for edge in page["edges"] if edge["node"]["instanceId"] == instance["id"]]
assert {one["kind"] for one in mine} > {"INSTANCE_CREATE", "INSTANCE_UPGRADE", "INSTANCE_DECOMMISSION"}, mine
assert client.operation(mine[0]["id"]).wait(seconds=20)["state"] == "SUCCEEDED"


def timeline(after: str | None) -> list[str]:
    """timeline returns the cursors of the events behind one."""
    found: list[str] = []
    try:
        with client.subscribe(operations.watch_timeline(instance_id=instance["id"], after=after),
                              cursor_of=lambda item: item["instanceTimeline"]["cursor"], seconds=20) as feed:
            for item in feed:
                found.append(item["instanceTimeline"]["cursor"])
                if item["instanceTimeline"]["type"] == "apps.instance.deleted":
                    return found
    except TimeoutError:
        sys.exit(f"the end of the instance is not in its timeline: {found}")
    return found


whole = timeline(None)
assert timeline(whole[0]) == whole[1:]
try:
    client.request(operations.get_instance("ins_00000000000000000000000000"))
except PlatformError as error:
    assert error.code == "NOT_FOUND" and error.correlation_id, error
else:
    sys.exit("an instance that is not there was found")
try:
    list(Client(os.environ["APPCTL_SERVER"], "gpu_sak_wrong").subscribe(operations.watch_timeline(instance_id=instance["id"])))
except PlatformError as error:
    assert error.needs_login, error
else:
    sys.exit("a wrong token reads a feed")
print(len(whole))
