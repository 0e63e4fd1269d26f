package cli_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/sdk/client/clienttest"
)

func TestActionInputComesFromFlagFileOrStdin(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	file := r.file(t, "job.json", `{"n":1}`)
	for _, test := range []struct {
		stdin, want string
		args        []string
	}{
		{"", `{"n":1}`, []string{"--input", `{"n":1}`}},
		{"", `{"n":2,"m":"x"}`, []string{"--input", "@" + file, "--set", "n=2", "--set", "m=x"}},
		{`{"n":3}`, `{"n":3}`, []string{"--input", "-"}},
		{"", `null`, nil},
	} {
		got := r.run(t.Context(), test.stdin, append([]string{"action", "run", "one", "greet"}, test.args...)...)
		require.Zero(t, got.code, got.stderr)
		require.JSONEq(t, `{"echo":`+test.want+`}`, got.stdout)
	}
}

func TestActionInputIsTextWhereTheSchemaWantsText(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.Handle("instance", func(clienttest.Call) (any, error) {
		return object{"id": "ins_1", "name": "one", "projectId": "prj_1", "actions": []object{{"name": "greet",
			"risk": "READ", "permissionKey": "apps.instance.read", "outputSchema": object{},
			"inputSchema": object{"properties": object{"name": object{"type": "string"}}}}}}, nil
	})
	for set, want := range map[string]string{"name=7": `{"name":"7"}`, "n=7": `{"n":7}`, `name="7"`: `{"name":"7"}`} {
		got := r.run(t.Context(), "", "action", "run", "one", "greet", "--set", set)
		require.Zero(t, got.code, got.stderr)
		require.JSONEq(t, `{"echo":`+want+`}`, got.stdout, set)
	}
	r.Handle("instance", func(clienttest.Call) (any, error) { return nil, errors.New("not yours to read") })
	got := r.run(t.Context(), "", "action", "run", "ins_1", "greet", "--set", "name=7")
	require.Zero(t, got.code, "who may not read the instance runs the action still: %s", got.stderr)
	require.JSONEq(t, `{"echo":{"name":7}}`, got.stdout)
}
