package cli_test

import "github.com/gpuaas/app-platform/sdk/client/clienttest"

// shared is a share of a control plane with the project of the fixtures.
func shared(status string) object {
	found := object{
		"id": "cps_1", "instanceId": "ins_9", "ownerProjectId": "prj_9", "projectId": "prj_1", "status": status,
		"reason":    "one queue for all",
		"offeredBy": "Grace", "answeredBy": "Ada", "endReason": "", "createdAt": at, "answeredAt": at,
		"controlPlane": object{"instanceId": "ins_9", "name": "queue", "appSlug": "hello", "appVersion": "1.2.0",
			"permissionFamily": "apps",
			"status":           "RUNNING", "health": "HEALTHY", "actions": manifest()["actions"]},
	}
	if status != "OFFERED" && status != "ATTACHED" {
		found["endedAt"], found["endReason"] = at, "enough"
		delete(found, "controlPlane")
	}
	return found
}

func impact(attached int) object {
	projects := []object{{"projectId": "prj_1", "displayName": "Demo project", "subjects": 4, "recentActions": 12}}
	for range attached {
		projects = append(projects, object{"projectId": "prj_2", "displayName": "Other", "attachedAt": at,
			"subjects": 2, "recentActions": 7})
	}
	return object{"instanceId": "ins_1", "controlPlaneScope": "TENANT", "projects": projects, "attachedTotal": attached,
		"membersTotal": 2, "openOperations": 1}
}

// addShareFixtures gives the stand-in the verbs of shared control planes.
func addShareFixtures(s *clienttest.Server) {
	mine := shared("OFFERED")
	mine["id"], mine["instanceId"], mine["ownerProjectId"], mine["projectId"] = "cps_2", "ins_1", "prj_1", "prj_2"
	for field, value := range map[string]any{
		"controlPlaneShares":   page(mine, shared("ATTACHED"), shared("DETACHED")),
		"impactOf":             impact(1),
		"offerControlPlane":    mine,
		"acceptControlPlane":   shared("ATTACHED"),
		"declineControlPlane":  shared("DECLINED"),
		"withdrawControlPlane": shared("WITHDRAWN"),
		"detachControlPlane":   shared("DETACHED"),
	} {
		s.Handle(field, answer(value))
	}
}
