package cli_test

import "github.com/gpuaas/app-platform/sdk/client/clienttest"

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
				"allowed": true},
			"evidence": []object{{"kind": "STEP", "id": nil, "at": at, "what": "residue", "state": "RUNNING",
				"message": "waits for the node"}, {"kind": "TASK", "id": "tsk_1", "at": at, "what": "RUN", "state": "LOST",
				"message": ""}},
		}, nil
	})
}
