package nodetask_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/gpuaas/app-platform/domain/digest"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/domain/nodetask"
	"github.com/gpuaas/app-platform/sdk/adapter"
)

// sealed is as long as the sealing of nothing.
var sealed = base64.StdEncoding.EncodeToString(make([]byte, 48))

func TestEveryFieldOfEveryKindIsReadAndKept(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ kind, spec string }{
		{"RUN", `{"command":["sh","-c","echo <&>"],"env":[{"name":"A","value":""},{"name":"B","sealed":"` + sealed +
			`"},{"name":"C"}],"workDir":"/srv","user":"app:1000","stdin":"in"}`},
		{"WRITE_FILE", `{"path":"/etc/app/x.conf","mode":"0640","owner":"root:root","content":"","makeDirs":true}`},
		{"WRITE_FILE", `{"path":"/x","contentBase64":"AAEC"}`},
		{"WRITE_FILE", `{"path":"/x","sealed":"` + sealed + `"}`},
		{"WRITE_FILE", `{"path":"/x"}`},
		{"WRITE_FILE", `{"path":"/x","secretRef":"sec_01m80dgy6neg6set4gc3064arw"}`},
		{"RUN", `{"command":["x"],"env":[{"name":"A","secretRef":"sec_01m80dgy6neg6set4gc3064arw"}]}`},
		{"START_PROCESS",
			`{"name":"main.d-1_x","command":["/usr/bin/appd","-D"],"env":[{"name":"A","value":"1"}],"workDir":"/","user":"0","restart":{"policy":"on_failure","maxRestarts":3,"backoffSeconds":0.5},"stopSignal":"SIGINT","stopTimeoutSeconds":30}`},
		{"START_PROCESS", `{"name":"a","command":["a"]}`},
		{"STOP_PROCESS", `{"name":"a"}`},
		{"INSPECT_PROCESS", `{"name":"a"}`},
		{"PROBE", `{"exec":{"command":["true"]},"attempts":5,"intervalSeconds":1.5,"timeoutSeconds":2}`},
		{"PROBE", `{"tcp":{"port":6817,"host":"10.0.0.1"}}`},
		{"PROBE", `{"http":{"port":80,"path":"/ready?x=1","host":"localhost","expectStatus":204}}`},
		{"RESIDUE", `{}`},
		{"TEARDOWN", ` {} `},
	} {
		spec, err := nodetask.Parse(lifecycle.NodeTaskKind(c.kind), json.RawMessage(c.spec))
		require.NoError(t, err, c.spec)
		require.Equal(t, c.kind, string(nodetask.KindOf(spec)))
		kept, err := nodetask.Encode(spec)
		require.NoError(t, err)
		require.Equal(t, strings.TrimSpace(c.spec), string(kept), "its canonical form holds every field that was given")
	}
}

func TestSameDetailsHaveTheSameCanonicalForm(t *testing.T) {
	t.Parallel()
	first, err := nodetask.Parse(lifecycle.TaskProbe,
		json.RawMessage(`{"attempts":2.0e0,"tcp":{"host":"","port":80},"exec":null}`))
	require.Error(t, err, "a whole number is written as one")
	require.Nil(t, first)
	first, err = nodetask.Parse(lifecycle.TaskProbe,
		json.RawMessage(`{"intervalSeconds":2.0,"tcp":{"host":"","port":80},"exec":null}`))
	require.NoError(t, err)
	second, err := nodetask.Parse(lifecycle.TaskProbe, json.RawMessage(`{ "tcp": {"port": 80}, "intervalSeconds": 2 }`))
	require.NoError(t, err)
	a, err := nodetask.Encode(first)
	require.NoError(t, err)
	b, err := nodetask.Encode(second)
	require.NoError(t, err)
	require.Equal(t, string(a), string(b))
}

