package server

// recipesOfSandboxes are the recipes of what publishers register for themselves.
var recipesOfSandboxes = map[string]func(v, a *house) []arguments{
	"mutation createSandboxApp": input(func(v, _ *house) []object {
		return []object{{"projectId": v.Project, "slug": v.Slug + "-mine", "displayName": "Mine", "summary": "Mine.",
			"permissionFamily": "apps"}}
	}),
	"mutation openApp": plain(func(v, _ *house) []object { return []object{{"appSlug": v.Slug, "reason": "mine"}} }),
	"mutation registerSandboxAdapter": plain(func(v, _ *house) []object {
		return []object{{"projectId": v.Project, "name": "mine", "url": "http://127.0.0.1:1"}}
	}),
	"mutation setOperatorAccount": plain(func(v, a *house) []object {
		return []object{{"instanceId": v.Instance}, {"instanceId": v.Instance, "serviceAccountId": v.Account},
			{"instanceId": a.Instance, "serviceAccountId": v.Account}}
	}),
	"mutation issueOperatorToken": func(v, _ *house) []arguments { return one("instanceId", v.Instance) },
}
