package adapter_test

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

// tasks holds empty details of every kind, as an adapter writes them.
var tasks = []adapter.NodeTask{
	adapter.RunCommand{}, adapter.WriteFile{}, adapter.StartProcess{}, adapter.StopProcess{}, adapter.InspectProcess{},
	adapter.Probe{}, adapter.FetchArtifact{}, adapter.CloudInit{}, adapter.ResidueQuery{}, adapter.Teardown{},
}

// A field that is added to sdk/nodetask alone, or here alone, fails this test.
func TestTasksHaveTheFieldsOfTheOneSource(t *testing.T) {
	t.Parallel()
	var kinds []adapter.TaskKind
	for _, task := range tasks {
		kinds = append(kinds, task.TaskKind())
		want, got := map[string]string{}, map[string]string{}
		fields(want, "", reflect.TypeOf(nodetask.New(task.TaskKind())))
		fields(got, "", reflect.TypeOf(task))
		require.Equal(t, want, got, task.TaskKind())
	}
	require.Equal(t, nodetask.Kinds(), kinds)
}

// fields gathers the fields of a type as JSON has them, each with the JSON type of its value.
func fields(into map[string]string, at string, of reflect.Type) {
	for of.Kind() == reflect.Pointer {
		of = of.Elem()
	}
	switch of.Kind() {
	case reflect.Slice:
		fields(into, at+"[]", of.Elem())
	case reflect.Struct:
		for i := range of.NumField() {
			if name, _, _ := strings.Cut(of.Field(i).Tag.Get("json"), ","); name != "-" {
				fields(into, at+"."+name, of.Field(i).Type)
			}
		}
	case reflect.Int, reflect.Float64:
		into[at] = "number"
	default:
		into[at] = of.Kind().String()
	}
}

func encoded(t *testing.T, task adapter.NodeTask) string {
	t.Helper()
	raw, err := adapter.EncodeTask(task)
	require.NoError(t, err)
	return string(raw)
}

func TestFractionsAreSentInTheOneFieldThatThereIs(t *testing.T) {
	t.Parallel()
	start := adapter.StartProcess{
		Name: "a", Command: []string{"x"}, StopTimeoutSeconds: 3, StopTimeout: 2500 * time.Millisecond,
		Restart: adapter.Restart{Policy: "always", MaxRestarts: 2, BackoffSeconds: 7, Backoff: 250 * time.Millisecond},
	}
	const whole = `{"name":"a","command":["x"],"restart":{"policy":"always","maxRestarts":2,"backoffSeconds":0.25},"stopTimeoutSeconds":2.5}`
	require.JSONEq(t, whole, encoded(t, start), "the precise one wins")
	require.JSONEq(t, whole, encoded(t, &start))
	start.Restart.Backoff = 0
	require.Contains(t, encoded(t, start), `"backoffSeconds":7`)
	start.StopTimeout, start.Restart.Backoff = 0, 250*time.Millisecond
	require.Contains(t, encoded(t, start), `"stopTimeoutSeconds":3`)

	probe := adapter.Probe{TCP: &adapter.TCPProbe{Port: 80}, Attempts: 2, IntervalSeconds: 0.5, TimeoutSeconds: 4,
		Timeout: 1500 * time.Millisecond}
	require.JSONEq(t, `{"tcp":{"port":80},"attempts":2,"intervalSeconds":0.5,"timeoutSeconds":1.5}`, encoded(t, probe))
	require.JSONEq(t, encoded(t, probe), encoded(t, &probe))
}

func TestTasksOfYesterdayAreSentByteForByteAsTheyWere(t *testing.T) {
	t.Parallel()
	for want, task := range map[string]adapter.NodeTask{
		`{"name":"a","command":["x"],"restart":{"policy":"on_failure","maxRestarts":5,"backoffSeconds":1},"stopTimeoutSeconds":5}`: adapter.StartProcess{
			Name: "a", Command: []string{"x"}, StopTimeoutSeconds: 5,
			Restart: adapter.Restart{Policy: "on_failure", MaxRestarts: 5, BackoffSeconds: 1},
		},
		`{"name":"a","command":null,"restart":{"policy":""}}`:                                adapter.StartProcess{Name: "a"},
		`{"exec":{"command":["x"]},"attempts":100,"intervalSeconds":0.3,"timeoutSeconds":5}`: adapter.Probe{Exec: &adapter.ExecProbe{Command: []string{"x"}}, Attempts: 100, IntervalSeconds: 0.3, TimeoutSeconds: 5},
		`{"http":{"port":80,"path":""}}`:                                                     adapter.Probe{HTTP: &adapter.HTTPProbe{Port: 80}},
		`{"name":"a"}`:                                                                       adapter.StopProcess{Name: "a"},
		`{"digest":"d","path":"/x","as":"files","platform":"linux/amd64","mode":"0600","owner":"app:app"}`: adapter.FetchArtifact{Digest: "d", Path: "/x", As: "files", Platform: "linux/amd64", Mode: "0600", Owner: "app:app"},
		`{}`: adapter.Teardown{},
	} {
		require.Equal(t, want, encoded(t, task))
		plain, err := json.Marshal(task)
		require.NoError(t, err)
		require.Equal(t, want, string(plain))
	}
}

// half is what an adapter could write before there were durations: a struct of its own that hides the whole seconds.
type half struct {
	adapter.StartProcess
	StopTimeoutSeconds float64 `json:"stopTimeoutSeconds"`
}

func TestAStructThatEmbedsATaskKeepsItsOwnFields(t *testing.T) {
	t.Parallel()
	task := half{adapter.StartProcess{Name: "a", Command: []string{"x"}}, 0.5}
	require.JSONEq(t, `{"name":"a","command":["x"],"restart":{"policy":""},"stopTimeoutSeconds":0.5}`, encoded(t, task))
}
