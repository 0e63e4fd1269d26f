package cli_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/sdk/client/clienttest"
)

// addWhyFixtures gives the stand-in an answer to why: yes about others, no about oneself.
func addWhyFixtures(s *clienttest.Server) {
	me := object{"kind": "USER", "id": "usr_1", "name": "Ann"}
	s.Handle("explainPermission", func(call clienttest.Call) (any, error) {
		input := call.Args["input"].(object)
		said := object{
			"allowed": false, "subject": me, "permissionKey": input["permissionKey"],
			"description": "Launch an instance.",
			"tenantId":    "ten_1", "projectId": "prj_1", "because": []object{},
			"askWhom": []object{{"kind": "USER", "id": "usr_3", "name": "Cleo"}},
			"missing": []object{
				{"kind": "BINDING", "id": "rb_1", "rowId": "rb_1", "role": "project_admin", "scope": "PROJECT",
					"expiresAt": at, "message": "project_admin in project prj_1 gave it until it ended"},
				{"kind": "BINDING", "id": "ground-1", "rowId": "", "role": "project_admin", "scope": "PROJECT",
					"expiresAt": nil, "message": "project_admin in project prj_1 would give it"},
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

// A question that names nothing is about the project of the run, a name is looked up, and only --platform asks about
// the platform.
func TestWhyAsksAboutTheProjectAtHand(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]any{
		"why apps.instance.create": "prj_1", "why apps.instance.create ins_9": "ins_9",
		"why apps.member.add one":     "ins_1",
		"why node.operate --platform": nil,
	} {
		r := newRig(t)
		got := r.run(t.Context(), "", strings.Fields(line)...)
		require.Zero(t, got.code, got.stderr)
		calls := r.CallsOf("explainPermission")
		require.Len(t, calls, 1, line)
		require.Equal(t, want, calls[0].Input()["objectId"], line)
	}
	r := newRig(t)
	got := r.run(t.Context(), "", "why", "apps.member.add", "nobody")
	require.Equal(t, 3, got.code, "there is nothing of this name")
	require.Empty(t, r.CallsOf("explainPermission"))
	got = r.run(t.Context(), "", "why", "node.operate", "one", "--platform")
	require.Equal(t, 2, got.code)
}
