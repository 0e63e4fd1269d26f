package server

// recipesOfNodes are the recipes of changes of nodes and their tasks.
var recipesOfNodes = map[string]func(v, a *house) []arguments{
	"mutation cordonNode":          plain(onNode),
	"mutation uncordonNode":        plain(onNode),
	"mutation drainNode":           plain(onNode),
	"mutation retireNode":          plain(onNode),
	"mutation deleteNode":          plain(onNode),
	"mutation createNodeEnrolment": plain(func(_, _ *house) []object { return []object{{"name": "mine"}} }),
	"mutation enrolNode": plain(func(_, _ *house) []object {
		return []object{{"name": "mine", "address": "192.0.2.66",
			"sealingKey": "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=", "agentVersion": "1",
			"bootId": "1", "inventory": object{"cpus": 1, "memoryMiB": 1, "gpus": 0, "gpusSimulated": true,
				"isolation": "PROCESS"}}}
	}),
	"mutation rotateNodeCredential": none,
	"mutation nodeHeartbeat": plain(func(_, _ *house) []object {
		return []object{{"agentVersion": "1",
			"bootId": "1"}}
	}),
	"mutation reportVolumes": plain(func(v, _ *house) []object {
		return []object{{"volumes": []object{{"id": v.Volume, "state": "PRESENT", "usedBytes": 1}}}}
	}),
	"mutation reportNodeTask": plain(func(v, _ *house) []object {
		return []object{{"taskId": v.Task, "fence": 1, "state": "SUCCEEDED", "exitCode": 0}}
	}),
	"mutation appendNodeTaskOutput": plain(func(v, _ *house) []object {
		return []object{{"taskId": v.Task, "fence": 1, "stream": "STDOUT", "offset": 0, "data": "mine"}}
	}),
	"mutation openArtifactDelivery": func(v, _ *house) []arguments { return one("taskId", v.Fetch) },
	"mutation runNodeTask": input(func(v, _ *house) []object {
		return []object{{"memberId": v.Member, "kind": "RUN", "spec": object{"command": []string{"true"}}}}
	}),
	"mutation cancelNodeTask": func(v, _ *house) []arguments { return one("taskId", v.Task) },
}

// onNode names the victim's node.
func onNode(v, _ *house) []object { return []object{{"nodeId": v.Node, "reason": "mine"}} }
