package cli_test

import (
	"maps"
	"time"

	"github.com/gpuaas/app-platform/sdk/client/clienttest"
)

type object = clienttest.Object

const at = "2026-11-20T11:00:00.000001Z"

func page(nodes ...object) object {
	edges := []object{}
	for _, node := range nodes {
		edges = append(edges, object{"cursor": "c", "node": node})
	}
	return object{"edges": edges}
}

// answer makes a field answer always the same.
func answer(value any) clienttest.Resolver {
	return func(clienttest.Call) (any, error) { return value, nil }
}

func refuse(code, message string, reasons ...object) clienttest.Resolver {
	return func(clienttest.Call) (any, error) {
		return nil, &clienttest.Fault{Code: code, Message: message, Reasons: reasons}
	}
}

func project() object {
	return object{"id": "prj_1", "slug": "demo", "displayName": "Demo project", "tenantId": "ten_1", "createdAt": at}
}

func manifest() object {
	return object{
		"id": "man_1", "appSlug": "hello", "version": "1.2.0", "stage": "ACTIVE", "digest": "sha256:abc",
		"createdAt":  at,
		"components": []object{{"key": "worker", "displayName": "Worker", "min": 1, "max": 8, "default": 2}},
		"actions": []object{{
			"name": "greet", "displayName": "Say hello", "permissionKey": "apps.instance.update", "risk": "WRITE",
			"inputSchema": object{"type": "object"}, "outputSchema": object{},
		}},
	}
}

func app() object {
	return object{
		"id": "app_1", "slug": "hello", "displayName": "Hello cluster", "summary": "Says hello",
		"permissionFamily": "apps",
		"activeManifest":   manifest(), "manifests": page(manifest()),
	}
}

func allocation() object {
	return object{
		"id": "alc_1", "name": "slot-1", "projectId": "prj_1", "shape": "GPU_SLICE", "gpuCount": 2, "status": "READY",
		"node": object{"id": "nod_1", "name": "na"}, "createdAt": at, "devices": devices(),
	}
}

func devices() []object {
	return []object{{"uuid": "SIM-na-0", "index": 0, "minor": 0, "pciAddress": "", "path": "/dev/nvidia0",
		"model": "X100", "memoryMiB": 0, "simulated": true, "cdi": ""}}
}

func operation(kind, state string, percent int) object {
	op := object{
		"id": "op_1", "kind": kind, "state": state, "percent": percent, "phase": "dispatch",
		"message":   "the adapter is at it",
		"projectId": "prj_1", "instanceId": "ins_1", "requester": object{"kind": "USER", "id": "usr_1", "name": "Ada"},
		"correlationId": "corr-1", "deadline": at, "createdAt": at, "startedAt": at,
		"steps": []object{{"name": "dispatch", "state": "RUNNING", "attempt": 1, "message": "sent"}},
	}
	switch state {
	case "SUCCEEDED":
		op["outcome"], op["endedAt"] = "NORMAL", at
	case "FAILED":
		op["error"] = object{"code": "READINESS_FAILED", "message": "no member answers", "owner": "adapter",
			"retryable": true}
		op["endedAt"] = at
	}
	return op
}

func instance() object {
	return object{
		"id": "ins_1", "name": "one", "tenantId": "ten_1", "projectId": "prj_1", "appSlug": "hello",
		"appVersion": "1.2.0",
		"status":     "RUNNING", "health": "HEALTHY", "revision": 9, "config": object{"greeting": "hi"},
		"correlationId": "corr-1",
		"roles": []object{{"componentKey": "worker", "desired": 2, "current": 2, "healthy": 1,
			"summary": "1 of 2 active"}},
		"allocations": []object{{"id": "alc_1", "name": "slot-1"}}, "createdAt": at, "updatedAt": at,
		"members": page(object{
			"id": "mem_1", "componentKey": "worker", "index": 0, "status": "ACTIVE", "health": "HEALTHY",
			"cordoned":      true,
			"healthMessage": "answers\x1b[31m quickly", "node": object{"id": "nod_1", "name": "na"},
			"allocation": object{"id": "alc_1", "name": "slot-1"},
		}),
		"lastOperation": operation("INSTANCE_CREATE", "SUCCEEDED", 100), "actions": manifest()["actions"],
		"events": page(event(1, "apps.instance.requested"), event(2, "apps.instance.running")),
	}
}

func event(seq int, kind string) object {
	return object{
		"id": "evt_" + string(rune('0'+seq)), "cursor": "c" + string(rune('0'+seq)), "seq": seq, "type": kind,
		"appInstanceId": "ins_1",
		"projectId":     "prj_1", "appSlug": "hello", "orgId": "ten_1", "message": "it is so",
		"correlationId": "corr-1",
		"occurredAt":    at,
	}
}

