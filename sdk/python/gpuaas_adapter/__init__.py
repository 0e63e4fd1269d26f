"""gpuaas_adapter is what the author of an app adapter in Python builds on: the adapter contract 1.1 as a server.

The platform owns what an operation is: its identity, who requested it, its deadline, its audit. The adapter owns what
it means: how one app boots, joins, drains and leaves. This kit is a convenience over docs/adapter-contract, and never a
second source of truth. The author writes an App; docs/guides/write-an-adapter-in-python.md walks through one.

The kit verifies every request, journals a dispatch before it answers, fences it by its attempt, resumes after a kill
what had not ended, and repeats nothing: the node tasks of a run carry keys made of operation, attempt, member and step,
and what a step sends is on disk before it is sent.
"""

from . import tasks
from .app import App, Call, PlanCall, check_counts, observe_members, plan_of_work
from .contract import Failure, Health, Json, MemberStatus, Refusal, is_unreachable, malformed, refuse
from .controller import Controller, listen, main
from .log import Log, hide, new_log
from .platform import ApiError, Client
from .run import Ask, Run
from .scope import Interrupted, pause, within
from .seal import Keys, seal
from .tasks import Task, TaskResult
from .types import Asked, Dispatch, Instance, Member, Node, PlanRequest, PosixIdentity, write_time
from .usage import UsageLog

__all__ = [
    "ApiError", "App", "Ask", "Asked", "Call", "Client", "Controller", "Dispatch", "Failure", "Health", "Instance",
    "Interrupted", "Json", "Keys", "Log", "Member", "MemberStatus", "Node", "PlanCall", "PlanRequest", "PosixIdentity",
    "Refusal", "Run", "Task", "TaskResult", "UsageLog", "check_counts", "hide", "is_unreachable", "listen", "main", "malformed",
    "new_log", "observe_members", "pause", "plan_of_work", "refuse", "seal", "tasks", "within", "write_time",
]
