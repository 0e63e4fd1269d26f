package edge

import (
	"crypto/tls"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// recheck is the least time between two checks of a certificate's files, which handshakes make.
const recheck = 2 * time.Second

// Certificates serve a certificate and key from two files, and follow them when they change. A new
// pair that is broken, or of which one file is not there yet, leaves the old one in use. It is safe
// for concurrent use.
type Certificates struct {
	certFile, keyFile string
	log               *slog.Logger
	now               func() time.Time

	current atomic.Pointer[tls.Certificate]
	next    atomic.Int64 // when the files may be looked at again, in Unix nanoseconds

	mu      sync.Mutex
	stamped stamp // of the files last tried
}

// stamp identifies one version of the files, so that a change is noticed.
type stamp struct{ certTime, keyTime, certSize, keySize int64 }

// LoadCertificates reads the pair; it fails when it cannot, as no earlier pair could stay in use.
func LoadCertificates(certFile, keyFile string, log *slog.Logger) (*Certificates, error) {
	c := &Certificates{certFile: certFile, keyFile: keyFile, log: log, now: time.Now}
	stamped, err := c.stamp()
	if err != nil {
		return nil, err
	}
	pair, err := c.read()
	if err != nil {
		return nil, err
	}
	c.stamped = stamped
	c.current.Store(pair)
	c.next.Store(c.now().Add(recheck).UnixNano())
	return c, nil
}

// Config is for a server: TLS 1.2 with forward secrecy and authenticated ciphers, or newer.
func (c *Certificates) Config() *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS12,
		CipherSuites: []uint16{ // of TLS 1.2; those of 1.3 are all good and not for choosing
			tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256, tls.TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,
			tls.TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384, tls.TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384,
			tls.TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256, tls.TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256,
		},
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return c.Current(), nil },
	}
}

// Current returns the pair in use. One handshake at a time checks the files; the others go on with the present pair.
func (c *Certificates) Current() *tls.Certificate {
	now := c.now()
	due := c.next.Load()
	if now.UnixNano() >= due && c.next.CompareAndSwap(due, now.Add(recheck).UnixNano()) {
		c.follow()
	}
	return c.current.Load()
}

// follow takes the files over when they have changed since last time.
func (c *Certificates) follow() {
	c.mu.Lock()
	defer c.mu.Unlock()
	stamped, err := c.stamp()
	if err != nil {
		c.log.Warn("the certificate's files cannot be read; the old certificate stays", "error", err)
		return
	}
	if stamped == c.stamped {
		return
	}
	c.stamped = stamped
	pair, err := c.read()
	if err != nil {
		c.log.Error("the new certificate cannot be used; the old one stays", "error", err)
		return
	}
	c.current.Store(pair)
	c.log.Info("the certificate was replaced", "not_after", pair.Leaf.NotAfter)
}

func (c *Certificates) read() (*tls.Certificate, error) {
	pair, err := tls.LoadX509KeyPair(c.certFile, c.keyFile)
	if err != nil {
		return nil, fmt.Errorf("certificate %s with key %s: %w", c.certFile, c.keyFile, err)
	}
	return &pair, nil
}

func (c *Certificates) stamp() (stamp, error) {
	cert, err := os.Stat(c.certFile)
	if err != nil {
		return stamp{}, fmt.Errorf("certificate: %w", err)
	}
	key, err := os.Stat(c.keyFile)
	if err != nil {
		return stamp{}, fmt.Errorf("key of the certificate: %w", err)
	}
	return stamp{cert.ModTime().UnixNano(), key.ModTime().UnixNano(), cert.Size(), key.Size()}, nil
}
