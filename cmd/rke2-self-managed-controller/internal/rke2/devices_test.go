package rke2

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/cmd/rke2-self-managed-controller/internal/machine"
	"github.com/gpuaas/app-platform/sdk/adapter"
)

func TestMembersWithGPUsAreMarkedAndGetTheDevicePlugin(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.grow(machine.Server, 1)
	l.grow(machine.Agent, 1)
	l.members[1].Node.GPUs = 4
	create := l.dispatch("op_1", adapter.InstanceCreate, time.Minute)
	image := "registry.example/k8s-device-plugin@sha256:" + strings.Repeat("a", 64)
	create.Instance.Config = json.RawMessage(`{"devicePlugin":"` + image + `"}`)
	l.carry(create, adapter.StateSucceeded)
	applied := l.look("mem-server0").Applied
	require.Equal(t, []string{"DaemonSet gpuaas-device-plugin", "RuntimeClass nvidia"}, applied)
	const config = `cat "$GPUAAS_MEMBER_ROOT/etc/rancher/rke2/config.yaml"`
	require.Contains(t, l.read("mem_agent1", config), `node-label: ["gpuaas.app/gpus=true"]`)
	require.NotContains(t, l.read("mem_server0", config), "node-label")
	command, err := machine.DevicePlugin(image)
	require.NoError(t, err)
	require.Contains(t, command.Stdin, `"image":"`+image+`"`)
	require.Contains(t, command.Stdin, `"nodeSelector":{"gpuaas.app/gpus":"true"}`)
}
