package nodetask_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/domain/nodetask"
)

// findings are code and path of everything that is wrong with a specification.
func findings(t *testing.T, kind lifecycle.NodeTaskKind, spec string) []string {
	t.Helper()
	parsed, err := nodetask.Parse(kind, json.RawMessage(spec))
	if err == nil {
		require.NotNil(t, parsed)
		return nil
	}
	require.Nil(t, parsed, "%.80s", spec)
	require.True(t, fault.Is(err, fault.InvalidArgument), "%v", err)
	refused, _ := fault.As(err)
	var found []string
	for _, reason := range refused.Reasons {
		require.NotEmpty(t, reason.Message)
		found = append(found, string(reason.Code)+" "+reason.Path)
	}
	return found
}

func TestEveryKindWithAnEnvironmentChecksIt(t *testing.T) {
	t.Parallel()
	const secret = `"secretRef":"sec_01m80dgy6neg6set4gc3064arw"`
	for kind, form := range map[lifecycle.NodeTaskKind]string{
		lifecycle.TaskRun:          `{"command":["x"],"env":[%s]}`,
		lifecycle.TaskStartProcess: `{"name":"x","command":["x"],"env":[%s]}`,
	} {
		for env, want := range map[string][]string{
			`{"name":"A_1","value":"x"},{"name":"_b"}`:                  nil,
			`{"name":"A"},{"name":"1A"}`:                                {"BAD_VALUE spec.env.1.name"},
			`{"name":""}`:                                               {"BAD_VALUE spec.env.0.name"},
			`{"name":"A","value":"x","sealed":"` + sealed + `"}`:        {"BAD_VALUE spec.env.0"},
			`{"name":"A","value":"",` + secret + `}`:                    {"BAD_VALUE spec.env.0"},
			`{"name":"A","sealed":"` + sealed + `",` + secret + `}`:     {"BAD_VALUE spec.env.0"},
			`{"name":"A","sealed":"AAAA"}`:                              {"BAD_VALUE spec.env.0.sealed"},
			`{"name":"A","secretRef":"ins_01m80dgy6neg6set4gc3064arw"}`: {"BAD_VALUE spec.env.0.secretRef"},
			strings.Repeat(`{"name":"A"},`, 511) + `{"name":"A"}`:       nil,
			strings.Repeat(`{"name":"A"},`, 512) + `{"name":"A"}`:       {"BAD_VALUE spec.env"},
		} {
			require.Equal(t, want, findings(t, kind, fmt.Sprintf(form, env)), "%s %.80s", kind, env)
		}
	}
}

func TestCloudInitTakesOneDocumentForOneInstance(t *testing.T) {
	t.Parallel()
	document := func(bytes int) string { return `"userData":"` + strings.Repeat("x", bytes) + `"` }
	instance := func(id string) string { return `{"userData":"#cloud-config","instanceId":"` + id + `"}` }
	host := func(name string) string {
		return `{"userData":"#cloud-config","instanceId":"i","hostname":"` + name + `"}`
	}
	for spec, want := range map[string][]string{
		`{` + document(1) + `,"instanceId":"i-1.a_b","hostname":"node-1"}`: nil,
		`{"userDataSealed":"` + sealed + `","instanceId":"i"}`:             nil,
		`{` + document(64<<10) + `,"instanceId":"i"}`:                      nil,
		`{` + document(64<<10+1) + `,"instanceId":"i"}`:                    {"BAD_VALUE spec.userData"},
		`{"instanceId":"i"}`: {"BAD_VALUE spec.userData"},
		`{` + document(1) + `,"userDataSealed":"` + sealed + `","instanceId":"i"}`: {"BAD_VALUE spec.userData"},
		`{"userDataSealed":"AAAA","instanceId":"i"}`:                               {"BAD_VALUE spec.userDataSealed"},
		`{"userDataSealed":"%","instanceId":"i"}`:                                  {"BAD_VALUE spec.userDataSealed"},
		`{` + document(1) + `}`:                                                    {"BAD_VALUE spec.instanceId"},
		instance("-i"):                                                             {"BAD_VALUE spec.instanceId"},
		instance("a b"):                                                            {"BAD_VALUE spec.instanceId"},
		instance(strings.Repeat("i", 64)):                                          nil,
		instance(strings.Repeat("i", 65)):                                          {"BAD_VALUE spec.instanceId"},
		host("0"):                                                                  nil,
		host(strings.Repeat("h", 63)):                                              nil,
		host(strings.Repeat("h", 64)):                                              {"BAD_VALUE spec.hostname"},
		host("-h"):                                                                 {"BAD_VALUE spec.hostname"},
		host("h-"):                                                                 {"BAD_VALUE spec.hostname"},
		host("a.b"):                                                                {"BAD_VALUE spec.hostname"},
		host("Node"):                                                               {"BAD_VALUE spec.hostname"},
		`{` + document(1) + `,"instanceId":"i","metaData":"x"}`: {"UNKNOWN_FIELD spec.metaData"},
		`{"hostname":"h h"}`: {"BAD_VALUE spec.userData", "BAD_VALUE spec.instanceId", "BAD_VALUE spec.hostname"},
	} {
		require.Equal(t, want, findings(t, lifecycle.TaskCloudInit, spec), "%.120s", spec)
	}
}
