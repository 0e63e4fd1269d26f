package rke2

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/cmd/rke2-self-managed-controller/internal/machine"
	"github.com/gpuaas/app-platform/cmd/rke2-self-managed-controller/internal/standin"
	"github.com/gpuaas/app-platform/sdk/adapter"
)

// requested is the input of an action that signs: a request of this subject for a new key.
func requested(t *testing.T, subject pkix.Name, hosts ...string) string {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	raw, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{Subject: subject, DNSNames: hosts},
		key)
	require.NoError(t, err)
	text, err := json.Marshal(map[string]string{
		"request": string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: raw}))})
	require.NoError(t, err)
	return string(text)
}

func TestPeopleGetCertificatesOfMinutesForThemselvesAlone(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.grow(machine.Server, 1)
	l.carry(l.dispatch("op_1", adapter.InstanceCreate, time.Minute), adapter.StateSucceeded)
	var way struct{ Endpoint, Authority, ServerName string }
	l.act("kubeconfig.cluster", "k0", `{}`, &way)
	require.Equal(t, "api", way.Endpoint)
	trusted := x509.NewCertPool()
	require.True(t, trusted.AppendCertsFromPEM([]byte(way.Authority)))

	input := requested(t, pkix.Name{CommonName: "usr_1", Organization: []string{"gpuaas:member"}})
	var signed struct{ Certificate, User, Group, ExpiresAt string }
	l.act("kubeconfig.member", "k1", input, &signed)
	block, _ := pem.Decode([]byte(signed.Certificate))
	certificate, err := x509.ParseCertificate(block.Bytes)
	require.NoError(t, err)
	_, err = certificate.Verify(x509.VerifyOptions{Roots: trusted,
		KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})
	require.NoError(t, err)
	require.Equal(t, []string{"gpuaas:member"}, certificate.Subject.Organization)
	require.WithinDuration(t, time.Now().Add(15*time.Minute), certificate.NotAfter, time.Minute)
	view := l.look("mem-server0")
	require.Zero(t, view.Requests, "no request is left in the cluster")
	require.Contains(t, view.Bindings, "gpuaas:viewer view")
	require.Contains(t, view.Bindings, "gpuaas:member edit")
	require.Contains(t, view.Bindings, "gpuaas:admin cluster-admin")
	var again struct{ Certificate string }
	l.act("kubeconfig.member", "k1", input, &again)
	require.Equal(t, signed.Certificate, again.Certificate, "a repeat is the same certificate")

	require.NoError(t, standin.RefuseApprovals(l.state))
	code, body := l.action("kubeconfig.member", "k2", input)
	require.Equal(t, http.StatusUnprocessableEntity, code, body)
	require.Contains(t, body, "the test refuses every approval")
	require.Zero(t, l.look("mem-server0").Requests, "no request is left that was not approved")

	before := l.stand.Requested()
	for name, wrong := range map[string]string{
		"another group": requested(t, pkix.Name{CommonName: "usr_1", Organization: []string{"gpuaas:admin"}}),
		"two groups": requested(t, pkix.Name{CommonName: "usr_1",
			Organization: []string{"gpuaas:viewer", "system:masters"}}),
		"no group":     requested(t, pkix.Name{CommonName: "usr_1"}),
		"another name": requested(t, pkix.Name{CommonName: "usr_2", Organization: []string{"gpuaas:viewer"}}),
		"more names": requested(t, pkix.Name{CommonName: "usr_1", Organization: []string{"gpuaas:viewer"},
			OrganizationalUnit: []string{"x"}}),
		"a host": requested(t, pkix.Name{CommonName: "usr_1", Organization: []string{"gpuaas:viewer"}}, "kubernetes"),
		"text":   `{"request":"hello"}`,
	} {
		code, body = l.action("kubeconfig.viewer", "k-"+strings.ReplaceAll(name, " ", "-"), wrong)
		require.Equal(t, http.StatusUnprocessableEntity, code, "%s: %s", name, body)
		require.Contains(t, body, "input.request", name)
	}
	require.Equal(t, before, l.stand.Requested(), "what is refused asks for no task")
}

// TestMorePodsThanOneOutputHoldsAreToldAndDrained has pods on an agent of which a node keeps a part of the list.
func TestMorePodsThanOneOutputHoldsAreToldAndDrained(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.grow(machine.Server, 1)
	l.grow(machine.Agent, 1)
	l.carry(l.dispatch("op_1", adapter.InstanceCreate, time.Minute), adapter.StateSucceeded)
	fill := func(count, label int) {
		var pods []standin.Pod
		for i := range count {
			name := fmt.Sprintf("web-%d", i)
			pods = append(pods, standin.Pod{Namespace: "shop", Name: name, UID: name, Node: "mem-agent1",
				Kind: "ReplicaSet", Labels: map[string]string{"long": strings.Repeat("x", label)}})
		}
		require.NoError(t, standin.Arrange(l.state, "mem-server0", pods, nil))
	}
	var list struct {
		Pods []struct{ Name string }
		More bool
	}
	fill(30, 10)
	l.act("pods.list", "k1", `{}`, &list)
	require.Len(t, list.Pods, 30)
	require.False(t, list.More)
	fill(600, 10)
	l.act("pods.list", "k2", `{}`, &list)
	require.Len(t, list.Pods, 500)
	require.True(t, list.More)
	fill(20, 5000)
	l.act("pods.list", "k3", `{}`, &list)
	require.Len(t, list.Pods, 12, "64 KiB hold so many whole lines")
	require.True(t, list.More)
	var drained struct {
		Evicted int
		More    bool
	}
	l.act("node.drain", "k4", `{"component":"agent","index":1}`, &drained)
	require.Equal(t, 12, drained.Evicted)
	require.True(t, drained.More)
	fill(20, 5000)
	l.carry(l.dispatch("op_2", adapter.MemberDrain, time.Minute, "mem_agent1"), adapter.StateSucceeded)
	require.Empty(t, l.look("mem-server0").Pods)
}

func TestEventsAndDrainsByActions(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.grow(machine.Server, 1)
	l.grow(machine.Agent, 1)
	l.carry(l.dispatch("op_1", adapter.InstanceCreate, time.Minute), adapter.StateSucceeded)
	l.pods("mem-agent1", "web", "free")
	var drained struct {
		Node    string
		Evicted int
		Left    []struct{ Name, Reason string }
	}
	l.act("node.drain", "k1", `{"component":"agent","index":1}`, &drained)
	require.Equal(t, 1, drained.Evicted)
	require.Len(t, drained.Left, 1)
	require.Equal(t, "web", drained.Left[0].Name)
	require.Contains(t, drained.Left[0].Reason, "disruption budget")
	var nodes struct {
		Nodes []struct {
			Name     string
			Cordoned bool
		}
	}
	l.act("nodes.list", "k2", `{}`, &nodes)
	require.True(t, nodes.Nodes[1].Cordoned)
	l.act("node.uncordon", "k3", `{"component":"agent","index":1}`, &drained)
	l.act("nodes.list", "k4", `{}`, &nodes)
	require.False(t, nodes.Nodes[1].Cordoned)
	var events struct {
		Events []struct{ Type, Reason, Object, Message string }
	}
	l.act("events.list", "k5", `{}`, &events)
	require.Equal(t, "pod shop/web", events.Events[0].Object)
	require.Equal(t, "0/2 nodes are \"free\"\nnow", events.Events[0].Message)
	code, body := l.action("node.drain", "k6", `{"component":"agent","index":7}`)
	require.Equal(t, http.StatusUnprocessableEntity, code, body)
}
