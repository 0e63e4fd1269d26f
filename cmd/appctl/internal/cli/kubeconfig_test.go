package cli_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/sdk/client"
	"github.com/gpuaas/app-platform/sdk/client/clienttest"
)

// signer is an app that lets people in by certificates: it signs whatever is requested, for so long.
type signer struct {
	life   time.Duration
	signed atomic.Int32
	last   atomic.Pointer[x509.CertificateRequest]
}

func (s *signer) act(t *testing.T) func(clienttest.Call) (any, error) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	return func(call clienttest.Call) (any, error) {
		input, _ := call.Args["input"].(map[string]any)
		if input["action"] == "kubeconfig.cluster" {
			return object{"output": object{"endpoint": "api", "authority": "AUTHORITY", "serverName": "inside",
				"credentialVersion": "auth/v9"}}, nil
		}
		asked, _ := input["input"].(map[string]any)
		text, _ := asked["request"].(string)
		block, _ := pem.Decode([]byte(text))
		if block == nil {
			return nil, &client.Error{Code: client.CodeInvalidArgument, Message: "no request"}
		}
		request, err := x509.ParseCertificateRequest(block.Bytes)
		if err != nil {
			return nil, err
		}
		s.signed.Add(1)
		s.last.Store(request)
		template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: request.Subject, NotBefore: time.Now(),
			NotAfter: time.Now().Add(s.life)}
		raw, err := x509.CreateCertificate(rand.Reader, template, template, request.PublicKey, key)
		return object{"output": object{"certificate": string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE",
			Bytes: raw}))}}, err
	}
}

// withCertificates gives the rig's instance the actions, and the caller these keys.
func withCertificates(t *testing.T, r *rig, s *signer, held ...string) {
	t.Helper()
	actions := []object{}
	for level, key := range map[string]string{"viewer": "apps.queue.read", "member": "apps.queue.submit",
		"admin": "apps.member.exec", "cluster": "apps.queue.read"} {
		actions = append(actions, object{"name": "kubeconfig." + level, "permissionKey": key, "risk": "WRITE",
			"inputSchema": object{}, "outputSchema": object{}})
	}
	r.Handle("instance", func(clienttest.Call) (any, error) {
		return object{"id": "ins_1", "name": "research", "projectId": "prj_1", "actions": actions}, nil
	})
	r.Handle("viewer", func(clienttest.Call) (any, error) {
		return object{"actor": object{"id": "usr_1"}, "permissions": held}, nil
	})
	r.Handle("invokeAction", s.act(t))
}

// kubeconfigs are the parts of a configuration that the tests look at.
type kubeconfigs struct {
	Clusters []struct {
		Cluster struct {
			Server     string
			Authority  string `json:"certificate-authority-data"`
			ServerName string `json:"tls-server-name"`
		}
	}
	Users []struct {
		User struct {
			Exec struct {
				APIVersion string
				Args       []string
			}
		}
	}
}

func TestAKubeconfigHoldsNoSecretAndAsksForWhatTheCallerMay(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	withCertificates(t, r, &signer{life: time.Hour}, "apps.queue.read", "apps.queue.submit")
	got := r.run(t.Context(), "", "kubeconfig", "ins_1", "--port", "7001")
	require.Zero(t, got.code, got.stderr)
	require.NotContains(t, got.stdout, "PRIVATE KEY")
	require.NotContains(t, got.stdout, "gpu_ses_test")
	var made kubeconfigs
	require.NoError(t, json.Unmarshal([]byte(got.stdout), &made))
	cluster := made.Clusters[0].Cluster
	require.Equal(t, "https://127.0.0.1:7001", cluster.Server)
	require.Equal(t, "inside", cluster.ServerName)
	require.Equal(t, "QVVUSE9SSVRZ", cluster.Authority)
	require.Equal(t, "auth/v9", made.Users[0].User.Exec.APIVersion)
	require.Equal(t, []string{"kube-credential", "ins_1", "--as=member", "--port=7001", "--endpoint=api",
		"--version-of=auth/v9"}, made.Users[0].User.Exec.Args, "the most that the caller may")

	got = r.run(t.Context(), "", "kubeconfig", "ins_1", "--as", "viewer", "--port", "7001")
	require.Contains(t, got.stdout, "--as=viewer")
	got = r.run(t.Context(), "", "kubeconfig", "ins_1", "--as", "root")
	require.Equal(t, 2, got.code, got.stderr)
	withCertificates(t, r, &signer{})
	got = r.run(t.Context(), "", "kubeconfig", "ins_1")
	require.NotZero(t, got.code)
	require.Contains(t, got.stderr, "apps.queue.read is needed")
	r.Handle("instance", func(clienttest.Call) (any, error) {
		return object{"id": "ins_1", "name": "other", "projectId": "prj_1", "actions": []object{}}, nil
	})
	got = r.run(t.Context(), "", "kubeconfig", "ins_1")
	require.Equal(t, 2, got.code)
	require.Contains(t, got.stderr, "issues no client certificates")
}

func TestACredentialIsKeptWhileItIsGood(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	s := &signer{life: time.Hour}
	withCertificates(t, r, s, "apps.queue.read")
	listener, err := net.Listen("tcp", "127.0.0.1:0") // a forwarding that runs already
	require.NoError(t, err)
	defer listener.Close()
	_, port, err := net.SplitHostPort(listener.Addr().String())
	require.NoError(t, err)
	ask := func() (answer struct {
		APIVersion, Kind string
		Status           struct{ ExpirationTimestamp, ClientCertificateData, ClientKeyData string }
	}) {
		got := r.run(t.Context(), "", "kube-credential", "ins_1", "--as=viewer", "--endpoint=api", "--port="+port,
			"--version-of=auth/v9")
		require.Zero(t, got.code, got.stderr)
		require.NoError(t, json.Unmarshal([]byte(got.stdout), &answer))
		return answer
	}
	first := ask()
	require.Equal(t, "auth/v9", first.APIVersion)
	require.Equal(t, "ExecCredential", first.Kind)
	require.Contains(t, first.Status.ClientKeyData, "EC PRIVATE KEY")
	require.Equal(t, "usr_1", s.last.Load().Subject.CommonName)
	require.Equal(t, []string{"gpuaas:viewer"}, s.last.Load().Subject.Organization)
	require.Equal(t, first, ask(), "it is good for an hour")
	require.EqualValues(t, 1, s.signed.Load())
	for _, token := range []string{"gpu_ses_other", "gpu_ses_test"} {
		r.env["APPCTL_TOKEN"] = token
		r.RequireToken(token)
		ask()
		require.EqualValues(t, 2, s.signed.Load(),
			"another login gets no certificate of the first, and leaves it its own")
	}

	kept := filepath.Join(filepath.Dir(r.config()), "kube", "ins_1")
	info, err := os.Stat(filepath.Join(kept, "key.pem"))
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	s.life = 30 * time.Second // too short to be shown again
	held, err := filepath.Glob(filepath.Join(kept, "viewer-*.pem"))
	require.NoError(t, err)
	require.Len(t, held, 2)
	for _, path := range held {
		require.NoError(t, os.Remove(path))
	}
	second, third := ask(), ask()
	require.EqualValues(t, 4, s.signed.Load())
	require.NotEqual(t, second.Status.ClientCertificateData, third.Status.ClientCertificateData)
	require.Equal(t, first.Status.ClientKeyData, third.Status.ClientKeyData)
	require.False(t, strings.Contains(third.Status.ClientCertificateData, "PRIVATE"))
}
