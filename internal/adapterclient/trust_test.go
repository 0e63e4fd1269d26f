package adapterclient_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/authz/token"
	"github.com/gpuaas/app-platform/internal/adapterclient"
	"github.com/gpuaas/app-platform/internal/dial"
)

// certified is a certificate of its own authority, for this machine and for clients.
func certified(t *testing.T) (pair tls.Certificate, authority string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour)}
	raw, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	require.NoError(t, err)
	return tls.Certificate{Certificate: [][]byte{raw}, PrivateKey: key},
		string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: raw}))
}

// answering is an adapter by https that counts what reached it; it may want a certificate of the authority.
func answering(t *testing.T, pair tls.Certificate, wants string) (url string, reached *atomic.Int64) {
	t.Helper()
	reached = new(atomic.Int64)
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		reached.Add(1)
		_, _ = fmt.Fprint(w, `{"operationId":"op_1","attempt":1,"state":"succeeded"}`)
	}))
	server.TLS = &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}
	if wants != "" {
		server.TLS.ClientAuth, server.TLS.ClientCAs = tls.RequireAndVerifyClientCert, x509.NewCertPool()
		require.True(t, server.TLS.ClientCAs.AppendCertsFromPEM([]byte(wants)))
	}
	server.Config.ErrorLog = nil
	server.StartTLS()
	t.Cleanup(server.Close)
	return server.URL, reached
}

func trusting(t *testing.T, policy string, trust adapterclient.Trust) *adapterclient.Client {
	t.Helper()
	ring, err := token.NewKeyring(issuer)
	require.NoError(t, err)
	allowed, err := dial.ParsePolicy(policy)
	require.NoError(t, err)
	client := adapterclient.NewTrusting(ring, allowed, trust)
	t.Cleanup(client.Close)
	return client
}

// Whoever takes over an adapter's address answers by a certificate of an authority of their own: nothing is sent to
// them, no token and no operation, and what they say is not believed.
func TestWhoeverTookAnAddressOverIsNotBelieved(t *testing.T) {
	t.Parallel()
	genuine, authority := certified(t)
	impostor, _ := certified(t)
	client := trusting(t, "127.0.0.0/8", adapterclient.Trust{})
	url, reached := answering(t, genuine, "")
	status, err := client.Status(t.Context(), adapterclient.Target{Name: "demo", URL: url,
		Authority: authority}, "op_1",
		adapterclient.Trace{})
	require.NoError(t, err)
	require.Equal(t, "succeeded", string(status.State))
	require.EqualValues(t, 1, reached.Load())

	url, reached = answering(t, impostor, "")
	_, err = client.Status(t.Context(), adapterclient.Target{Name: "demo", URL: url, Authority: authority}, "op_1",
		adapterclient.Trace{})
	require.Equal(t, adapterclient.Insecure, kindOf(t, err))
	require.Contains(t, err.Error(), "authority")
	require.Zero(t, reached.Load())
}

func TestOffThisMachineNothingIsSentWithoutTLSThatProvesWhoAnswers(t *testing.T) {
	t.Parallel()
	_, authority := certified(t)
	client := trusting(t, "127.0.0.0/8,198.51.100.0/24", adapterclient.Trust{})
	for _, target := range []adapterclient.Target{
		{Name: "demo", URL: "http://198.51.100.1:9"}, {Name: "demo", URL: "https://198.51.100.1:9"},
		{Name: "demo", URL: "http://adapter.test"},
		{Name: "demo", URL: "http://198.51.100.1:9", Authority: authority},
		{Name: "demo", URL: "http://127.0.0.1.nip.test"},
		{Name: "demo", URL: "https://198.51.100.1:9", Authority: "nonsense"},
	} {
		began := time.Now()
		_, err := client.Status(t.Context(), target, "op_1", adapterclient.Trace{})
		require.Equal(t, adapterclient.Insecure, kindOf(t, err), target.URL)
		require.Less(t, time.Since(began), 5*time.Second, "nothing was dialled")
		failed, _ := adapterclient.As(err)
		require.True(t, strings.HasPrefix(failed.Reason(), adapterclient.NotCalled), failed.Reason())
	}
	_, err := client.Status(t.Context(), adapterclient.Target{Name: "demo", URL: "http://192.0.2.1:9"}, "op_1",
		adapterclient.Trace{})
	require.Equal(t, adapterclient.Forbidden, kindOf(t, err), "the dial policy comes first")
}

