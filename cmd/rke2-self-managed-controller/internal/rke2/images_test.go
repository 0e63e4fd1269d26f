package rke2

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/cmd/rke2-self-managed-controller/internal/machine"
	"github.com/gpuaas/app-platform/cmd/rke2-self-managed-controller/internal/standin"
	"github.com/gpuaas/app-platform/sdk/adapter"
)

func TestEveryNodeThatServesIsBroughtAnImageWithoutACredential(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.grow(machine.Server, 1)
	l.grow(machine.Agent, 2)
	l.carry(l.dispatch("op_1", adapter.InstanceCreate, time.Minute), adapter.StateSucceeded)
	l.members[2].Status = string(adapter.MemberFailed)
	config := l.Artifacts.Put([]byte("{}"))
	image := l.Artifacts.Put(fmt.Appendf(nil, `{"schemaVersion":2,`+
		`"mediaType":"application/vnd.oci.image.manifest.v1+json",`+
		`"config":{"mediaType":"application/vnd.oci.image.config.v1+json","digest":%q,"size":2},"layers":[]}`, config))
	var brought struct {
		Image          string
		Nodes, Without []string
	}
	const name = "registry.example/team/app:1"
	l.act("image.bring", "k1", fmt.Sprintf(`{"digest":%q,"name":%q}`, image, name), &brought)
	require.Equal(t, name, brought.Image)
	require.ElementsMatch(t, []string{"mem-server0", "mem-agent1"}, brought.Nodes)
	require.Equal(t, []string{"mem-agent2"}, brought.Without)
	const list, left = `cat "$GPUAAS_MEMBER_ROOT` + machine.DataPath + "/" + standin.BroughtPath + `"`,
		`ls "$GPUAAS_MEMBER_ROOT` + machine.DataPath + `/agent/brought"`
	for _, id := range []string{"mem_server0", "mem_agent1"} {
		require.Equal(t, name+"\n", l.read(id, list))
		require.Empty(t, l.read(id, left), "containerd has it, and nothing else keeps it")
	}
	require.Empty(t, l.read("mem_agent2", list))

	code, body := l.action("image.bring", "k2", fmt.Sprintf(`{"digest":%q,"name":"app"}`, image))
	require.Equal(t, http.StatusUnprocessableEntity, code, body)
	code, body = l.action("image.bring", "k3", fmt.Sprintf(`{"digest":"sha256:%064d","name":%q}`, 0, name))
	require.Equal(t, http.StatusUnprocessableEntity, code, body)
	require.Contains(t, body, "does not exist")
}
