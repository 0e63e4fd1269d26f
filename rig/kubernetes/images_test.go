package kubernetes_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/sdk/client"
	"github.com/gpuaas/app-platform/sdk/client/generated/gql"
	"github.com/gpuaas/app-platform/sdk/publish"
	"github.com/gpuaas/app-platform/sdk/signing"
)

// publishes puts an image of one program among the tenant's artifacts, and returns its digest.
func (k *cluster) publishes(program string) (digest string) {
	k.t.Helper()
	ref, digest, err := k.s.PushImage(k.ctx, "tenants/demo/"+program, filepath.Join(k.bin, program))
	require.NoError(k.t, err)
	access, err := k.s.RegistryPush().Authorization()
	require.NoError(k.t, err)
	text, err := os.ReadFile(k.s.SigningKeyFile())
	require.NoError(k.t, err)
	key, err := signing.ParsePrivate(text)
	require.NoError(k.t, err)
	_, err = publish.Registry{User: access.Username, Password: access.Password, PlainHTTP: true}.Sign(k.ctx, ref, key,
		false)
	require.NoError(k.t, err)
	publisher, err := client.New(k.s.URL, client.Options{Token: k.s.Demo.PublisherKey})
	require.NoError(k.t, err)
	made, err := gql.PublishArtifact(k.ctx, publisher, gql.PublishArtifactInput{Name: program, Ref: ref,
		ProjectId: k.s.Demo.PublisherProjectID, IdempotencyKey: client.NewKey()})
	require.NoError(k.t, err)
	for _, to := range []gql.Stage{gql.StageStaged, gql.StageCanary, gql.StageActive} {
		_, err := gql.PromoteArtifact(k.ctx, publisher,
			gql.PromoteArtifactInput{ArtifactId: made.PublishArtifact.Id, To: to,
				Reason: "test"})
		require.NoError(k.t, err)
	}
	return digest
}

// bringsAnImage has every node hold an image of the tenant's, which the registry serves only with a token, and runs a
// pod of it. The cluster has no credential: the nodes' agents have one, for minutes.
func (k *cluster) bringsAnImage() {
	k.t.Helper()
	const name = "registry.example/team/tool:1"
	var brought struct{ Nodes, Without []string }
	k.acts("image.bring", `{"digest":"`+k.publishes("appctl")+`","name":"`+name+`"}`, &brought)
	require.Len(k.t, brought.Nodes, 2)
	require.Empty(k.t, brought.Without)
	k.apply(map[string]any{"apiVersion": "v1", "kind": "Pod", "metadata": map[string]any{"name": "tool"},
		"spec": map[string]any{"restartPolicy": "Never", "containers": []any{map[string]any{"name": "tool",
			"image": name, "imagePullPolicy": "IfNotPresent", "args": []string{"--help"}}}}})
	k.eventually("a pod of the image has run", func() bool {
		phase, err := k.tryKubectl("", "get", "pod", "tool", "-o", "jsonpath={.status.phase}")
		return err == nil && strings.TrimSpace(phase) == "Succeeded"
	})
	require.Contains(k.t, k.kubectl("logs", "tool"), "Usage:")
	k.kubectl("delete", "pod", "tool", "--now")
}

// acts carries an action of the app out.
func (k *cluster) acts(name, input string, output any) {
	k.t.Helper()
	answer, err := gql.InvokeAction(k.ctx, k.c, gql.InvokeActionInput{InstanceId: k.instance, Action: name,
		Input: json.RawMessage(input), IdempotencyKey: client.NewKey()})
	require.NoError(k.t, err)
	require.NoError(k.t, json.Unmarshal(answer.InvokeAction.Output, output))
	k.t.Logf("%s: %s", name, answer.InvokeAction.Output)
}
