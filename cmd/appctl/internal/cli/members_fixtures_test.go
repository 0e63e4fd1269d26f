package cli_test

import "github.com/gpuaas/app-platform/sdk/client/clienttest"

func member() object {
	return object{
		"id": "mem_1", "instanceId": "ins_1", "componentKey": "worker", "index": 0, "status": "ACTIVE",
		"health":   "HEALTHY",
		"cordoned": true, "healthMessage": "answers\x1b[31m quickly",
		"labels": object{"zone": "a", "rack": "7"}, "node": object{"id": "nod_1", "name": "na"},
		"allocation":    object{"id": "alc_1", "name": "slot-1"},
		"lastOperation": operation("MEMBER_CORDON", "SUCCEEDED", 100), "adapterDetail": object{"load": 3},
		"createdAt": at,
		"updatedAt": at,
		"logs": object{"lines": logLines(), "cursor": "l4", "more": false, "source": "NODE",
			"processes": []string{"server", "worker"}},
	}
}

func blocker() object {
	return object{
		"code": "WORK_RUNNING", "message": "2 jobs still run", "owner": "user", "subject": "mem_1", "since": at,
		"nextRetryAt":   at,
		"permissionKey": "apps.queue.cancel",
	}
}

func work() object {
	return object{"kind": "job", "id": "ins_1/job/mem_1/17", "workId": "17", "name": "train", "memberId": "mem_1",
		"owner": "ada", "since": at, "message": "an hour to go"}
}

// plan is one of a verb that would be accepted.
func plan(kind, action string) object {
	return object{
		"hash": "abc123", "kind": kind, "instance": object{"id": "ins_1", "name": "one"}, "allowed": true,
		"members": []object{
			{"member": member(), "componentKey": "worker", "action": action,
				"allocation": object{"id": "alc_1", "name": "slot-1"}, "reachable": true},
			{"componentKey": "worker", "action": "ADD", "reachable": false},
		},
		"workLost": []object{work()}, "workLostTotal": 3, "reversible": false, "reversal": "what ran is lost",
		"verdicts": []object{
			{"source": "STATE", "outcome": "ALLOWED"}, {"source": "POLICY", "outcome": "ALLOWED"},
			{"source": "ADAPTER", "outcome": "UNKNOWN", "reasons": []object{{"code": "ADAPTER_UNAVAILABLE",
				"message": "the adapter does not plan"}}},
		},
		"supersedes": []object{operation("MEMBER_DRAIN", "RUNNING", 20)},
		"change":     object{"counts": object{"worker": 1}},
		"impact":     impact(1), "cost": planCost(),
	}
}

// refused is a plan that says no, twice.
func refused(kind string) object {
	found := plan(kind, "REMOVE")
	found["allowed"] = false
	found["verdicts"] = []object{
		{"source": "STATE", "outcome": "REFUSED", "reasons": []object{{"code": "CONFLICT",
			"message": "op_7 is under way"}}},
		{"source": "COMPATIBILITY", "outcome": "REFUSED",
			"reasons": []object{{"code": "INVALID_ARGUMENT", "message": "needs 1 worker at least",
				"path": "input.memberId"}}},
	}
	return found
}

// stuckOperation is one that shows everything that an operation can show.
func stuckOperation() object {
	op := operation("MEMBER_DRAIN", "RUNNING", 40)
	op["id"], op["targetIds"], op["onDeadline"], op["retryOf"] = "op_9", []string{"mem_1"}, "FORCE", "op_8"
	op["blockers"], op["waitsFor"] = []object{blocker()}, []object{work()}
	op["cancelRequestedAt"], op["cancelRequester"], op["cancelMessage"] = at, "Ada", "too late: the last job has ended"
	op["evidence"], op["costSoFar"] = object{"jobs": 0}, object{"currency": "EUR", "amount": "3.75"}
	return op
}

