package adaptertest_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/sdk/adapter"
	"github.com/gpuaas/app-platform/sdk/adaptertest"
	"github.com/gpuaas/app-platform/sdk/adaptertest/conformance/sandbox"
)

func do(t *testing.T, nodes *adaptertest.Nodes, kind adapter.TaskKind, spec any) sandbox.Outcome {
	t.Helper()
	raw, err := json.Marshal(spec)
	require.NoError(t, err)
	return nodes.Do(
		t.Context(),
		sandbox.Task{InstanceID: "ins_1", MemberID: "mem_1", Kind: kind, Spec: raw, Timeout: 2 * time.Minute},
	)
}

func TestMembersFetchWhatTheTestGivesThem(t *testing.T) {
	t.Parallel()
	nodes := adaptertest.NewNodes(t)
	digest := nodes.Artifacts.Put([]byte("weights"))
	for _, cached := range []bool{false, true} {
		out := do(t, nodes, adapter.TaskFetchArtifact, adapter.FetchArtifact{Digest: digest, Path: "/srv/model"})
		require.Equal(t, adapter.TaskSucceeded, out.State, out.Message)
		require.Equal(t, cached, out.Result["cached"])
	}
	out := do(
		t,
		nodes,
		adapter.TaskRun,
		adapter.RunCommand{Command: []string{"sh", "-c", `cat "$GPUAAS_MEMBER_ROOT/srv/model"`}},
	)
	require.Equal(t, "weights", out.Stdout, out.Message)
}

func TestAMemberOfItsOwnIsReallyBooted(t *testing.T) {
	t.Parallel()
	adaptertest.Require(t, "unshare", "nsenter", "cloud-init")
	nodes := adaptertest.NewNodes(t, adaptertest.Namespaces())
	boot := adapter.CloudInit{
		InstanceID: "i-1",
		Hostname:   "member",
		UserData: "#cloud-config\nwrite_files:\n- path: /srv/note\n  content: hello\n" +
			"runcmd:\n- [ sh, -c, 'echo ran >> /srv/ran' ]\n",
	}
	for range 2 { // the second time nothing happens
		out := do(t, nodes, adapter.TaskCloudInit, boot)
		require.Equal(t, adapter.TaskSucceeded, out.State, "%s %v", out.Message, out.Result)
		require.Equal(t, "done", out.Result["status"])
	}
	out := do(t, nodes, adapter.TaskRun, adapter.RunCommand{Command: []string{"cat", "/srv/note", "/srv/ran"}})
	require.Equal(t, "helloran\n", out.Stdout, out.Message)
	boot.InstanceID, boot.UserData = "i-2", "#cloud-config\nruncmd:\n- [ sh, -c, 'exit 3' ]\n"
	out = do(t, nodes, adapter.TaskCloudInit, boot)
	require.Equal(t, adapter.TaskFailed, out.State, "%v", out.Result)
	require.Equal(t, "error", out.Result["status"])
}
