package server

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"io"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/gpuaas/app-platform/rig/platformtest"
)

// selfSigned writes a certificate for localhost and its key; the pool trusts it.
func selfSigned(t *testing.T) (certFile, keyFile string, pool *x509.CertPool) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), DNSNames: []string{"localhost"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour)}
	raw, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	require.NoError(t, err)
	private, err := x509.MarshalPKCS8PrivateKey(key)
	require.NoError(t, err)
	cert, err := x509.ParseCertificate(raw)
	require.NoError(t, err)
	pool = x509.NewCertPool()
	pool.AddCert(cert)
	certFile, keyFile = filepath.Join(t.TempDir(), "tls.crt"), filepath.Join(t.TempDir(), "tls.key")
	require.NoError(t, os.WriteFile(certFile, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: raw}), 0o600))
	require.NoError(t, os.WriteFile(keyFile, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY",
		Bytes: private}), 0o600))
	return certFile, keyFile, pool
}

func TestAServerWithACertificateSpeaksTLSAloneAndItsMetricsStandApart(t *testing.T) {
	t.Parallel()
	kit := platformtest.New(t)
	config := Defaults()
	config.DatabaseURL, config.PublicURL, config.Roles = kit.DSN, platformtest.Issuer, []string{"worker"}
	config.Edge.MetricsListen = []string{"127.0.0.1:0"}
	var pool *x509.CertPool
	config.Edge.TLSCert, config.Edge.TLSKey, pool = selfSigned(t)
	require.NoError(t, config.complete())
	log := new(bytes.Buffer)
	p := &platform{config: config, log: slog.New(slog.NewTextHandler(log, nil)), db: kit.DB, hub: kit.Hub,
		ring: kit.Ring}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	group, ctx := errgroup.WithContext(ctx)
	require.NoError(t, p.serve(ctx, group, []net.Listener{listener}, nil))
	metrics := regexp.MustCompile(`msg="serving metrics" address=(\S+)`).FindStringSubmatch(log.String())
	require.Len(t, metrics, 2, log.String())

	secure := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool,
		ServerName: "localhost", MinVersion: tls.VersionTLS12}}}
	get := func(client *http.Client, address string) (int, string) {
		answer, err := client.Get(address)
		require.NoError(t, err)
		defer func() { _ = answer.Body.Close() }()
		body, err := io.ReadAll(answer.Body)
		require.NoError(t, err)
		return answer.StatusCode, string(body)
	}
	status, body := get(secure, "https://"+listener.Addr().String()+"/readyz")
	require.Equal(t, http.StatusOK, status, body)
	status, _ = get(secure, "https://"+listener.Addr().String()+"/metrics")
	require.Equal(t, http.StatusNotFound, status)
	status, _ = get(http.DefaultClient, "http://"+listener.Addr().String()+"/readyz")
	require.Equal(t, http.StatusBadRequest, status, "a client without TLS is told so")
	status, body = get(http.DefaultClient, "http://"+metrics[1]+"/metrics")
	require.Equal(t, http.StatusOK, status)
	require.Contains(t, body, "go_goroutines")
	status, _ = get(http.DefaultClient, "http://"+metrics[1]+"/readyz")
	require.Equal(t, http.StatusNotFound, status)
	secure.CloseIdleConnections()
	cancel()
	require.NoError(t, group.Wait())
}

func TestAServerRefusesHalfACertificateAndProxiesThatAreNone(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*EdgeConfig){
		"no key":            func(c *EdgeConfig) { c.TLSCert = "x" },
		"no certificate":    func(c *EdgeConfig) { c.TLSKey = "x" },
		"a proxy by name":   func(c *EdgeConfig) { c.TrustedProxies = []string{"proxy.test"} },
		"another's header":  func(c *EdgeConfig) { c.ForwardedHeader = "X-Real-IP" },
		"a range of no use": func(c *EdgeConfig) { c.TrustedProxies = []string{"10.0.0.0/99"} },
	} {
		config := Defaults()
		config.DatabaseURL, config.PublicURL = "postgres://x", platformtest.Issuer
		require.NoError(t, config.complete(), name)
		change(&config.Edge)
		require.Error(t, config.complete(), name)
	}
}
