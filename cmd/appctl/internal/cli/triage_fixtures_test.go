package cli_test

import (
	"time"

	"github.com/gpuaas/app-platform/sdk/client/clienttest"
	"github.com/gpuaas/app-platform/sdk/supportbundle"
)

// addTriageFixtures gives the stand-in a report of an operation that waits for a node.
func addTriageFixtures(s *clienttest.Server) {
	s.Handle("triage", func(call clienttest.Call) (any, error) {
		return object{
			"correlationId": "cor-1", "operationId": call.Args["id"], "instanceId": "ins_1", "allocationId": nil,
			"projectId": "prj_1", "asked": "INSTANCE_DECOMMISSION",
			"requester": object{"kind": "USER", "id": "usr_1", "name": "Ann"}, "reason": "seen it", "at": at,
			"stands": "BLOCKED", "code": "NODE_OFFLINE", "message": "node na does not answer", "owner": "node",
			"branch": object{"ref": "instance-stuck/stopping/residue-node-unreachable", "runbook": "instance-stuck",
				"title": "An instance that makes no progress", "section": "STOPPING: the teardown does not end",
				"means": "the node does not answer", "do": "start the agent again"},
			"next": object{"mutation": "decommissionInstance", "plan": "planDecommissionInstance",
				"argument": "instanceId", "value": "ins_1", "force": true, "permissionKey": "apps.instance.delete",
				"allowed": call.Args["id"] != "op_denied",
				"document": "mutation Triage($input: DecommissionInstanceInput!) { decommissionInstance(input: " +
					"$input) { operation { id kind state } } }",
				"variables": object{"input": object{"instanceId": "ins_1", "force": true,
					"reason": "triage: NODE_OFFLINE", "idempotencyKey": "triage-1"}},
				"planDocument": "query TriagePlan($input: PlanDecommissionInstanceInput!) { " +
					"planDecommissionInstance(input: $input) { hash kind allowed instance { id name } verdicts { " +
					"source outcome code reasons { path code message } } } }",
				"planVariables": object{"input": object{"instanceId": "ins_1", "force": true}}},
			"evidence": []object{{"kind": "STEP", "id": nil, "at": at, "what": "residue", "state": "RUNNING",
				"message": "waits for the node", "link": "/operations/op_1", "traceId": ""},
				{"kind": "TASK", "id": "tsk_1", "at": at, "what": "RUN", "state": "LOST",
					"message": "", "link": "/workloads/ins_1", "traceId": ""}},
			"traceId": "9c446e0ba458321a026a8779d398dbe5", "costSoFar": object{"amount": "1.50", "currency": "EUR"},
			"others": []object{{"operationId": "op_0", "kind": "MEMBERS_ADD", "state": "FAILED", "at": at}},
			"links":  []object{{"name": "logs", "url": "https://tools.example.com/?id=cor-1"}},
		}, nil
	})
	s.Handle("supportBundle", func(call clienttest.Call) (any, error) {
		var b supportbundle.Builder
		_ = b.Add("step", supportbundle.Row{"name": "residue", "state": "RUNNING", "attempt": 2})
		b.LeaveOut("audit rows", "the caller does not have the permission key for them", 3)
		content, manifest, err := b.File("", time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC))
		text := string(content)
		if call.Args["id"] == "op_changed" {
			text += "{}\n"
		}
		return object{"name": "support-bundle.jsonl", "madeAt": manifest.MadeAt, "content": text,
			"digest": supportbundle.Digest(content), "sections": manifest.Sections, "leftOut": manifest.LeftOut}, err
	})
}
