package cli_test

import "github.com/gpuaas/app-platform/sdk/client/clienttest"

func secret() object {
	return object{
		"id": "sec_1", "instanceId": "ins_1", "purpose": "joining", "audience": "NODE", "memberId": "mem_1",
		"nodeId": "nod_1", "delivery": "UNTIL_EXPIRY",
		"spec": object{}, "version": 2, "deliveries": 1, "deliveredAt": at, "expiresAt": at, "rotatedAt": at,
		"previousUntil": at,
		"issuedBy":      object{"kind": "USER", "id": "usr_1", "name": "Ada"}, "createdAt": at,
	}
}

// addSecretFixtures gives the stand-in the verbs of runtime secrets.
func addSecretFixtures(s *clienttest.Server) {
	revoked, once := secret(), secret()
	revoked["revokedAt"] = at
	once["id"], once["audience"], once["delivery"] = "sec_2", "ADAPTER", "ONCE"
	delete(once, "memberId")
	for field, value := range map[string]any{
		"runtimeSecrets":      page(secret(), once),
		"issueRuntimeSecret":  once,
		"rotateRuntimeSecret": secret(),
		"revokeRuntimeSecret": revoked,
	} {
		s.Handle(field, answer(value))
	}
}
