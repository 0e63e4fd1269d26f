package kubernetes_test

import (
	"os"
	"strings"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/rig/stack"
	"github.com/gpuaas/app-platform/sdk/client/generated/gql"
)

// guide is the guide for tenants.
const guide = "../../docs/guides/kubernetes.md"

// says is the one line of the guide's blocks that begins so, as a person types it.
func (k *cluster) says(begin string) string {
	k.t.Helper()
	text, err := os.ReadFile(guide)
	require.NoError(k.t, err)
	var found []string
	for line := range strings.Lines(string(text)) {
		if body, ok := strings.CutPrefix(line, "    "); ok && strings.HasPrefix(body, begin) {
			found = append(found, strings.TrimSpace(body))
		}
	}
	require.Len(k.t, found, 1, "lines of the guide that begin with %q", begin)
	return found[0]
}

// mentions is the command within the guide's text that begins so.
func (k *cluster) mentions(begin string) string {
	k.t.Helper()
	text, err := os.ReadFile(guide)
	require.NoError(k.t, err)
	_, rest, found := strings.Cut(string(text), "`"+begin)
	require.True(k.t, found, begin)
	command, _, _ := strings.Cut(rest, "`")
	return begin + command
}

// types runs a line in the person's shell.
func (p *person) types(line string) string {
	p.k.t.Helper()
	command := p.command(p.k.ctx, "/bin/sh", "-c", line)
	command.Env = append(command.Env, "PATH="+p.dir+":"+p.k.bin+":"+os.Getenv("PATH"))
	command.Dir = p.dir
	out, err := command.CombinedOutput()
	p.k.t.Logf("$ %s\n%s", line, out)
	require.NoError(p.k.t, err)
	return string(out)
}

// launchesByTheGuide launches as the guide says, on the nodes that the guide names for this installation, and has
// somebody look at the cluster by their own client, and drain its agent.
func (k *cluster) launchesByTheGuide() *person {
	k.t.Helper()
	p := k.newPerson()
	p.types(strings.ReplaceAll(k.says("appctl launch rke2 "), "=baremetal", "=baremetal:"+stack.WholeSKU))
	page, err := gql.ListInstances(k.ctx, k.c, k.s.Demo.ProjectID, nil, 10, "")
	require.NoError(k.t, err)
	require.Len(k.t, page.Instances.Edges, 1)
	k.instance = page.Instances.Edges[0].Node.Id
	k.nodesReady(2)
	p.types(k.says("appctl kubeconfig "))
	require.Equal(k.t, 2, strings.Count(p.types(k.says("KUBECONFIG=")), " Ready "))
	p.types(k.says("appctl members drain ") + " --yes") // there is no terminal that could ask
	require.Contains(k.t, p.types(k.says("KUBECONFIG=")), "SchedulingDisabled")
	p.types("appctl members uncordon research/agent/0 --wait")
	return p
}
