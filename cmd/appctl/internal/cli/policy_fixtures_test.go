package cli_test

import "github.com/gpuaas/app-platform/sdk/client/clienttest"

func overlay() object {
	return object{
		"id": "pol_2", "scope": "PROJECT", "tenantId": "ten_1", "projectId": "prj_1", "revision": 2,
		"document": object{"maxGpus": 8},
		"reason":   "agreed", "updatedBy": "usr_1", "createdAt": at,
	}
}

// addPolicyFixtures gives the stand-in the verbs of policy and entitlements.
func addPolicyFixtures(s *clienttest.Server) {
	older := overlay()
	older["id"], older["revision"], older["supersededAt"] = "pol_1", 1, at
	ended := object{"id": "etl_0", "projectId": "prj_1", "appSlug": "hello", "grantedBy": "Ada", "createdAt": at,
		"revokedAt": at, "versions": []string{}}
	limited := object{
		"id": "etl_1", "projectId": "prj_1", "appSlug": "hello", "grantedBy": "Ada", "createdAt": at, "maxInstances": 2,
		"maxGpus":  8,
		"versions": []string{">=1.2 <2"}, "expiresAt": at, "reason": "trial",
	}
	reason := object{"code": "GPUS_CEILING", "message": "the project's policy allows 8 GPUs in a project", "path": ""}
	for field, value := range map[string]any{
		"policyOverlays": page(overlay(), older),
		"setPolicy":      overlay(),
		"effectivePolicy": object{"projectId": "prj_1", "hash": "abc", "rules": []object{
			{"dimension": "regions", "effect": "ALLOW", "values": []string{"a1", "b1"}, "origin": "PLATFORM",
				"overlayId": "pol_9", "final": false, "message": "allows only 2 regions"},
			{"dimension": "skus", "effect": "DENY", "values": []string{"old"}, "origin": "PLATFORM",
				"overlayId": "pol_9", "final": true, "message": "the platform forbids it"},
			{"dimension": "maxGpus", "effect": "CEILING", "values": []string{}, "limit": 8, "origin": "PROJECT",
				"overlayId": "pol_2", "final": false, "message": "at most 8"},
		}},
		"previewPolicy": object{
			"problems": []object{{"code": "POLICY_WIDENS", "message": "8 is more than 4",
				"path": "input.document.maxGpus"}},
			"newlyDenied": []object{{"projectId": "prj_1", "objectId": "alc_1", "name": "slot-1",
				"reasons": []object{reason}}, {"projectId": "prj_1", "name": "entitlement to hello",
				"reasons": []object{reason}}},
			"newlyDeniedTotal": 2, "newlyAllowedTotal": 1,
		},
		"entitlements": page(limited, ended),
	} {
		s.Handle(field, answer(value))
	}
}
