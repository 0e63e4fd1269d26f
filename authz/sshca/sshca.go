// Package sshca holds the platform's two SSH authorities. One signs the certificates of people, which members accept;
// the other signs those of hosts, which people's clients accept. Neither is ever taken for the other. Their keys are
// files of the folder of signing keys and are rotated as those are: a new key is published first, and signs when every
// process and every client has had time to learn of it.
package sshca

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/gpuaas/app-platform/authz/token"
)

// The folders of the authorities' keys, in the folder of signing keys.
const (
	PeopleDir = "ssh-people"
	HostsDir  = "ssh-hosts"
)

// leeway is how far the clock of a member or of a client may be behind the platform's.
const leeway = 2 * time.Minute

// minRSA is the least length of an RSA key, in bits.
const minRSA = 2048

// maxKey bounds the text of a public key, in bytes.
const maxKey = 4 << 10

// Authorities sign certificates. They are safe for concurrent use.
type Authorities struct{ people, hosts *token.Keyring }

// Load reads the keys of both authorities below the folder of signing keys; an authority without a key gets one.
func Load(dir string) (*Authorities, error) {
	people, err := token.LoadKeyring(filepath.Join(dir, PeopleDir), PeopleDir)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", PeopleDir, err)
	}
	hosts, err := token.LoadKeyring(filepath.Join(dir, HostsDir), HostsDir)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", HostsDir, err)
	}
	return &Authorities{people: people, hosts: hosts}, nil
}

// New makes authorities with fresh keys that are stored nowhere, for tests and tools.
func New() (*Authorities, error) {
	people, err := token.NewKeyring(PeopleDir)
	if err != nil {
		return nil, err
	}
	hosts, err := token.NewKeyring(HostsDir)
	return &Authorities{people: people, hosts: hosts}, err
}

// Reload takes up keys that have come, and drops those that have been removed. On failure both keep what they have.
func (a *Authorities) Reload() error { return errors.Join(a.people.Reload(), a.hosts.Reload()) }

// People are the keys by which members know the certificates of people, as lines of an authorized_keys file.
func (a *Authorities) People() []string { return lines(a.people) }

// Hosts are the keys by which clients know the certificates of hosts, as lines of an authorized_keys file.
func (a *Authorities) Hosts() []string { return lines(a.hosts) }

// Certificate is what a certificate says.
type Certificate struct {
	// Key is the public key that it is for, as ParseKey returns it.
	Key ssh.PublicKey
	// KeyID is what the other side logs of it.
	KeyID string
	// Principals are the names that it is good for. There must be one: a certificate without any would be good for all.
	Principals []string
	// Now is the platform's time; Until is when it ends.
	Now, Until time.Time
}

// SignPerson returns a certificate of a person, as a line of a file, and its serial number. It permits a terminal and
// the forwarding of ports, and nothing else.
func (a *Authorities) SignPerson(what Certificate) (line string, serial uint64, err error) {
	permits := map[string]string{"permit-pty": "", "permit-port-forwarding": ""}
	return sign(a.people, ssh.UserCert, what, permits)
}

// SignHost returns a certificate of a host, as a line of a file, and its serial number.
func (a *Authorities) SignHost(what Certificate) (line string, serial uint64, err error) {
	return sign(a.hosts, ssh.HostCert, what, nil)
}

// sign signs a certificate by the key of an authority that signs now.
func sign(by *token.Keyring, kind uint32, what Certificate, permits map[string]string) (string, uint64, error) {
	if len(what.Principals) == 0 {
		return "", 0, errors.New("a certificate needs a principal")
	}
	var serial [8]byte
	if _, err := rand.Read(serial[:]); err != nil {
		return "", 0, fmt.Errorf("sign a certificate: %w", err)
	}
	certificate := &ssh.Certificate{
		Key: what.Key, Serial: binary.BigEndian.Uint64(serial[:]), CertType: kind, KeyId: what.KeyID,
		ValidPrincipals: what.Principals, ValidAfter: unix(what.Now.Add(-leeway)), ValidBefore: unix(what.Until),
		Permissions: ssh.Permissions{Extensions: permits},
	}
	key, _ := by.SigningKey()
	signer, err := ssh.NewSignerFromKey(key)
	if err == nil {
		err = certificate.SignCert(rand.Reader, signer)
	}
	if err != nil {
		return "", 0, fmt.Errorf("sign a certificate: %w", err)
	}
	return line(certificate), certificate.Serial, nil
}

// unix is an instant as certificates have it.
func unix(at time.Time) uint64 { return uint64(max(at.Unix(), 0)) } // #nosec G115 -- not negative

// ParseKey reads one public key, as a line of an authorized_keys file; its comment is dropped. The error says what to
// give instead.
func ParseKey(text string) (ssh.PublicKey, error) {
	if len(text) > maxKey {
		return nil, fmt.Errorf("a public key has at most %d bytes", maxKey)
	}
	key, _, options, rest, err := ssh.ParseAuthorizedKey([]byte(text))
	switch {
	case err != nil || len(options) > 0 || len(rest) > 0:
		return nil, errors.New("must be one line as ssh-keygen writes it: give what is in id_ed25519.pub")
	case isCertificate(key):
		return nil, errors.New("is a certificate: give only the public key")
	}
	if bits := bitsOf(key); key.Type() == ssh.KeyAlgoRSA && bits < minRSA || key.Type() == dsa {
		return nil, errors.New("is too weak: create another one with `ssh-keygen -t ed25519`")
	}
	return key, nil
}

// dsa is the type of keys that have 1,024 bits and no more.
const dsa = "ssh-dss"

// isCertificate reports whether a key is a certificate.
func isCertificate(key ssh.PublicKey) bool {
	_, is := key.(*ssh.Certificate)
	return is
}

// lines are the keys of an authority.
func lines(of *token.Keyring) []string {
	var all []string
	for _, key := range of.PublicKeys() {
		if public, err := ssh.NewPublicKey(ed25519.PublicKey(key)); err == nil {
			all = append(all, line(public))
		}
	}
	return all
}

// line is a key as a line without its end.
func line(key ssh.PublicKey) string {
	text := ssh.MarshalAuthorizedKey(key)
	return string(text[:len(text)-1])
}
