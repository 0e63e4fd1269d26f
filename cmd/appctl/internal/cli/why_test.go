package cli_test

import "github.com/gpuaas/app-platform/sdk/client/clienttest"

// addWhyFixtures gives the stand-in an answer to why: yes about others, no about oneself.
func addWhyFixtures(s *clienttest.Server) {
	me := object{"kind": "USER", "id": "usr_1", "name": "Ann"}
	s.Handle("explainPermission", func(call clienttest.Call) (any, error) {
		input := call.Args["input"].(object)
		said := object{
			"allowed": false, "subject": me, "permissionKey": input["permissionKey"], "description": "Launch an instance.",
			"tenantId": "ten_1", "projectId": "prj_1", "because": []object{},
			"askWhom": []object{{"kind": "USER", "id": "usr_3", "name": "Cleo"}},
			"missing": []object{
				{"kind": "BINDING", "id": "rb_1", "rowId": "rb_1", "role": "project_admin", "scope": "PROJECT", "expiresAt": at,
					"message": "project_admin in project prj_1 gave it until it ended"},
				{"kind": "BINDING", "id": "ground-1", "rowId": "", "role": "project_admin", "scope": "PROJECT", "expiresAt": nil,
					"message": "project_admin in project prj_1 would give it"},
			},
		}
		if input["subjectId"] == "usr_2" {
			said["allowed"], said["missing"], said["askWhom"] = true, []object{}, []object{}
			said["because"] = []object{{"kind": "BINDING", "id": "rb_2", "rowId": "rb_2", "role": "project_viewer",
				"scope": "PROJECT", "expiresAt": nil, "message": "project_viewer in project prj_1 gives it"}}
		}
		return said, nil
	})
}
