package controller

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// pair writes a certificate of its own authority and its key, and returns their files.
func pair(t *testing.T) (cert, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), DNSNames: []string{"adapter.test"}, IsCA: true,
		BasicConstraintsValid: true,
		NotBefore:             time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour)}
	raw, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	require.NoError(t, err)
	der, err := x509.MarshalPKCS8PrivateKey(private)
	require.NoError(t, err)
	dir := t.TempDir()
	cert, key = filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key")
	require.NoError(t, os.WriteFile(cert, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: raw}), 0o600))
	require.NoError(t, os.WriteFile(key, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), 0o600))
	return cert, key
}

func TestAControllerServesTLSToThePlatformAlone(t *testing.T) {
	t.Parallel()
	cert, key := pair(t)
	ours, oursKey := pair(t)
	plain, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	listener, err := secure(plain, options{tlsCert: cert, tlsKey: key, clientCA: ours})
	require.NoError(t, err)
	defer func() { _ = listener.Close() }()
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			_, _ = io.WriteString(conn, "ok")
			_ = conn.Close()
		}
	}()
	ask := func(shows ...tls.Certificate) string {
		authority, err := os.ReadFile(cert)
		require.NoError(t, err)
		pool := x509.NewCertPool()
		require.True(t, pool.AppendCertsFromPEM(authority))
		conn, err := tls.Dial("tcp", plain.Addr().String(),
			&tls.Config{RootCAs: pool, ServerName: "adapter.test", Certificates: shows, MinVersion: tls.VersionTLS12})
		if err != nil {
			return ""
		}
		defer func() { _ = conn.Close() }()
		answer, _ := io.ReadAll(conn)
		return string(answer)
	}
	require.Empty(t, ask(), "a caller without the platform's certificate is refused")
	shown, err := tls.LoadX509KeyPair(ours, oursKey)
	require.NoError(t, err)
	require.Equal(t, "ok", ask(shown))
	other, otherKey := pair(t)
	stranger, err := tls.LoadX509KeyPair(other, otherKey)
	require.NoError(t, err)
	require.Empty(t, ask(stranger))

	for name, o := range map[string]options{
		"no such file": {tlsCert: cert + "x", tlsKey: key}, "no authority": {tlsCert: cert, tlsKey: key, clientCA: key},
	} {
		_, err := secure(plain, o)
		require.Error(t, err, name)
	}
}