func TestBadSpecificationIsRefusedByItsField(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 5_000)
	for _, c := range []struct {
		kind, spec string
		code       fault.Code
		path       string
	}{
		{"RUN", ``, fault.BadValue, "spec"},
		{"RUN", `null`, fault.BadValue, "spec"},
		{"RUN", `[]`, fault.BadValue, "spec"},
		{"RUN", `{"command":["ls"]`, fault.BadValue, "spec"},
		{"RUN", `{"command":["ls"]} {}`, fault.BadValue, "spec"},
		{"RUN", `{"command":["` + strings.Repeat("x", nodetask.MaxSpec) + `"]}`, fault.TooLong, "spec"},
		{"RUN", `{}`, fault.BadValue, "spec.command"},
		{"RUN", `{"command":[]}`, fault.BadValue, "spec.command"},
		{"RUN", `{"command":[""]}`, fault.BadValue, "spec.command"},
		{"RUN", `{"command":"ls"}`, fault.BadValue, "spec.command"},
		{"RUN", `{"command":[` + strings.Repeat(`"a",`, 1_024) + `"a"]}`, fault.BadValue, "spec.command"},
		{"RUN", `{"Command":["ls"]}`, fault.UnknownField, "spec.Command"},
		{"RUN", `{"command":["ls"],"command":["rm"]}`, fault.Duplicate, "spec.command"},
		{"RUN", `{"command":["a\u0000b"]}`, fault.BadValue, "spec.command.0"},
		{"RUN", `{"command":["ls"],"stdin":"\u0000"}`, fault.BadValue, "spec.stdin"},
		{"RUN", `{"command":["ls"],"env":[{"name":"A"},{"name":"A B"}]}`, fault.BadValue, "spec.env.1.name"},
		{"RUN", `{"command":["ls"],"env":[{"name":"A","value":"x","sealed":"` + sealed + `"}]}`, fault.BadValue,
			"spec.env.0"},
		{"RUN", `{"command":["ls"],"env":[{"name":"A","sealed":"%"}]}`, fault.BadValue, "spec.env.0.sealed"},
		{"RUN", `{"command":["ls"],"env":[{"name":"A","sealed":"AAAA"}]}`, fault.BadValue, "spec.env.0.sealed"},
		{"RUN", `{"command":["ls"],"env":[{"name":"A","valu":"x"}]}`, fault.UnknownField, "spec.env.0.valu"},
		{"RUN", `{"command":["ls"],"env":{"A":"x"}}`, fault.UnknownField, "spec.env.A"},
		{"RUN", `{"command":["ls"],"env":[` + strings.Repeat(`{"name":"A"},`, 512) + `{"name":"A"}]}`, fault.BadValue,
			"spec.env"},
		{"RUN", `{"command":["ls"],"workDir":"relative"}`, fault.BadValue, "spec.workDir"},
		{"RUN", `{"command":["ls"],"workDir":"/` + long + `"}`, fault.BadValue, "spec.workDir"},
		{"RUN", `{"command":["ls"],"user":"a b"}`, fault.BadValue, "spec.user"},
		{"RUN", `{"command":["ls"],"user":"a:b:c"}`, fault.BadValue, "spec.user"},
		{"WRITE_FILE", `{}`, fault.BadValue, "spec.path"},
		{"WRITE_FILE", `{"path":"relative"}`, fault.BadValue, "spec.path"},
		{"WRITE_FILE", `{"path":"/"}`, fault.BadValue, "spec.path"},
		{"WRITE_FILE", `{"path":"/a/.."}`, fault.BadValue, "spec.path"},
		{"WRITE_FILE", `{"path":"/a/"}`, fault.BadValue, "spec.path"},
		{"WRITE_FILE", `{"path":"/` + long + `"}`, fault.BadValue, "spec.path"},
		{"WRITE_FILE", `{"path":"/x","mode":"rw"}`, fault.BadValue, "spec.mode"},
		{"WRITE_FILE", `{"path":"/x","mode":"77777"}`, fault.BadValue, "spec.mode"},
		{"WRITE_FILE", `{"path":"/x","mode":644}`, fault.BadValue, "spec.mode"},
		{"WRITE_FILE", `{"path":"/x","owner":":root"}`, fault.BadValue, "spec.owner"},
		{"WRITE_FILE", `{"path":"/x","contentBase64":"%"}`, fault.BadValue, "spec.contentBase64"},
		{"WRITE_FILE", `{"path":"/x","content":"a","contentBase64":"YQ=="}`, fault.BadValue, "spec.content"},
		{"WRITE_FILE", `{"path":"/x","content":"a","sealed":"` + sealed + `"}`, fault.BadValue, "spec.content"},
		{"WRITE_FILE", `{"path":"/x","makeDirs":"yes"}`, fault.BadValue, "spec.makeDirs"},
		{"START_PROCESS", `{"name":"../x","command":["ls"]}`, fault.BadValue, "spec.name"},
		{"START_PROCESS", `{"name":"x"}`, fault.BadValue, "spec.command"},
		{"START_PROCESS", `{"name":"x","command":["ls"],"restart":{"policy":"perhaps"}}`, fault.BadValue,
			"spec.restart.policy"},
		{"START_PROCESS", `{"name":"x","command":["ls"],"restart":{"maxRestarts":-1}}`, fault.BadValue,
			"spec.restart.maxRestarts"},
		{"START_PROCESS", `{"name":"x","command":["ls"],"restart":{"maxRestarts":1.5}}`, fault.BadValue,
			"spec.restart.maxRestarts"},
		{"START_PROCESS", `{"name":"x","command":["ls"],"restart":{"backoffSeconds":-1}}`, fault.BadValue,
			"spec.restart.backoffSeconds"},
		{"START_PROCESS", `{"name":"x","command":["ls"],"restart":{"backoff":1}}`, fault.UnknownField,
			"spec.restart.backoff"},
		{"START_PROCESS", `{"name":"x","command":["ls"],"stopSignal":"LOUD"}`, fault.BadValue, "spec.stopSignal"},
		{"START_PROCESS", `{"name":"x","command":["ls"],"stopTimeoutSeconds":3601}`, fault.BadValue,
			"spec.stopTimeoutSeconds"},
		{"STOP_PROCESS", `{}`, fault.BadValue, "spec.name"},
		{"INSPECT_PROCESS", `{"name":""}`, fault.BadValue, "spec.name"},
		{"PROBE", `{}`, fault.BadValue, "spec.exec"},
		{"PROBE", `{"tcp":{"port":1},"http":{"port":1}}`, fault.BadValue, "spec.exec"},
		{"PROBE", `{"exec":{"command":[]}}`, fault.BadValue, "spec.exec.command"},
		{"PROBE", `{"tcp":{"port":0}}`, fault.BadValue, "spec.tcp.port"},
		{"PROBE", `{"tcp":{"port":65536}}`, fault.BadValue, "spec.tcp.port"},
		{"PROBE", `{"tcp":{"port":"80"}}`, fault.BadValue, "spec.tcp.port"},
		{"PROBE", `{"tcp":{"port":80,"host":"a b"}}`, fault.BadValue, "spec.tcp.host"},
		{"PROBE", `{"http":{"port":80,"path":"x"}}`, fault.BadValue, "spec.http.path"},
		{"PROBE", `{"http":{"port":80,"path":"/x y"}}`, fault.BadValue, "spec.http.path"},
		{"PROBE", `{"http":{"port":80,"host":"evil@host"}}`, fault.BadValue, "spec.http.host"},
		{"PROBE", `{"http":{"port":80,"expectStatus":42}}`, fault.BadValue, "spec.http.expectStatus"},
		{"PROBE", `{"tcp":{"port":1},"attempts":3601}`, fault.BadValue, "spec.attempts"},
		{"PROBE", `{"tcp":{"port":1},"intervalSeconds":-1}`, fault.BadValue, "spec.intervalSeconds"},
		{"PROBE", `{"tcp":{"port":1},"timeoutSeconds":1e400}`, fault.BadValue, "spec.timeoutSeconds"},
		{"RESIDUE", `{"x":1}`, fault.UnknownField, "spec.x"},
		{"TEARDOWN", `{"x":{"y":[1]}}`, fault.UnknownField, "spec.x"},
		{"DANCE", `{}`, fault.InvalidArgument, "kind"},
	} {
		_, err := nodetask.Parse(lifecycle.NodeTaskKind(c.kind), json.RawMessage(c.spec))
		refused, ok := fault.As(err)
		require.True(t, ok, "%s %.80s: %v", c.kind, c.spec, err)
		require.Equal(t, fault.InvalidArgument, refused.Code)
		require.NotEmpty(t, refused.Reasons)
		require.Equal(t, c.path, refused.Reasons[0].Path, "%s %.80s: %v", c.kind, c.spec, err)
		require.Equal(t, c.code, refused.Reasons[0].Code, "%s %.80s: %v", c.kind, c.spec, err)
		require.Less(t, len(err.Error()), 1_000, "a refusal does not repeat its input")
	}
}