// addFixtures gives the stand-in one of everything.
func addFixtures(s *clienttest.Server) {
	s.Handle("viewer", answer(object{
		"sessions": []object{{"id": "ses_1", "userId": "usr_1", "method": "oidc", "origin": "192.0.2.7",
			"agent": "Browser/1", "createdAt": at, "expiresAt": at, "current": true}},
		"actor": object{"kind": "USER", "id": "usr_1", "name": "Ada"}, "tenant": object{"id": "ten_1", "slug": "acme"},
		"bindings": []object{{"id": "rb_1", "subjectId": "usr_1", "role": "project_admin", "projectId": "prj_1"}},
		"projects": page(project()), "permissions": []string{"allocation.read", "apps.instance.create"},
	}))
	s.Handle("apps", answer(page(app())))
	s.Handle("app", func(call clienttest.Call) (any, error) {
		if call.Args["slug"] != "hello" {
			return nil, &clienttest.Fault{Code: "NOT_FOUND", Message: "there is no such app"}
		}
		return app(), nil
	})
	s.Handle("launchOptions", answer(object{"manifest": manifest(), "entitled": true, "allocations": []object{
		{"allocation": allocation(), "compatible": false,
			"reasons": []object{{"code": "GPU_COUNT_TOO_LOW", "message": "needs 4 GPUs"}}},
	}}))
	s.Handle("allocations", answer(page(allocation())))
	s.Handle("requestAllocation", answer(object{"allocations": []object{allocation()}}))
	s.Handle("releaseAllocation", answer(object{"allocation": allocation(),
		"operation": operation("ALLOCATION_RELEASE", "PENDING", 0)}))
	s.Handle("instances", answer(page(instance())))
	s.Handle("instance", answer(instance()))
	s.Handle("launchInstance", answer(object{"instance": instance(),
		"operation": operation("INSTANCE_CREATE", "PENDING", 0)}))
	s.Handle("decommissionInstance", answer(object{"instance": instance(),
		"operation": operation("INSTANCE_DECOMMISSION", "PENDING", 0)}))
	s.Handle("invokeAction", func(call clienttest.Call) (any, error) {
		return object{"action": call.Input()["action"], "output": object{"echo": call.Input()["input"]}}, nil
	})
	s.Handle("operation", answer(operation("INSTANCE_CREATE", "RUNNING", 40)))
	s.Handle("operations", answer(page(operation("INSTANCE_CREATE", "RUNNING", 40))))
	s.Handle("nodes", answer(page(object{
		"id": "nod_1", "name": "na", "address": "10.0.0.1", "status": "ONLINE", "cpus": 8,
		"memoryMiB": 16000, "gpus": 4,
		"gpuModel":      "X100",
		"gpusSimulated": true, "isolation": "NAMESPACE", "lastSeenAt": at, "devices": devices(), "walls": object{
			"classes": []string{"CONTAINER", "WHOLE_NODE"}, "profiles": []string{"SERVICE"}, "runtime": "crun",
			"runtimeVersion": "1.8.1",
			"cgroupVersion":  1, "gaps": []object{{"wall": "CPU", "reason": "processor time is not bounded"}},
		},
	})))
	s.Handle("auditEntries", answer(page(object{
		"id": "aud_1", "actor": object{"name": "Ada"}, "action": "launchInstance", "allowed": false,
		"code":     "FORBIDDEN",
		"repeats":  3,
		"objectId": "prj_1", "createdAt": at,
	})))
	addAdminFixtures(s)
	addMemberFixtures(s)
	addSecretFixtures(s)
	addWebhookFixtures(s)
	addBillingFixtures(s)
	addNodeFixtures(s)
	addPolicyFixtures(s)
	addVolumeFixtures(s)
	addWhyFixtures(s)
	addTriageFixtures(s)
	addGapFixtures(s)
	addShareFixtures(s)
	addDeliveryFixtures(s)
	addSourceFixtures(s)
	s.HandleStream("operationProgress", progressTo("SUCCEEDED"))
	s.HandleStream("instanceTimeline", func(_ clienttest.Call, emit func(any) error) error {
		_ = emit(event(1, "apps.instance.requested"))
		return emit(event(2, "apps.instance.running"))
	})
	addUsageFixtures(s)
	s.HandleStream("memberLogs", func(_ clienttest.Call, emit func(any) error) error {
		for _, line := range logLines() {
			if err := emit(line); err != nil {
				return err
			}
		}
		return nil
	})
	s.HandleStream("projectActivity", func(_ clienttest.Call, emit func(any) error) error {
		return emit(event(7, "apps.instance.deleted"))
	})
	s.HandleLogin(func(code string) (string, time.Time, error) {
		if code != "good" {
			return "", time.Time{}, &clienttest.Fault{Code: "UNAUTHENTICATED", Message: "the code is unknown or used"}
		}
		return "gpu_ses_test", time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC), nil
	})
}

// progressTo runs an operation to this end.
func progressTo(end string) clienttest.Stream {
	return func(_ clienttest.Call, emit func(any) error) error {
		for _, op := range []object{
			operation("INSTANCE_CREATE", "PENDING", 0), operation("INSTANCE_CREATE", "RUNNING", 40),
			operation("INSTANCE_CREATE", end, 100),
		} {
			if err := emit(op); err != nil {
				return err
			}
		}
		return nil
	}
}