func orphan() object {
	return object{
		"id": "orp_1", "kind": "NODE_RESIDUE", "projectId": "prj_1", "instanceId": "ins_1",
		"operation":  object{"id": "op_1"},
		"member":     object{"id": "mem_1", "componentKey": "worker", "index": 0},
		"node":       object{"id": "nod_1", "name": "na"},
		"allocation": object{"id": "alc_1", "name": "slot-1"}, "owner": "node", "message": "the node does not answer",
		"ageSeconds": 5400,
		"hourlyCost": object{"currency": "EUR", "amount": "2.50"},
		"costSoFar":  object{"currency": "EUR", "amount": "3.75"},
		"attempts":   4,
		"lastError":  "the agent is not connected", "nextTryAt": at, "createdAt": at,
	}
}

// addMemberFixtures gives the stand-in the verbs of members and instances.
func addMemberFixtures(s *clienttest.Server) {
	inst := instance()
	inst["members"] = page(member())
	inst["blockers"], inst["orphans"] = []object{blocker()}, []object{orphan()}
	inst["drift"] = []object{{"code": "MEMBER_MISSING", "message": "the app does not know it", "memberId": "mem_1"}}
	inst["generations"] = []object{
		{"id": "gen_2", "number": 2, "appVersion": "1.2.0", "config": object{"greeting": "hi"}, "operationId": "op_1",
			"createdAt": at},
		{"id": "gen_1", "number": 1, "appVersion": "1.1.0", "config": object{}, "createdAt": at},
	}
	price := object{"id": "sku_1", "sku": "gpu-large", "hourly": object{"currency": "EUR", "amount": "2.50"},
		"updatedAt": at}
	s.Handle("instance", func(call clienttest.Call) (any, error) {
		if call.Args["id"] == "ins_1" {
			return inst, nil
		}
		return instance(), nil
	})
	s.Handle("operation", func(call clienttest.Call) (any, error) {
		if call.Args["id"] == "op_9" {
			return stuckOperation(), nil
		}
		if call.Args["id"] == "op_5" {
			op := operation("INSTANCE_CREATE", "FAILED", 40)
			op["id"], op["steps"] = "op_5", []object{{"name": "dispatch", "state": "FAILED", "attempt": 1,
				"message":   "sent",
				"startedAt": at}, {"name": "readiness", "state": "PENDING", "attempt": 0, "message": ""}}
			return op, nil
		}
		return operation("INSTANCE_CREATE", "RUNNING", 40), nil
	})
	changed := func(kind string) object {
		return object{"member": member(), "operation": operation(kind, "PENDING", 0)}
	}
	for field, value := range map[string]any{
		"member":                   member(),
		"planAddMembers":           plan("MEMBERS_ADD", "ADD"),
		"planDrainMember":          plan("MEMBER_DRAIN", "DRAIN"),
		"planRemoveMember":         plan("MEMBER_REMOVE", "REMOVE"),
		"planRemoveMembers":        plan("MEMBER_REMOVE", "REMOVE"),
		"planScaleComponent":       plan("MEMBER_REMOVE", "REMOVE"),
		"planReplaceMember":        plan("MEMBER_REPLACE", "REPLACE"),
		"planUpgradeInstance":      plan("INSTANCE_UPGRADE", "CHANGE"),
		"planRollbackInstance":     plan("INSTANCE_ROLLBACK", "CHANGE"),
		"planDecommissionInstance": plan("INSTANCE_DECOMMISSION", "REMOVE"),
		"planRetryOperation":       plan("MEMBER_DRAIN", "DRAIN"),
		"nodeTasks":                page(task()), "nodeTask": task(),
		"addMembers": object{"instance": instance(), "members": []object{member(), member()},
			"operation": operation("MEMBERS_ADD", "PENDING", 0)},
		"removeMembers": object{"instance": instance(), "members": []object{member(), member()},
			"operation": operation("MEMBER_REMOVE", "PENDING", 0)},
		"scaleComponent": object{"instance": instance(), "added": []object{}, "removed": []object{member()},
			"operation": operation("MEMBER_REMOVE", "PENDING", 0)},
		"drainMember":    changed("MEMBER_DRAIN"),
		"removeMember":   changed("MEMBER_REMOVE"),
		"cordonMember":   changed("MEMBER_CORDON"),
		"uncordonMember": changed("MEMBER_UNCORDON"),
		"recoverMember":  changed("MEMBER_RECOVER"),
		"labelMember":    changed("MEMBER_LABEL"),
		"replaceMember": object{"member": member(), "replacement": member(),
			"operation": operation("MEMBER_REPLACE", "PENDING", 0)},
		"upgradeInstance":  object{"instance": instance(), "operation": operation("INSTANCE_UPGRADE", "PENDING", 0)},
		"rollbackInstance": object{"instance": instance(), "operation": operation("INSTANCE_ROLLBACK", "PENDING", 0)},
		"cancelOperation":  object{"operation": operation("MEMBER_DRAIN", "CANCELING", 40)},
		"retryOperation":   object{"operation": operation("MEMBER_DRAIN", "PENDING", 0)},
		"orphans":          page(orphan()),
		"retryOrphan":      orphan(),
		"usageRecords":     page(usageRecord),
		"usageSums": []object{{"hour": "2026-11-23T12:00:00Z", "basis": "CAPACITY", "meter": "gpu_seconds",
			"unit": "second", "borneBy": "PLATFORM", "borneReason": "NODE_SILENT", "quantity": "7200", "records": 60}},
		"usageSources": []object{{"source": "alc_1", "basis": "CAPACITY", "recordedTo": "2026-11-23T12:00:00Z",
			"provedTo": "2026-11-23T12:00:04Z", "failures": 0, "lastError": ""}},
		"usageQuarantine": page(object{"id": "uqr_1", "projectId": "prj_1", "source": "ins_1", "meter": "jobs",
			"usageId": "job-1",
			"code":    "USAGE_ID_REUSED", "field": "id", "message": "id belongs to a record with other content",
			"record": object{"id": "job-1"}, "createdAt": "2026-11-23T12:00:00Z"}),
		"skuPrices":       []object{price},
		"setSkuPrice":     price,
		"setProjectQuota": project(),
	} {
		s.Handle(field, answer(value))
	}
}

