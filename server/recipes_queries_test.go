package server

// recipesOfQueries are the recipes of the queries and subscriptions that have no file of their own.
var recipesOfQueries = map[string]func(v, a *house) []arguments{
	"query node": func(v, _ *house) []arguments {
		var all []arguments
		for _, id := range v.secrets() {
			all = append(all, arguments{"id": id})
		}
		return all
	},
	"query viewer":         none,
	"query roles":          none,
	"query permissionKeys": none,
	"query roleBindings": func(v, _ *house) []arguments {
		return []arguments{{"tenantId": v.Tenant}, {"projectId": v.Project},
			{"projectId": v.Project, "ended": true}}
	},
	"query project":         func(v, _ *house) []arguments { return one("id", v.Project) },
	"query tenants":         none,
	"query users":           func(v, _ *house) []arguments { return one("tenantId", v.Tenant) },
	"query serviceAccounts": inProject,
	"query allocations":     inProject,
	"query apps":            none,
	"query app":             func(v, _ *house) []arguments { return one("slug", v.Slug) },
	"query lintManifest":    func(_, _ *house) []arguments { return one("document", object{}) },
	"query artifacts":       none,
	"query artifact": func(v, a *house) []arguments {
		all := []arguments{{"digest": v.digest, "tenantId": v.Tenant}}
		if v != a { // without a tenant it is the platform's that is asked for, which is not the house's either
			all = append(all, arguments{"digest": v.digest})
		}
		return all
	},
	"query adapters":    func(v, _ *house) []arguments { return []arguments{{}, {"projectId": v.Project}} },
	"query nodes":       none,
	"query fleet":       none,
	"query nodeMembers": func(v, _ *house) []arguments { return one("nodeId", v.Node) },
	"query nodeNetwork": none, "query nodeVolumes": none,
	"query nodeTask":  func(v, _ *house) []arguments { return one("id", v.Task) },
	"query nodeTasks": func(v, _ *house) []arguments { return one("memberId", v.Member) },
	"query instance":  func(v, _ *house) []arguments { return one("id", v.Instance) },
	"query instances": inProject,
	"query launchOptions": func(v, _ *house) []arguments {
		return []arguments{{"projectId": v.Project, "appSlug": v.Slug}}
	},
	"query operation":    func(v, _ *house) []arguments { return one("id", v.Operation) },
	"query operations":   inProject,
	"query auditEntries": inProject,
	"query searchAudit": func(v, _ *house) []arguments {
		return []arguments{{"filter": object{"projectId": v.Project}}, {"filter": object{"tenantId": v.Tenant}}}
	},
	"query auditChain":       none,
	"query auditCheckpoints": none,
	"query member":           func(v, _ *house) []arguments { return one("id", v.Member) },
	"query controlPlaneShares": func(v, _ *house) []arguments {
		return []arguments{{"projectId": v.Project, "ended": true}, {"projectId": v.Sibling}}
	},
	"query impactOf": func(v, _ *house) []arguments { return one("instanceId", v.Instance) },
	"query orphans": func(v, _ *house) []arguments {
		return []arguments{{"projectId": v.Project, "resolved": true}}
	},
	"query skuPrices": none,
	"query usageRecords": func(v, _ *house) []arguments {
		return []arguments{{"filter": object{"projectId": v.Project}},
			{"filter": object{"projectId": v.Project, "instanceId": v.Instance}}}
	},
	"query usageSums": func(v, _ *house) []arguments {
		return []arguments{{"filter": object{"projectId": v.Project}, "hourly": true}}
	},
	"query usageSources":    inProject,
	"query usageQuarantine": func(v, _ *house) []arguments { return one("projectId", v.Project) },
	"query explainPermission": plain(func(v, _ *house) []object {
		return []object{
			{"permissionKey": "apps.instance.read", "objectId": v.Instance},
			{"permissionKey": "apps.instance.read", "objectId": v.Project, "subjectId": v.User},
			{"permissionKey": "project.read", "objectId": v.Project, "subjectId": v.Account},
			{"permissionKey": "manifest.read", "objectId": v.Draft},
		}
	}),
	"query madeUnder": func(v, _ *house) []arguments { return one("bindingId", v.Binding) },
	"query planServiceAccountUpdate": plain(func(v, _ *house) []object {
		return []object{{"serviceAccountId": v.Account, "liftLimits": []any{"MAX_RISK"}}}
	}),
	"query policyOverlays": func(v, _ *house) []arguments {
		return []arguments{{"projectId": v.Project}, {"tenantId": v.Tenant}}
	},
	"query effectivePolicy": inProject,
	// the platform's is not the house's to look at
	"query previewPolicy": func(v, a *house) []arguments { return overlays(v, a)[:2] },
	"query entitlements": func(v, _ *house) []arguments {
		return []arguments{{"projectId": v.Project, "ended": true}}
	},
	"query runtimeSecrets": func(v, _ *house) []arguments {
		return []arguments{{"instanceId": v.Instance, "ended": true}}
	},
	// The attacker's own instance with the victim's allocation is in the tests of the verb.
	"query planAddMembers": plain(func(v, _ *house) []object {
		return []object{
			{"instanceId": v.Instance, "componentKey": "worker", "count": 1, "allocationIds": []any{v.Free}},
			{"instanceId": v.Instance, "componentKey": "worker", "count": 1,
				"intent": object{"shape": "BAREMETAL"}},
		}
	}),
	// In a project of one's own a plan is shown: that another's allocation is not found is in it.
	"query planLaunchInstance": plain(func(v, _ *house) []object {
		return []object{{"projectId": v.Project, "appSlug": v.Slug, "name": "mine", "allocationIds": []any{v.Free}}}
	}),
	"query planReleaseAllocation": func(v, _ *house) []arguments { return []arguments{{"allocationId": v.Free}} },
	"query planDrainMember":       ofMember,
	"query planRemoveMember":      ofMember,
	"query planReplaceMember": plain(func(v, a *house) []object {
		return []object{{"memberId": v.Member}, {"memberId": v.Member, "allocationId": a.Free}}
	}),
	"query planUpgradeInstance": plain(func(v, _ *house) []object {
		return []object{{"instanceId": v.Instance, "config": object{}}}
	}),
	"query planRollbackInstance": plain(func(v, _ *house) []object {
		return []object{{"instanceId": v.Instance}}
	}),
	"query planRetryOperation": plain(func(v, _ *house) []object {
		return []object{{"operationId": v.Operation}}
	}),
	"query planDecommissionInstance": plain(func(v, _ *house) []object {
		return []object{{"instanceId": v.Instance, "force": true}}
	}),
	"query webhooks":          inProject,
	"query webhookDeliveries": func(v, _ *house) []arguments { return one("webhookId", v.Webhook) },
	"query artifactSources":   func(v, _ *house) []arguments { return one("tenantId", v.Tenant) },
	"query evidenceRunners":   none,
	"query manifests": func(v, _ *house) []arguments {
		return []arguments{{}, {"appSlug": v.Slug, "stages": []string{"ACTIVE"}}}
	},
	"query canaryReport":             func(v, _ *house) []arguments { return one("manifestId", v.Manifest) },
	"subscription nodeTasks":         none,
	"subscription memberLogs":        func(v, _ *house) []arguments { return one("memberId", v.Member) },
	"subscription instanceTimeline":  func(v, _ *house) []arguments { return one("instanceId", v.Instance) },
	"subscription projectActivity":   inProject,
	"subscription operationProgress": func(v, _ *house) []arguments { return one("operationId", v.Operation) },
}
