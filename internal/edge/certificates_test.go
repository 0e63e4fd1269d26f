package edge

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// authority signs certificates for localhost.
type authority struct {
	t    *testing.T
	key  *ecdsa.PrivateKey
	cert *x509.Certificate
	pool *x509.CertPool
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test authority"},
		IsCA:                  true,
		BasicConstraintsValid: true, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		KeyUsage: x509.KeyUsageCertSign}
	raw, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	require.NoError(t, err)
	cert, err := x509.ParseCertificate(raw)
	require.NoError(t, err)
	pool := x509.NewCertPool()
	pool.AddCert(cert)
	return &authority{t: t, key: key, cert: cert, pool: pool}
}

// issue answers a certificate and key, PEM.
func (a *authority) issue(serial int64) (cert, key []byte) {
	own, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(a.t, err)
	template := &x509.Certificate{SerialNumber: big.NewInt(serial), Subject: pkix.Name{CommonName: "localhost"},
		DNSNames:  []string{"localhost"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour)}
	raw, err := x509.CreateCertificate(rand.Reader, template, a.cert, &own.PublicKey, a.key)
	require.NoError(a.t, err)
	private, err := x509.MarshalPKCS8PrivateKey(own)
	require.NoError(a.t, err)
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: raw}),
		pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private})
}

// files are a pair on disk whose times only go forward.
type files struct {
	cert, key string
	at        time.Time
}

func newFiles(t *testing.T) *files {
	dir := t.TempDir()
	return &files{cert: filepath.Join(dir, "tls.crt"), key: filepath.Join(dir, "tls.key"),
		at: time.Now().Add(-time.Hour)}
}

func (f *files) write(t *testing.T, cert, key []byte) {
	t.Helper()
	f.at = f.at.Add(time.Second)
	for name, content := range map[string][]byte{f.cert: cert, f.key: key} {
		require.NoError(t, os.WriteFile(name, content, 0o600))
		require.NoError(t, os.Chtimes(name, f.at, f.at))
	}
}

// serial is that of the certificate in use.
func serial(t *testing.T, c *Certificates) int64 {
	t.Helper()
	return c.Current().Leaf.SerialNumber.Int64()
}

func TestAChangedPairIsTakenOverAndABrokenOneIsNot(t *testing.T) {
	t.Parallel()
	a, f, c := newAuthority(t), newFiles(t), newClock()
	_, err := LoadCertificates(f.cert, f.key, slog.New(slog.DiscardHandler))
	require.Error(t, err, "there is nothing to begin with")
	cert, key := a.issue(10)
	f.write(t, cert, key)
	log := new(bytes.Buffer)
	certificates, err := LoadCertificates(f.cert, f.key, slog.New(slog.NewTextHandler(log, nil)))
	require.NoError(t, err)
	certificates.now = c.now
	c.at = time.Now().Add(time.Hour)
	require.EqualValues(t, 10, serial(t, certificates))

	next, nextKey := a.issue(11)
	f.write(t, next, nextKey)
	require.EqualValues(t, 10, serial(t, certificates), "the files were looked at a moment ago")
	c.advance(recheck)
	require.EqualValues(t, 11, serial(t, certificates))

	for name, broken := range map[string][2][]byte{"a key of another": {cert, nextKey},
		"no certificate": {[]byte("x"), key}, "half a file": {next[:40], nextKey}} {
		log.Reset()
		f.write(t, broken[0], broken[1])
		for range 3 {
			c.advance(recheck)
			require.EqualValues(t, 11, serial(t, certificates), name)
		}
		require.Equal(t, 1, bytes.Count(log.Bytes(), []byte("cannot be used")), "it is said once")
		require.NotContains(t, log.String(), "PRIVATE")
	}
	require.NoError(t, os.Remove(f.key))
	c.advance(recheck)
	require.EqualValues(t, 11, serial(t, certificates))
	last, lastKey := a.issue(12)
	f.write(t, last, lastKey)
	c.advance(recheck)
	require.EqualValues(t, 12, serial(t, certificates))
}

func TestNoHandshakeFailsWhileTheCertificateChangesUnderLoad(t *testing.T) {
	t.Parallel()
	a, f := newAuthority(t), newFiles(t)
	cert, key := a.issue(100)
	f.write(t, cert, key)
	certificates, err := LoadCertificates(f.cert, f.key, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	var skew atomic.Int64
	// each look finds the pause over
	certificates.now = func() time.Time { return time.Now().Add(time.Duration(skew.Add(int64(time.Second)))) }
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	server := &http.Server{TLSConfig: certificates.Config(), ReadHeaderTimeout: time.Minute,
		ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelInfo),
		Handler:  http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("ok")) })}
	go func() { _ = server.ServeTLS(listener, "", "") }()
	t.Cleanup(func() { _ = server.Close() })

	var served sync.Map
	ask := func() error {
		conn, err := tls.Dial("tcp", listener.Addr().String(),
			&tls.Config{RootCAs: a.pool, ServerName: "localhost", MinVersion: tls.VersionTLS12})
		if err != nil {
			return err
		}
		defer func() { _ = conn.Close() }()
		served.Store(conn.ConnectionState().PeerCertificates[0].SerialNumber.Int64(), true)
		if _, err := conn.Write([]byte("GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")); err != nil {
			return err
		}
		_, err = io.ReadAll(conn)
		return err
	}
	stop := make(chan struct{})
	var callers sync.WaitGroup
	failures := make(chan error, 4)
	for range 4 {
		callers.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				if err := ask(); err != nil {
					failures <- err
					return
				}
			}
		})
	}
	for n := int64(101); n <= 110; n++ {
		cert, key := a.issue(n)
		f.write(t, cert, key)
		require.Eventually(t, func() bool { _, ok := served.Load(n); return ok }, 30*time.Second, time.Millisecond)
	}
	close(stop)
	callers.Wait()
	require.Empty(t, failures)
}

func TestOldProtocolsAndWeakCiphersFindNobody(t *testing.T) {
	t.Parallel()
	a, f := newAuthority(t), newFiles(t)
	cert, key := a.issue(1)
	f.write(t, cert, key)
	certificates, err := LoadCertificates(f.cert, f.key, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	listener, err := tls.Listen("tcp", "127.0.0.1:0", certificates.Config())
	require.NoError(t, err)
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			_ = conn.(*tls.Conn).Handshake()
			_ = conn.Close()
		}
	}()
	for name, c := range map[string]struct {
		config *tls.Config
		fails  bool
	}{
		"TLS 1.1": {&tls.Config{MinVersion: tls.VersionTLS10, MaxVersion: tls.VersionTLS11}, true},
		"TLS 1.2 and CBC": {&tls.Config{MaxVersion: tls.VersionTLS12,
			CipherSuites: []uint16{tls.TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA}}, true},
		"TLS 1.2 and GCM": {&tls.Config{MaxVersion: tls.VersionTLS12,
			CipherSuites: []uint16{tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256}}, false},
		"TLS 1.3": {&tls.Config{MinVersion: tls.VersionTLS13}, false},
	} {
		c.config.RootCAs, c.config.ServerName = a.pool, "localhost"
		conn, err := tls.Dial("tcp", listener.Addr().String(), c.config)
		require.Equal(t, c.fails, err != nil, "%s: %v", name, err)
		if err == nil {
			require.NoError(t, conn.Close())
		}
	}
}