// usageRecord is a minute of an allocation.
var usageRecord = object{"source": "alc_1", "meter": "gpu_seconds", "usageId": "2026-11-23T12:00:00Z",
	"basis": "CAPACITY", "unit": "second",
	"quantity": "120", "fromAt": "2026-11-23T12:00:00Z", "toAt": "2026-11-23T12:01:00Z", "projectId": "prj_1",
	"instanceId":   "ins_1",
	"allocationId": "alc_1", "memberId": "mem_1", "componentKey": "worker", "operationId": "op_1", "sku": "gpu-large",
	"region":  "eu",
	"session": "alc_1", "retracts": nil, "borneBy": "TENANT", "borneReason": nil, "borneOwner": nil,
	"recordedAt": "2026-11-23T12:01:06Z"}

// task is a command that ran on a node.
func task() object {
	return object{"id": "tsk_1", "memberId": "mem_1", "instanceId": "ins_1", "nodeId": "nod_1", "operationId": "op_1",
		"correlationId": "corr-1",
		"kind":          "RUN",
		"spec":          object{"command": []string{"hostname"}}, "fence": 1, "state": "SUCCEEDED",
		"cancelRequested": false,
		"timeoutSeconds":  60,
		"exitCode":        0, "result": object{"exitCode": 0}, "message": "done", "stdout": "node-1\nnode-2\n",
		"stderr":    "",
		"createdAt": at,
		"startedAt": at, "endedAt": at}
}

// logLines are a line, one on standard error with what a terminal would obey, and two gaps.
func logLines() []object {
	return []object{
		{"cursor": "l1", "process": "server", "at": at, "stream": "STDOUT", "text": "listening", "continues": false},
		{"cursor": "l2", "process": "server", "at": at, "stream": "STDERR", "text": "a \x1b[31mred\x1b[0m word",
			"continues": false},
		{"cursor": "l3", "process": "server", "text": "", "continues": false,
			"gap": object{"lines": 12, "restarted": false}},
		{"cursor": "l4", "process": "worker", "text": "", "continues": false, "gap": object{"restarted": true}},
	}
}
