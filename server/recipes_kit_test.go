package server

import "maps"

// object is an input object.
type object = map[string]any

// arguments are what a root field is called with.
type arguments map[string]any

// signerPEM is a public key that anybody may ask to be trusted.
const signerPEM = "-----BEGIN PUBLIC " +
	"KEY-----\nMCowBQYDK2VwAyEAGb9ECWmEzf6FQbrBZ9w7lshQhqowtrbLDFw4rXAxZuE=\n-----END PUBLIC KEY-----\n"

func none(_, _ *house) []arguments { return []arguments{{}} }

func one(name string, value any) []arguments { return []arguments{{name: value}} }

func inProject(v, _ *house) []arguments { return one("projectId", v.Project) }

func ofMember(v, a *house) []arguments {
	return plain(func(v, _ *house) []object { return []object{{"memberId": v.Member, "force": true}} })(v, a)
}

func changeOfMember(v, a *house) []arguments {
	return input(func(v, _ *house) []object { return []object{{"memberId": v.Member, "reason": "mine"}} })(v, a)
}

// overlays are those that somebody else would write, on every level.
func overlays(v, a *house) []arguments {
	return plain(func(v, _ *house) []object {
		rest := object{"document": object{"maxMembers": 0}, "expectedRevision": 0, "reason": "mine"}
		ofProject, ofTenant := maps.Clone(rest), maps.Clone(rest)
		ofProject["projectId"], ofTenant["tenantId"] = v.Project, v.Tenant
		return []object{ofProject, ofTenant, rest}
	})(v, a)
}

func entitlementOf(v, _ *house) []arguments {
	return []arguments{{"projectId": v.Project, "appSlug": v.Slug}}
}

// plain wraps input objects in their argument.
func plain(make func(v, a *house) []object) func(v, a *house) []arguments {
	return func(v, a *house) (all []arguments) {
		for _, in := range make(v, a) {
			all = append(all, arguments{"input": in})
		}
		return all
	}
}

// input is plain with an idempotency key.
func input(make func(v, a *house) []object) func(v, a *house) []arguments {
	return plain(func(v, a *house) []object {
		all := make(v, a)
		for _, in := range all {
			in["idempotencyKey"] = "attack"
		}
		return all
	})
}

// pricesOf are prices that somebody else would set: for the house's project and tenant, and for everyone.
func pricesOf(from string) func(v, a *house) []object {
	return func(v, _ *house) []object {
		rest := object{"meter": "tokens", "currency": "EUR", "tiers": []any{object{"price": "1"}}, "validFrom": from,
			"reason": "mine"}
		ofProject, ofTenant := maps.Clone(rest), maps.Clone(rest)
		ofProject["projectId"], ofTenant["tenantId"] = v.Project, v.Tenant
		return []object{ofProject, ofTenant, rest}
	}
}
