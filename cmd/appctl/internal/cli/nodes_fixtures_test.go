package cli_test

import "github.com/gpuaas/app-platform/sdk/client/clienttest"

// addNodeFixtures answers what the operators' commands about nodes call.
func addNodeFixtures(s *clienttest.Server) {
	for field, value := range map[string]any{
		"cordonNode":   standing("ONLINE", object{"cordoned": true, "cordonReason": "a fan", "cordonedAt": at}),
		"uncordonNode": standing("ONLINE", nil),
		"drainNode":    standing("ONLINE", object{"cordoned": true, "drain": nodeDrain(true)}),
		"retireNode":   standing("RETIRED", object{"lost": true, "retiredAt": at}),
		"deleteNode":   "nod_1",
		"nodeMembers":  []object{lodger(), refusedLodger()},
		"fleet": object{
			"capacity": []object{{"region": "eu", "sku": "gpu-large", "nodes": 3, "online": 2, "taking": 1,
				"freeNodes": 1, "gpus": 24, "gpusRented": 8, "gpusFree": 8}},
			"troubled": []object{
				standing("ONLINE", object{"conditions": []object{badGPU()}}), standing("OFFLINE", nil),
				standing("ONLINE", object{"cordoned": true, "drain": nodeDrain(false)}),
			},
			"stuck": []object{{"id": "op_9", "kind": "MEMBER_DRAIN", "state": "RUNNING",
				"message": "waits for work to end", "costSoFar": object{"currency": "EUR", "amount": "3.75"},
				"projectId": "prj_1", "createdAt": at, "blockers": []object{blocker()}}},
		},
	} {
		s.Handle(field, answer(value))
	}
}

// standing returns a node in a status, with further fields.
func standing(status string, more object) object {
	node := object{"id": "nod_1", "name": "na", "address": "10.0.0.1", "status": status, "cpus": 8, "memoryMiB": 16000,
		"gpus":     4,
		"gpuModel": "X100", "gpusSimulated": true, "isolation": "NAMESPACE", "lastSeenAt": at, "cordoned": false,
		"lost": false}
	for field, value := range more {
		node[field] = value
	}
	return node
}

// nodeDrain is a drain that an operator requested.
func nodeDrain(force bool) object {
	return object{"since": at, "by": "Olga", "reason": "a fan", "deadlineSeconds": 600, "force": force, "ending": false}
}

// badGPU is a finding of an agent that keeps new members away.
func badGPU() object {
	return object{"name": "gpu", "state": "BAD", "message": "an uncorrectable error", "since": at,
		"effect": "NO_NEW_MEMBERS"}
}

// lodger is a member that is being drained.
func lodger() object {
	return object{"memberId": "mem_1", "componentKey": "worker", "index": 0, "status": "DRAINING", "health": "HEALTHY",
		"instanceId": "ins_1", "instanceName": "one", "instanceStatus": "RUNNING", "appSlug": "hello", "tenant": "acme",
		"project": "demo", "allocationId": "alc_1", "operation": object{"id": "op_9", "kind": "MEMBER_DRAIN",
			"state":   "RUNNING",
			"message": "", "blockers": []object{blocker()}}}
}

// refusedLodger is a member that a drain of its node was refused for.
func refusedLodger() object {
	refused := lodger()
	refused["memberId"], refused["index"], refused["status"] = "mem_2", 1, "ACTIVE"
	refused["operation"] = nil
	refused["refusal"] = object{"code": "CONFLICT", "message": "it is the last of its component", "at": at}
	return refused
}
