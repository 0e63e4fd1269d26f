package adapterclient

import (
	"container/list"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"sync"

	"github.com/gpuaas/app-platform/internal/dial"
)

// Bounds of authorities.
const (
	// MaxAuthority bounds an authority, in bytes.
	MaxAuthority = 32 << 10
	// maxClients is how many authorities have connections of their own at once.
	maxClients = 64
)

// Trust is how an adapter off this machine is known to be the one that is meant: by https, with the authority that its
// registration pins, or with the platform's own certificate shown to it, and then by the machine's authorities.
type Trust struct {
	// Certificate returns what the platform shows to adapters that request a certificate; nil for none.
	Certificate func() *tls.Certificate
	// Insecure lets adapters that were registered without either go on being called.
	Insecure bool
	// Sandbox is where adapters of tenants' sandboxes may be besides the public Internet, there by http too.
	Sandbox dial.Policy
}

// AllowSandbox checks the address of an adapter that a tenant chose: https on the public Internet, or what Sandbox
// allows. A name is checked again when it is dialled, on the address that it has then.
func (t Trust) AllowSandbox(address *url.URL) error {
	return dial.Check(t.Sandbox, address.Scheme == "https", address)
}

// Judge returns why an adapter at the address is not known to be the one that is meant: nil, or an error for people
// that names the remedy.
func (t Trust) Judge(address *url.URL, authority string) error {
	switch {
	case Loopback(address.Hostname()):
		return nil
	case address.Scheme != "https":
		return errors.New("it is off this machine and without TLS: register it at an https address with its authority")
	case authority == "" && t.Certificate == nil:
		return errors.New("no authority is pinned for it: register it with the certificate of its authority")
	}
	return nil
}

// Loopback reports whether a host is this machine by its spelling alone; a name that merely resolves to it is not.
func Loopback(host string) bool {
	ip, err := netip.ParseAddr(host)
	return strings.EqualFold(host, "localhost") || err == nil && ip.Unmap().IsLoopback()
}

// ParseAuthority reads the certificates of an authority, PEM and nothing else.
func ParseAuthority(text string) (*x509.CertPool, error) {
	if len(text) > MaxAuthority {
		return nil, fmt.Errorf("at most %d bytes", MaxAuthority)
	}
	pool, rest, found := x509.NewCertPool(), []byte(text), 0
	for {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			break
		}
		if block.Type != "CERTIFICATE" {
			return nil, fmt.Errorf("a %s is not a certificate: give only certificates, and keep keys where they are",
				strings.ToLower(block.Type))
		}
		certificate, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, errors.New("a certificate cannot be read")
		}
		pool.AddCert(certificate)
		found++
	}
	if found == 0 || strings.TrimSpace(string(rest)) != "" {
		return nil, errors.New("certificates in PEM form, and nothing else")
	}
	return pool, nil
}

// clients are the connections to adapters: those of this machine, those that the machine's authorities vouch for, and
// some for each pinned authority, the ones used last.
type clients struct {
	policy dial.Policy
	trust  Trust
	local  *http.Client
	public *http.Client
	boxed  map[string]*http.Client // by scheme: for addresses that tenants chose

	mu     sync.Mutex
	pinned map[pin]*list.Element
	order  list.List // of *pinnedClient, the one used last in front
}

// A pin is what a client of its own is kept for: an authority, towards adapters of the platform's or of tenants.
type pin struct {
	authority string
	sandbox   bool
}

type pinnedClient struct {
	pin
	client *http.Client
}

func newClients(policy dial.Policy, trust Trust) *clients {
	c := &clients{policy: policy, trust: trust, pinned: make(map[pin]*list.Element)}
	c.local, c.public = c.secured(policy.Local(), nil), c.secured(policy, nil)
	c.boxed = map[string]*http.Client{"http": c.boxing("http", nil), "https": c.boxing("https", nil)}
	return c
}

// boxing is a client for addresses that tenants chose. It never shows the platform's certificate.
func (c *clients) boxing(scheme string, authorities *x509.CertPool) *http.Client {
	config := &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: authorities}
	return dial.NewTLSClient(c.trust.Sandbox, scheme == "https", 0, config)
}

// secured is a client that believes the authorities, nil for the machine's; each call has its own timeout.
func (c *clients) secured(policy dial.Policy, authorities *x509.CertPool) *http.Client {
	config := &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: authorities}
	if c.trust.Certificate != nil {
		config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			return c.trust.Certificate(), nil
		}
	}
	return dial.NewTLSClient(policy, false, 0, config)
}

// of returns the client for a target, or a Forbidden or Insecure error: nothing is then dialled.
func (c *clients) of(target Target, address *url.URL) (*http.Client, error) {
	if target.Sandbox {
		return c.ofSandbox(target, address)
	}
	if err := dial.Check(c.policy, false, address); err != nil {
		return nil, &Error{Kind: Forbidden, Target: target, Err: err}
	}
	if target.Authority != "" && address.Scheme == "https" {
		return c.pinnedTo(target)
	}
	if Loopback(address.Hostname()) {
		return c.local, nil
	}
	if err := c.trust.Judge(address, target.Authority); err != nil && !c.trust.Insecure {
		return nil, &Error{Kind: Insecure, Target: target, Err: err}
	}
	return c.public, nil
}

// ofSandbox is of for an address that a tenant chose.
func (c *clients) ofSandbox(target Target, address *url.URL) (*http.Client, error) {
	if err := c.trust.AllowSandbox(address); err != nil {
		return nil, &Error{Kind: Forbidden, Target: target, Err: err}
	}
	if target.Authority != "" && address.Scheme == "https" {
		return c.pinnedTo(target)
	}
	return c.boxed[address.Scheme], nil
}

// pinnedTo returns the client that believes the target's authority alone.
func (c *clients) pinnedTo(target Target) (*http.Client, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	key := pin{target.Authority, target.Sandbox}
	if known, ok := c.pinned[key]; ok {
		c.order.MoveToFront(known)
		return known.Value.(*pinnedClient).client, nil
	}
	authorities, err := ParseAuthority(target.Authority)
	if err != nil {
		return nil, &Error{Kind: Insecure, Target: target, Err: fmt.Errorf("its authority: %w", err)}
	}
	made := &pinnedClient{pin: key}
	if target.Sandbox {
		made.client = c.boxing("https", authorities)
	} else {
		made.client = c.secured(c.policy, authorities)
	}
	c.pinned[key] = c.order.PushFront(made)
	if c.order.Len() > maxClients {
		last := c.order.Remove(c.order.Back()).(*pinnedClient)
		delete(c.pinned, last.pin)
		last.client.CloseIdleConnections()
	}
	return made.client, nil
}

func (c *clients) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for at := c.order.Front(); at != nil; at = at.Next() {
		at.Value.(*pinnedClient).client.CloseIdleConnections()
	}
	for _, client := range []*http.Client{c.local, c.public, c.boxed["http"], c.boxed["https"]} {
		client.CloseIdleConnections()
	}
}
