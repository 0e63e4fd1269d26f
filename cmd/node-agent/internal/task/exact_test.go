package task

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/sdk/adapter"
	"github.com/gpuaas/app-platform/sdk/nodetask"
)

// arrived sends a task of an adapter the way of every task: encoded by the SDK, checked by the platform's rules, stored
// in its canonical form, and read by the agent.
func arrived(t *testing.T, sent adapter.NodeTask) nodetask.Spec {
	t.Helper()
	raw, err := adapter.EncodeTask(sent)
	require.NoError(t, err)
	checked, err := nodetask.Parse(sent.TaskKind(), raw)
	require.NoError(t, err)
	stored, err := nodetask.Encode(checked)
	require.NoError(t, err)
	spec, err := read(Task{Kind: sent.TaskKind(), Spec: stored})
	require.NoError(t, err)
	return spec
}

func TestFractionsOfAnAdapterArriveAtTheMember(t *testing.T) {
	t.Parallel()
	start := arrived(t, adapter.StartProcess{
		Name: "a", Command: []string{"x"}, StopTimeout: 1500 * time.Millisecond,
		Restart: adapter.Restart{Policy: "always", Backoff: 250 * time.Millisecond},
	}).(*nodetask.StartProcess)
	wanted, err := processSpec(t.Context(), (&Executor{}).opener(Task{}), start)
	require.NoError(t, err)
	require.Equal(t, int64(250), wanted.BackoffMillis)
	require.Equal(t, int64(1500), wanted.StopTimeoutMillis)

	probe := arrived(t, adapter.Probe{TCP: &adapter.TCPProbe{Port: 80},
		Timeout: 500 * time.Millisecond}).(*nodetask.Probe)
	require.Equal(t, 500*time.Millisecond, probe.Timeout())
	require.Equal(t, time.Second, probe.Interval())

	whole := arrived(t, adapter.StartProcess{
		Name: "a", Command: []string{"x"}, StopTimeoutSeconds: 3, Restart: adapter.Restart{BackoffSeconds: 2},
	}).(*nodetask.StartProcess)
	wanted, err = processSpec(t.Context(), (&Executor{}).opener(Task{}), whole)
	require.NoError(t, err)
	require.Equal(t, []int64{2000, 3000}, []int64{wanted.BackoffMillis, wanted.StopTimeoutMillis})
}

// The protocol to the member's init has structs of its own: an init may be older than the agent, and gets opened values
// instead of sealed ones. A field of a task that they leave out would be lost in silence.
func TestEveryFieldOfACommandReachesTheInit(t *testing.T) {
	t.Parallel()
	opener := (&Executor{}).opener(Task{})
	run := func(spec *nodetask.Run) any {
		request, err := runRequest(t.Context(), opener, spec)
		require.NoError(t, err)
		return request
	}
	start := func(spec *nodetask.StartProcess) any {
		wanted, err := processSpec(t.Context(), opener, spec)
		require.NoError(t, err)
		return wanted
	}
	eachField(t, reflect.TypeFor[nodetask.Run](), func(spec any) any { return run(spec.(*nodetask.Run)) })
	eachField(t, reflect.TypeFor[nodetask.StartProcess](),
		func(spec any) any { return start(spec.(*nodetask.StartProcess)) })
	eachField(t, reflect.TypeFor[nodetask.Restart](), func(spec any) any {
		return start(&nodetask.StartProcess{Restart: *spec.(*nodetask.Restart)})
	})
}

// eachField gives one field at a time a value that is not the default, and requires that the request is another one
// then.
func eachField(t *testing.T, of reflect.Type, request func(spec any) any) {
	t.Helper()
	empty := request(reflect.New(of).Interface())
	values := map[string]string{
		"env": `[{"name":"A","value":"x"}]`, "command": `["x"]`, "restart": `{"policy":"always"}`,
		"stopTimeoutSeconds": "2.5", "backoffSeconds": "2.5", "maxRestarts": "2",
	}
	for i := range of.NumField() {
		name, _, _ := strings.Cut(of.Field(i).Tag.Get("json"), ",")
		value, ok := values[name]
		if !ok {
			value = `"x"`
		}
		spec := reflect.New(of).Interface()
		require.NoError(t, json.Unmarshal([]byte(`{"`+name+`":`+value+`}`), spec), name)
		require.NotEqual(t, empty, request(spec), "%s of %s is lost on the way to the init", name, of.Name())
	}
}
