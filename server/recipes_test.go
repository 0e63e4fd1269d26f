package server

import "maps"

// recipes say, for every root field, how one would call it to get at a house that is not one's own:
// v is the victim's house and a the attacker's. A field without a recipe fails the test.
var recipes = joined(recipesOfBooks, recipesOfSandboxes, recipesOfNodes, recipesOfMembers, recipesOfVolumes,
	recipesOfQueries, recipesOfChanges)

// recipesOfChanges are the recipes of the mutations that have no file of their own.
var recipesOfChanges = map[string]func(v, a *house) []arguments{
	"mutation breakGlassEndOperation": plain(func(v, _ *house) []object {
		return []object{{"operationId": v.Operation, "reason": "the operation of another tenant is in my way"}}
	}),
	"mutation breakGlassGrantRole": plain(func(v, a *house) []object {
		return []object{{"subjectId": a.User, "role": "tenant_admin", "tenantId": v.Tenant, "durationMinutes": 60,
			"reason": "I should like to be another tenant's admin"}}
	}),
	"mutation openEndpoint": plain(func(v, _ *house) []object {
		return []object{{"instanceId": v.Instance, "endpoint": "web"}}
	}),
	"mutation reportUsage": plain(func(v, _ *house) []object {
		return []object{{"instanceId": v.Instance,
			"records": []any{object{"id": "1", "dimension": "jobs", "quantity": "1",
				"from": "2026-11-23T00:00:00Z", "to": "2026-11-23T00:00:00Z"}}}}
	}),
	"mutation setPolicy": overlays,
	"mutation createWebhook": input(func(v, _ *house) []object {
		return []object{{"projectId": v.Project, "url": "https://hooks.test/mine",
			"eventTypes": []string{"apps.*"}}}
	}),
	"mutation updateWebhook": plain(func(v, _ *house) []object {
		return []object{{"webhookId": v.Webhook, "url": "https://hooks.test/mine"},
			{"webhookId": v.Webhook, "paused": false}}
	}),
	"mutation deleteWebhook":       func(v, _ *house) []arguments { return one("webhookId", v.Webhook) },
	"mutation rotateWebhookSecret": func(v, _ *house) []arguments { return one("webhookId", v.Webhook) },
	"mutation replayWebhook": func(v, _ *house) []arguments {
		return []arguments{{"webhookId": v.Webhook, "after": "p0.0.0"}}
	},
	"mutation redeliverWebhook": func(v, _ *house) []arguments { return one("deliveryId", v.Delivery) },
	"mutation createTenant": input(func(_, _ *house) []object {
		return []object{{"slug": "mine", "displayName": "Mine"}}
	}),
	"mutation createProject": input(func(v, _ *house) []object {
		return []object{{"tenantId": v.Tenant, "slug": "mine", "displayName": "Mine"}}
	}),
	"mutation createUser": input(func(v, _ *house) []object {
		return []object{
			{"tenantId": v.Tenant, "email": "mallory@example.test", "displayName": "Mallory"},
			{"email": "staff@example.test", "displayName": "Mallory"},
		}
	}),
	"mutation inviteUser":       func(v, _ *house) []arguments { return one("userId", v.User) },
	"mutation revokeInvitation": func(v, _ *house) []arguments { return one("userId", v.User) },
	"mutation setTenantDomains": plain(func(v, _ *house) []object {
		return []object{{"tenantId": v.Tenant, "domains": []any{"mine.test"}}}
	}),
	"mutation grantRole": plain(func(v, a *house) []object {
		return []object{
			{"subjectId": a.User, "role": "tenant_admin", "tenantId": v.Tenant},
			{"subjectId": a.User, "role": "project_viewer", "projectId": v.Project},
			{"subjectId": a.User, "role": "platform_operator"},
			{"subjectId": v.User, "role": "project_viewer", "projectId": a.Project},
		}
	}),
	"mutation revokeRole": func(v, _ *house) []arguments { return one("bindingId", v.Binding) },
	"mutation updateTenant": plain(func(v, _ *house) []object {
		return []object{{"tenantId": v.Tenant, "displayName": "Mine"}}
	}),
	"mutation updateProject": plain(func(v, _ *house) []object {
		return []object{{"projectId": v.Project, "displayName": "Mine"}}
	}),
	"mutation deleteProject": func(v, _ *house) []arguments {
		return []arguments{{"projectId": v.Project, "reason": "mine"}}
	},
	"mutation updateUser": plain(func(v, _ *house) []object {
		return []object{{"userId": v.User, "disabled": true}, {"userId": v.User, "displayName": "Mine"}}
	}),
	"mutation endSession":       func(v, _ *house) []arguments { return one("sessionId", v.Session) },
	"mutation logoutEverywhere": func(v, _ *house) []arguments { return one("userId", v.User) },
	"mutation updateServiceAccount": plain(func(v, a *house) []object {
		return []object{
			{"serviceAccountId": v.Account, "permissionKeys": []string{"project.read"}},
			{"serviceAccountId": v.Account, "liftLimits": []any{"OBJECT_IDS"}},
			{"serviceAccountId": v.Account, "limits": object{"objectIds": []any{a.Instance}}},
		}
	}),
	"mutation deleteServiceAccount": func(v, _ *house) []arguments { return one("serviceAccountId", v.Account) },
	"mutation rotateServiceAccountKey": plain(func(v, _ *house) []object {
		return []object{{"keyId": v.Key, "overlapSeconds": 0}}
	}),
	"mutation createServiceAccount": input(func(v, _ *house) []object {
		return []object{{"projectId": v.Project, "name": "mallory",
			"permissionKeys": []string{"apps.instance.read"}}}
	}),
	"mutation createServiceAccountKey": plain(func(v, _ *house) []object {
		return []object{{"serviceAccountId": v.Account}}
	}),
	"mutation revokeServiceAccountKey": func(v, _ *house) []arguments { return one("keyId", v.Key) },
	"mutation createLoginLink":         func(v, _ *house) []arguments { return one("userId", v.User) },
	"mutation requestAllocation": input(func(v, _ *house) []object {
		return []object{{"projectId": v.Project, "shape": "GPU_SLICE", "gpuCount": 1}}
	}),
	"mutation releaseAllocation": input(func(v, _ *house) []object {
		return []object{{"allocationId": v.Free}, {"allocationId": v.Used}}
	}),
	"mutation createArtifactSource": input(func(v, _ *house) []object {
		mine := object{"name": "mine", "kind": "OCI", "location": "registry.test/mine"}
		theirs := maps.Clone(mine)
		theirs["tenantId"] = v.Tenant
		return []object{mine, theirs}
	}),
	"mutation updateArtifactSource": plain(func(v, _ *house) []object {
		return []object{{"sourceId": v.Source, "signaturePolicy": "OPTIONAL"},
			{"sourceId": v.Source, "disabled": true}}
	}),
	"mutation setSourceCredential": plain(func(v, _ *house) []object {
		return []object{{"sourceId": v.Source, "user": "mine", "secret": "mine"}, {"sourceId": v.Source}}
	}),
	"mutation addSignerKey": plain(func(v, _ *house) []object {
		return []object{{"sourceId": v.Source, "name": "mine", "publicKey": signerPEM}}
	}),
	"mutation revokeSignerKey": func(v, _ *house) []arguments {
		return []arguments{{"keyId": v.Signer, "reason": "mine"}}
	},
	"mutation createApp": input(func(_, _ *house) []object {
		return []object{{"slug": "mine", "displayName": "Mine", "summary": "Mine.", "permissionFamily": "apps"}}
	}),
	"mutation publishArtifact": input(func(v, _ *house) []object {
		digest := "sha256:0000000000000000000000000000000000000000000000000000000000000000"
		return []object{
			{"name": "mine", "mediaType": "application/octet-stream", "ref": "registry.test/mine@" + digest},
			{"name": "mine", "ref": "registry.test/mine@" + digest, "projectId": v.Project},
		}
	}),
	"mutation verifyArtifact": func(v, _ *house) []arguments {
		return []arguments{{"artifactId": v.Artifact}, {"artifactId": v.Owned}}
	},
	"mutation quarantineArtifact": func(v, _ *house) []arguments {
		return []arguments{{"artifactId": v.Artifact, "reason": "mine"}, {"artifactId": v.Owned, "reason": "mine"}}
	},
	"mutation releaseArtifact": func(v, _ *house) []arguments {
		return []arguments{{"artifactId": v.Artifact, "reason": "mine"}, {"artifactId": v.Owned, "reason": "mine"}}
	},
	"mutation promoteArtifact": plain(func(v, _ *house) []object {
		return []object{{"artifactId": v.Artifact, "to": "DEPRECATED", "reason": "mine"},
			{"artifactId": v.Owned, "to": "STAGED", "reason": "mine"}}
	}),
	"mutation publishManifest": input(func(v, _ *house) []object { return []object{{"document": v.document}} }),
	"mutation promoteManifest": plain(func(v, _ *house) []object {
		return []object{
			{"manifestId": v.Manifest, "to": "DEPRECATED", "reason": "mine"},
			{"manifestId": v.Manifest, "to": "STAGED", "reason": "mine", "smokeInstanceId": v.Instance},
		}
	}),
	"mutation submitEvidence": plain(func(v, _ *house) []object {
		report, digest := evidenceReport()
		return []object{{"manifestId": v.Manifest, "kind": "TENANCY", "report": report, "digest": digest}}
	}),
	"mutation submitArtifactSmoke": plain(func(v, _ *house) []object {
		report, digest := smokeReport()
		return []object{
			{"artifactId": v.Artifact, "report": report, "digest": digest, "signature": "AAAA"},
			{"artifactId": v.Owned, "report": report, "digest": digest, "signature": "AAAA"},
		}
	}),
	"mutation registerRunner": plain(func(_, _ *house) []object {
		return []object{{"name": "mine", "publicKey": "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=",
			"reason": "mine"}}
	}),
	"mutation revokeRunner": func(_, _ *house) []arguments {
		return []arguments{{"runnerId": "rnr_01jd0000000000000000000000", "reason": "mine"}}
	},
	"mutation setPromotionTerms": plain(func(v, _ *house) []object {
		return []object{{"appSlug": v.Slug, "minLaunches": 0, "reason": "mine"}}
	}),
	"mutation setCanaryPercent": func(v, _ *house) []arguments {
		return []arguments{{"manifestId": v.Manifest, "percent": 20, "reason": "mine"}}
	},
	"mutation registerAdapter": plain(func(_, _ *house) []object {
		return []object{{"name": "mine", "url": "http://127.0.0.1:1"}}
	}),
	"mutation grantEntitlement":  entitlementOf,
	"mutation revokeEntitlement": entitlementOf,
	"mutation launchInstance": input(func(v, a *house) []object {
		return []object{
			{"projectId": v.Project, "appSlug": v.Slug, "name": "mine", "allocationIds": []any{v.Free}},
			{"projectId": a.Project, "appSlug": a.Slug, "name": "mine", "allocationIds": []any{v.Free}},
			{"projectId": a.Project, "appSlug": a.Slug, "name": "mine", "allocationIds": []any{a.Free, v.Free},
				"components": []object{{"key": "worker", "count": 1, "allocationIds": []any{v.Free}}}},
		}
	}),
	"mutation decommissionInstance": input(func(v, _ *house) []object {
		return []object{{"instanceId": v.Instance}}
	}),
	"mutation upgradeInstance": input(func(v, _ *house) []object {
		return []object{{"instanceId": v.Instance, "config": object{}}}
	}),
	"mutation setRepairPolicy": plain(func(v, _ *house) []object {
		return []object{{"instanceId": v.Instance, "mode": "MANUAL"},
			{"instanceId": v.Instance, "mode": "AUTOMATIC"}}
	}),
	"mutation rollbackInstance": input(func(v, _ *house) []object { return []object{{"instanceId": v.Instance}} }),
	"mutation addMembers": input(func(v, _ *house) []object {
		return []object{
			{"instanceId": v.Instance, "componentKey": "worker", "count": 1, "allocationIds": []any{v.Free}},
			{"instanceId": v.Instance, "componentKey": "worker", "count": 1,
				"intent": object{"shape": "BAREMETAL"}},
		}
	}),
	"mutation drainMember":    changeOfMember,
	"mutation cordonMember":   changeOfMember,
	"mutation uncordonMember": changeOfMember,
	"mutation labelMember": input(func(v, _ *house) []object {
		return []object{{"memberId": v.Member, "labels": object{"mine": "yes"}}}
	}),
	"mutation removeMember":  changeOfMember,
	"mutation recoverMember": changeOfMember,
	"mutation replaceMember": input(func(v, a *house) []object {
		return []object{
			{"memberId": v.Member, "reason": "mine"}, {"memberId": v.Member, "allocationId": a.Free,
				"reason": "mine"},
		}
	}),
	"mutation cancelOperation": plain(func(v, _ *house) []object {
		return []object{{"operationId": v.Operation, "reason": "mine"}}
	}),
	"mutation retryOperation": input(func(v, _ *house) []object {
		return []object{{"operationId": v.Operation, "reason": "mine"}}
	}),
	"mutation retryOrphan": func(v, _ *house) []arguments { return one("orphanId", v.Orphan) },
	"mutation issueRuntimeSecret": input(func(v, _ *house) []object {
		return []object{
			{"instanceId": v.Instance, "purpose": "mine", "audience": "ADAPTER"},
			{"instanceId": v.Instance, "purpose": "mine", "audience": "NODE", "memberId": v.Member},
		}
	}),
	"mutation redeemRuntimeSecret": func(v, _ *house) []arguments { return one("secretId", v.Secret) },
	"mutation rotateRuntimeSecret": func(v, _ *house) []arguments { return one("secretId", v.Secret) },
	"mutation revokeRuntimeSecret": func(v, _ *house) []arguments { return one("secretId", v.Secret) },
	"mutation setSkuPrice": plain(func(_, _ *house) []object {
		return []object{{"sku": "mine", "currency": "EUR", "hourly": "0"}}
	}),
	"mutation setProjectQuota": plain(func(v, _ *house) []object {
		return []object{{"projectId": v.Project, "maxMembers": 0, "reason": "mine"}}
	}),
	"mutation invokeAction": input(func(v, a *house) []object {
		return []object{
			{"instanceId": v.Instance, "action": "queue.read"},
			{"instanceId": v.Instance, "action": "queue.read", "projectId": v.Sibling},
			{"instanceId": v.Instance, "action": "queue.read", "projectId": a.Project},
		}
	}),
	"mutation offerControlPlane": input(func(v, a *house) []object {
		return []object{
			{"instanceId": v.Instance, "projectId": a.Project, "reason": "mine"},
			{"instanceId": v.Instance, "projectId": v.Sibling, "reason": "mine"},
			{"instanceId": a.Instance, "projectId": v.Project, "reason": "mine"},
		}
	}),
	"mutation acceptControlPlane":  func(v, _ *house) []arguments { return one("shareId", v.Share) },
	"mutation declineControlPlane": func(v, _ *house) []arguments { return one("shareId", v.Share) },
	"mutation withdrawControlPlane": func(v, _ *house) []arguments {
		return []arguments{{"shareId": v.Share, "reason": "mine"}}
	},
	"mutation detachControlPlane": func(v, _ *house) []arguments { return one("shareId", v.Share) },
	"mutation reportOperation": plain(func(v, _ *house) []object {
		return []object{{"operationId": v.Operation, "attempt": 1, "phase": "mine", "percent": 99}}
	}),
	"mutation renewOperationToken": none,
}