func TestTheOperatorsSwitchLetsAdaptersWithoutTLSGoOn(t *testing.T) {
	t.Parallel()
	// Nothing listens there: Unavailable means that the address was dialled, and not refused before.
	client := trusting(t, "127.0.0.0/8", adapterclient.Trust{Insecure: true})
	_, err := client.Status(t.Context(), adapterclient.Target{Name: "demo", URL: "http://localhost.invalid:9"}, "op_1",
		adapterclient.Trace{})
	require.Equal(t, adapterclient.Unavailable, kindOf(t, err))
}

func TestAnAdapterMayAskForThePlatformsCertificate(t *testing.T) {
	t.Parallel()
	server, authority := certified(t)
	ours, vouches := certified(t)
	url, reached := answering(t, server, vouches)
	target := adapterclient.Target{Name: "demo", URL: url, Authority: authority}
	_, err := trusting(t, "127.0.0.0/8", adapterclient.Trust{}).Status(t.Context(), target, "op_1",
		adapterclient.Trace{})
	require.Error(t, err)
	require.Zero(t, reached.Load())
	shows := trusting(t, "127.0.0.0/8", adapterclient.Trust{Certificate: func() *tls.Certificate { return &ours }})
	_, err = shows.Status(t.Context(), target, "op_1", adapterclient.Trace{})
	require.NoError(t, err)
	require.EqualValues(t, 1, reached.Load())
}

// A tenant's address is dialled by the policy of sandboxes, never by the one for the platform's adapters.
func TestASandboxReachesWhatItsOwnPolicyAllows(t *testing.T) {
	t.Parallel()
	genuine, authority := certified(t)
	shown, _ := certified(t)
	url, reached := answering(t, genuine, "")
	plain := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = fmt.Fprint(w, `{"operationId":"op_1","attempt":1,"state":"succeeded"}`)
	}))
	t.Cleanup(plain.Close)
	inside, err := dial.ParsePolicy("127.0.0.0/8")
	require.NoError(t, err)
	ask := func(client *adapterclient.Client, target adapterclient.Target) error {
		target.Name, target.Sandbox = "demo", true
		_, err := client.Status(t.Context(), target, "op_1", adapterclient.Trace{})
		return err
	}
	pinned := adapterclient.Target{URL: url, Authority: authority}
	closed := trusting(t, "127.0.0.0/8", adapterclient.Trust{Insecure: true})
	for _, address := range []string{plain.URL, url, strings.Replace(plain.URL, "127.0.0.1", "localhost", 1),
		"http://169.254.169.254", "https://169.254.169.254", "http://8.8.8.8"} {
		require.Equal(t, adapterclient.Forbidden, kindOf(t, ask(closed, adapterclient.Target{URL: address})), address)
	}
	require.Equal(t, adapterclient.Forbidden, kindOf(t, ask(closed, pinned)), "an authority opens no address")
	require.Zero(t, reached.Load())

	open := trusting(t, "", adapterclient.Trust{Sandbox: inside, Certificate: func() *tls.Certificate {
		return &shown
	}})
	require.NoError(t, ask(open, pinned))
	require.NoError(t, ask(open, adapterclient.Target{URL: plain.URL}), "the operator allows it")
	require.Error(t, ask(open, adapterclient.Target{URL: url}), "the machine's authorities do not know it")
	pinned.Sandbox = false
	_, err = open.Status(t.Context(), pinned, "op_1", adapterclient.Trace{})
	require.Equal(t, adapterclient.Forbidden, kindOf(t, err), "nor does the sandboxes' policy open the platform's")
}
