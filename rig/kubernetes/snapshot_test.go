package kubernetes_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/sdk/client"
	"github.com/gpuaas/app-platform/sdk/client/generated/gql"
)

// act calls an action of the instance and decodes its output.
func (k *cluster) act(action string, input, output any) {
	k.t.Helper()
	encoded, err := json.Marshal(input)
	require.NoError(k.t, err)
	answer, err := gql.InvokeAction(k.ctx, k.c, gql.InvokeActionInput{
		InstanceId: k.instance, Action: action, Input: encoded, Reason: "test", IdempotencyKey: client.NewKey(),
	})
	require.NoError(k.t, err)
	require.NoError(k.t, json.Unmarshal(answer.InvokeAction.Output, output))
}

// TestARealKubernetesGoesBackToASnapshot saves etcd by the app's action and goes back to it: what the cluster was told
// since is lost, what it was told before is there, and its pods run.
func TestARealKubernetesGoesBackToASnapshot(t *testing.T) {
	t.Parallel()
	k := begin(t, 2)
	nodes := k.rent(2)
	k.launch(nodes[0], nodes[1])
	k.apply(deployment("web", 1)...)
	k.ready("web", "1")
	k.kubectl("create", "configmap", "told-before")
	var saved struct {
		Name, Node string
		Bytes      int64
	}
	k.act("snapshot.save", map[string]string{"name": "kept"}, &saved)
	require.Positive(t, saved.Bytes)
	t.Logf("saved %s on %s: %d bytes", saved.Name, saved.Node, saved.Bytes)
	k.kubectl("create", "configmap", "told-since")
	var restored struct{ Restored string }
	k.act("snapshot.restore", map[string]string{"snapshot": saved.Name}, &restored)
	require.Equal(t, saved.Name, restored.Restored)
	k.kubectl("get", "configmap", "told-before")
	_, err := k.tryKubectl("", "get", "configmap", "told-since")
	require.ErrorContains(t, err, "not found")
	k.nodesReady(2)
	k.ready("web", "1")
	ended, err := gql.DecommissionInstance(k.ctx, k.c, gql.DecommissionInstanceInput{
		InstanceId: k.instance, DeadlineSeconds: 600, Reason: "test", IdempotencyKey: client.NewKey(),
	})
	require.NoError(t, err)
	k.succeeds(ended.DecommissionInstance.Operation)
}