func addAdminFixtures(s *clienttest.Server) {
	account := object{
		"id": "sa_1", "name": "robot", "projectId": "prj_1", "permissionKeys": []string{"allocation.read"},
		"keys": []object{{"id": "key_1"}, {"id": "key_2", "revokedAt": at}},
	}
	artifact := object{
		"id": "art_1", "name": "controller", "ref": "registry/hello@sha256:abc", "digest": "sha256:abc",
		"sizeBytes": 123456789, "stage": "STAGED",
		"evidence": object{"lint": "ok"}, "kind": "IMAGE", "platforms": []string{"linux/amd64"},
		"signature":  "VERIFIED",
		"verifiedAt": at,
		"signedBy":   object{"id": "sgk_1", "name": "release key"},
	}
	adapter := object{"id": "adp_1", "name": "hello", "url": "http://hello:8080", "lastSeenAt": at}
	entitlement := object{"id": "etl_1", "projectId": "prj_1", "appSlug": "hello", "grantedBy": "Ada", "createdAt": at}
	binding := object{"id": "rb_1", "subjectId": "usr_2", "role": "project_viewer", "projectId": "prj_1"}
	user := object{"id": "usr_2", "email": "bob@example.com", "displayName": "Bob", "tenantId": "ten_1",
		"invitedAt": at, "invitationEndsAt": at}
	granted := object{"id": "rb_1", "subjectId": "usr_2", "role": "project_viewer", "projectId": "prj_1",
		"reason": "joins", "createdAt": at}
	limited := maps.Clone(account)
	limited["limits"] = object{"objectIds": []string{"ins_1"}, "maxRisk": "WRITE", "operationsPerHour": 5}
	for field, value := range map[string]any{
		"updateTenant":  object{"id": "ten_1", "slug": "acme", "displayName": "Acme Ltd"},
		"updateProject": project(),
		"deleteProject": project(),
		"updateUser":    object{"id": "usr_2", "email": "bob@example.com", "displayName": "Bob", "disabledAt": at},
		"endSession": object{"id": "ses_2", "userId": "usr_1", "method": "oidc", "origin": "192.0.2.7",
			"agent": "Browser"},
		"logoutEverywhere": 2,
		"roles": []object{{"name": "project_viewer", "description": "Sees.",
			"scopes": []string{"TENANT", "PROJECT"}, "permissionKeys": []string{"project.read"}}},
		"permissionKeys":       []object{{"name": "project.read", "description": "See a project.", "family": ""}},
		"roleBindings":         page(granted),
		"updateServiceAccount": limited,
		"planServiceAccountUpdate": object{"permissionKeys": []string{"allocation.read"},
			"limits": object{"objectIds": []string{"ins_1"}},
			"widens": []string{"limits.maxRisk"}, "narrows": []string{}},
		"deleteServiceAccount": object{"id": "sa_1", "name": "robot", "projectId": "prj_1",
			"permissionKeys": []string{}, "keys": []object{}, "deletedAt": at},
		"rotateServiceAccountKey": object{"key": object{"id": "key_4", "expiresAt": at}, "secret": "gpu_sa_secret"},
		"createTenant":            object{"id": "ten_2", "slug": "acme", "displayName": "Acme"},
		"createProject":           project(),
		"users":                   page(user),
		"tenants":                 page(object{"id": "ten_1", "slug": "acme", "displayName": "Acme", "createdAt": at}),
		"createUser":              user,
		"inviteUser": object{"code": "once", "url": "http://console/auth/oidc/accept?invitation=once",
			"expiresAt": at},
		"revokeInvitation": user,
		"madeUnder": []object{
			{"kind": "SERVICE_ACCOUNT_KEY", "id": "key_9", "name": "deploys", "projectId": "prj_1", "createdAt": at,
				"ended": false},
			{"kind": "ROLE_BINDING", "id": "rb_9", "name": "tenant_admin", "createdAt": at, "ended": true},
		},
		"setTenantDomains":        object{"id": "ten_1", "slug": "acme", "domains": []string{"acme.test"}},
		"createLoginLink":         object{"code": "once", "url": "http://console/#code=once", "expiresAt": at},
		"serviceAccounts":         page(account),
		"createServiceAccount":    account,
		"createServiceAccountKey": object{"key": object{"id": "key_3"}, "secret": "gpu_sa_secret"},
		"revokeServiceAccountKey": object{"id": "key_3", "serviceAccountId": "sa_1", "revokedAt": at},
		"grantRole":               binding,
		"revokeRole":              binding,
		"grantEntitlement":        entitlement,
		"revokeEntitlement":       entitlement,
		"createApp":               app(),
		"artifacts":               page(artifact),
		"publishArtifact":         artifact,
		"promoteArtifact":         artifact,
		"publishManifest":         manifest(),
		"promoteManifest":         manifest(),
		"lintManifest":            object{"ok": true},
		"adapters":                page(adapter),
		"registerAdapter":         adapter,
		"createNodeEnrolment":     object{"token": "gpu_enr_token", "expiresAt": at},
	} {
		s.Handle(field, answer(value))
	}
}