// The bound is the one that docs/node-tasks.md promises to who writes a controller: at most 512 KiB.
func TestSpecificationMayHaveHalfAMebibyteAndNotAByteMore(t *testing.T) {
	t.Parallel()
	const most = 524_288
	spec := func(bytes int) json.RawMessage {
		const start, end = `{"path":"/x","content":"`, `"}`
		return json.RawMessage(start + strings.Repeat("x", bytes-len(start)-len(end)) + end)
	}
	kept, err := nodetask.Parse(lifecycle.TaskWriteFile, spec(most))
	require.NoError(t, err)
	require.NotNil(t, kept)
	require.Equal(t, []string{"TOO_LONG spec"}, findings(t, lifecycle.TaskWriteFile, string(spec(most+1))))
}

func TestEveryFaultOfASpecificationIsNamedAtOnce(t *testing.T) {
	t.Parallel()
	_, err := nodetask.Parse(lifecycle.TaskRun, json.RawMessage(`{"command":[],"workDir":"x","user":" "}`))
	refused, _ := fault.As(err)
	require.Len(t, refused.Reasons, 3)
}

func TestSignalsAreThoseOfTheKernel(t *testing.T) {
	t.Parallel()
	for number := 1; number < 32; number++ {
		name := unix.SignalName(unix.Signal(number))
		for _, written := range []string{name, strings.TrimPrefix(name, "SIG"), strings.ToLower(name)} {
			spec := fmt.Sprintf(`{"name":"x","command":["x"],"stopSignal":%q}`, written)
			_, err := nodetask.Parse(lifecycle.TaskStartProcess, json.RawMessage(spec))
			require.NoError(t, err, written)
		}
	}
}

