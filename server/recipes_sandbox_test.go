package server

import "github.com/gpuaas/app-platform/domain/ids"

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
	"query appOnboarding": func(v, _ *house) []arguments {
		return []arguments{{"appSlug": v.published}, {"appSlug": v.Slug}}
	},
	"mutation checkAppOnboarding": plain(func(v, _ *house) []object {
		return []object{{"appSlug": v.published, "reason": "mine"}, {"appSlug": v.Slug, "version": "1.0.0"}}
	}),
	"query gaps": func(v, _ *house) []arguments {
		return []arguments{{"filter": object{"appSlug": v.published}}, {"filter": object{"projectId": v.Project}}, {}}
	},
	"mutation raiseGap": input(func(v, _ *house) []object {
		return []object{{"appSlug": v.published, "kind": "MISSING_KEY", "title": "mine", "description": "mine",
			"instanceId": v.Instance}}
	}),
	"mutation decideGap": plain(func(v, _ *house) []object {
		return []object{{"gapId": v.Gap, "to": "DECLINED", "reason": "mine"}}
	}),
	"mutation closeGap": plain(func(v, _ *house) []object {
		return []object{{"gapId": v.Gap, "release": "mine", "reason": "mine"}}
	}),
}

// addGap notes a gap of the app that the house publishes.
func (b *bench) addGap(h *house) {
	h.Gap = ids.New(ids.Gap)
	b.SQL(`INSERT INTO gap (id, tenant_id, project_id, app_slug, manifest_id, version, condition, kind, state, title,
		description,
		evidence, raiser_kind, raiser_id, raiser_name, created_at) VALUES ($1, $2, $3, $4, $5, '0.1.0', '', 'MISSING_KEY',
		'ACCEPTED', 'a key', 'a key is missing', '{}', 'USER', $6, 'admin',
		now())`, h.Gap, h.Tenant, h.Project, h.published,
		h.Draft, h.User)
}
