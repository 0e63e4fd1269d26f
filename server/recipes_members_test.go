package server

// recipesOfMembers are the recipes of changes of several members.
var recipesOfMembers = map[string]func(v, a *house) []arguments{
	"mutation issueSshCertificate": plain(func(v, _ *house) []object {
		return []object{{"instanceId": v.Instance, "publicKey": someKey, "reason": "to look"},
			{"instanceId": v.Instance, "publicKey": someKey, "endpoint": "login"}}
	}),
	"mutation issueSshHostCertificate": plain(func(v, _ *house) []object {
		return []object{{"memberId": v.Member, "publicKey": someKey}}
	}),
	"query triage":            triaged,
	"query supportBundle":     triaged,
	"query planRemoveMembers": plain(func(v, _ *house) []object { return []object{{"memberIds": []any{v.Member}}} }),
	"query planScaleComponent": plain(func(v, _ *house) []object {
		return []object{
			{"instanceId": v.Instance, "componentKey": "worker", "count": 0},
			{"instanceId": v.Instance, "componentKey": "worker", "count": 9, "allocationIds": []any{v.Free}},
		}
	}),
	"query memberUsage": func(v, a *house) []arguments {
		return []arguments{
			{"projectId": v.Project}, {"projectId": v.Project, "instanceId": v.Instance},
			{"projectId": v.Project, "instanceId": a.Instance}, {"projectId": a.Project, "instanceId": v.Instance},
		}
	},
	"mutation removeMembers": input(func(v, _ *house) []object {
		return []object{{"memberIds": []any{v.Member}, "reason": "mine"}}
	}),
	"mutation scaleComponent": input(func(v, a *house) []object {
		return []object{
			{"instanceId": v.Instance, "componentKey": "worker", "count": 0, "reason": "mine"},
			{"instanceId": v.Instance, "componentKey": "worker", "count": 9, "allocationIds": []any{a.Free},
				"reason": "mine"},
		}
	}),
}

// triaged are the ids by which a report can be requested. In one's own house no request named the free allocation or
// the task: no report on them exists.
func triaged(v, a *house) []arguments {
	all := []arguments{{"id": v.Operation}, {"id": v.Instance}, {"id": v.Member}}
	if v != a {
		all = append(all, arguments{"id": v.Free}, arguments{"id": v.Task})
	}
	return all
}