// FuzzParse holds that whatever is accepted has a canonical form that is accepted again and does
// not change any more, and that nothing ends the program.
func FuzzParse(f *testing.F) {
	kinds := []string{"RUN", "WRITE_FILE", "START_PROCESS", "STOP_PROCESS", "INSPECT_PROCESS", "PROBE", "RESIDUE",
		"TEARDOWN"}
	for i, spec := range []string{
		`{"command":["ls"],"env":[{"name":"A","value":"x"}]}`, `{"path":"/x","content":"y"}`,
		`{"name":"x","command":["y"]}`,
		`{"name":"x"}`,
		`{"name":"x"}`, `{"http":{"port":80,"path":"/"}}`, `{}`, `{}`,
	} {
		f.Add(uint8(i), []byte(spec))
	}
	f.Fuzz(func(t *testing.T, kind uint8, raw []byte) {
		of := lifecycle.NodeTaskKind(kinds[int(kind)%len(kinds)])
		spec, err := nodetask.Parse(of, raw)
		if err != nil {
			require.True(t, fault.Is(err, fault.InvalidArgument))
			return
		}
		once, err := nodetask.Encode(spec)
		require.NoError(t, err)
		require.NotContains(t, string(once), `\u0000`)
		again, err := nodetask.Parse(of, once)
		require.NoError(t, err, "%s", once)
		twice, err := nodetask.Encode(again)
		require.NoError(t, err)
		require.Equal(t, string(once), string(twice))
	})
}

// sdk/nodetask imports nothing of the platform, so it has its own forms of an id and a digest. They accept what the
// platform's accept, and nothing else.
func TestFormsOfIdsAndDigestsAreThoseOfThePlatform(t *testing.T) {
	t.Parallel()
	id, sum := string(ids.New(ids.RuntimeSecret)), digest.Of([]byte("x"))
	for _, ref := range []string{
		id, "", "sec_", id[:len(id)-1], id + "0", id + "\n", strings.ToUpper(id), "mem" + id[3:], "sec_8" + id[5:],
		id[:len(id)-1] + "i", id[:len(id)-1] + "l", id[:len(id)-1] + "o", id[:len(id)-1] + "u", id[:len(id)-1] + "z",
		string(ids.New(ids.Member)),
	} {
		_, want := ids.Parse(ids.RuntimeSecret, ref)
		_, got := nodetask.Parse(lifecycle.TaskWriteFile,
			json.RawMessage(fmt.Sprintf(`{"path":"/x","secretRef":%q}`, ref)))
		require.Equal(t, want == nil, got == nil, "%q: %v", ref, got)
	}
	for _, text := range []string{
		sum, "", "sha256:", sum[7:], sum + "0", sum[:70], sum + "\n", strings.ToUpper(sum), "sha512:" + sum[7:],
		sum[:70] + "A", sum[:70] + "g",
	} {
		_, got := nodetask.Parse(lifecycle.TaskFetchArtifact,
			json.RawMessage(fmt.Sprintf(`{"digest":%q,"path":"/x"}`, text)))
		require.Equal(t, digest.Valid(text), got == nil, "%q: %v", text, got)
	}
}

func TestFractionsOfAnAdapterAreAccepted(t *testing.T) {
	t.Parallel()
	raw, err := adapter.EncodeTask(adapter.StartProcess{
		Name: "a", Command: []string{"x"}, StopTimeout: 1500 * time.Millisecond,
		Restart: adapter.Restart{Policy: "always", Backoff: 250 * time.Millisecond},
	})
	require.NoError(t, err)
	spec, err := nodetask.Parse(lifecycle.TaskStartProcess, raw)
	require.NoError(t, err)
	stored, err := nodetask.Encode(spec)
	require.NoError(t, err)
	require.Equal(t,
		`{"name":"a","command":["x"],"restart":{"policy":"always","backoffSeconds":0.25},"stopTimeoutSeconds":1.5}`,
		string(stored))
}
