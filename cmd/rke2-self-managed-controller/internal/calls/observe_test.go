package calls

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/cmd/rke2-self-managed-controller/internal/machine"
	"github.com/gpuaas/app-platform/sdk/adapter"
)

// ending is a certificate in PEM that ends then.
func ending(t *testing.T, at time.Time, authority bool) string {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: at.AddDate(-1, 0, 0), NotAfter: at,
		IsCA:                  authority,
		BasicConstraintsValid: true}
	raw, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	require.NoError(t, err)
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: raw}))
}

func TestAnObservationSaysWhatEtcdBearsAndWhenCertificatesEnd(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 5, 1, 0, 0, 0, 0, time.UTC)
	members := []adapter.Member{{ID: "mem_a", ComponentKey: machine.Server},
		{ID: "mem_b", ComponentKey: machine.Server}, {ID: "mem_c", ComponentKey: machine.Server}}
	const list = "1, started, mem-a-0a0a0a0a, https://10.0.0.1:2380, https://10.0.0.1:2379, false\n" +
		"2, started, mem-b-0a0a0a0a, https://10.0.0.2:2380, https://10.0.0.2:2379, false\n"
	const third = "3, started, mem-c-0a0a0a0a, https://10.0.0.3:2380, https://10.0.0.3:2379, false\n"
	long, soon := ending(t, now.AddDate(0, 6, 0), false), ending(t, now.AddDate(0, 0, 20), false)
	authority := ending(t, now.AddDate(0, 0, 1), true)
	for name, c := range map[string]struct {
		said    string
		third   adapter.Health
		health  adapter.Health
		summary string
		says    []string
	}{
		"all is well": {list + third + "=== certificates\n" + authority + long, adapter.Healthy, adapter.Healthy,
			"3 of 3 nodes are Ready; 3 votes, 1 may be lost", nil},
		"one is away": {list + third + "=== certificates\n" + long, adapter.Unhealthy, adapter.Degraded,
			"2 of 3 nodes are Ready; 3 votes, 0 may be lost", []string{"2 of 3 votes are up and etcd needs 2"}},
		"one never started": {list + "3, unstarted, , https://10.0.0.3:2380, , false\n=== certificates\n" + long,
			adapter.Healthy, adapter.Degraded, "3 of 3 nodes are Ready; 2 votes, 0 may be lost",
			[]string{"1 of etcd's members do not vote"}},
		"a certificate ends": {list + third + "=== certificates\n" + long + soon, adapter.Healthy, adapter.Degraded,
			"3 of 3 nodes are Ready; 3 votes, 1 may be lost", []string{"certificates end on 2026-05-21"}},
		"nothing is told": {"=== certificates\n", adapter.Healthy, adapter.Healthy, "3 of 3 nodes are Ready", nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ready := "3 of 3 nodes are Ready"
			whole := adapter.Healthy
			if c.third != adapter.Healthy {
				ready, whole = "2 of 3 nodes are Ready", adapter.Degraded
			}
			seen := adapter.Observation{Health: whole, Message: ready, Members: []adapter.MemberObservation{
				{ID: "mem_a", Health: adapter.Healthy}, {ID: "mem_b", Health: adapter.Healthy},
				{ID: "mem_c", Health: c.third}},
				Roles: []adapter.RoleObservation{{ComponentKey: machine.Server, Health: whole, Summary: ready}}}
			judge(&seen, &adapter.Call{Members: members}, machine.PlaneOf(c.said), now)
			require.Equal(t, c.health, seen.Health)
			require.Equal(t, c.health, seen.Roles[0].Health)
			require.Equal(t, c.summary, seen.Roles[0].Summary)
			for _, text := range c.says {
				require.Contains(t, seen.Message, text)
			}
			if len(c.says) == 0 {
				require.Equal(t, ready, seen.Message)
			}
		})
	}
}
