package shell

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/crypto/ssh"

	"github.com/gpuaas/app-platform/cmd/appctl/internal/command"
	"github.com/gpuaas/app-platform/sdk/client/generated/gql"
)

// folder is the directory of a key, its certificates and the known hosts.
type folder string

func (f folder) key() string { return filepath.Join(string(f), "id_ed25519") }

func (f folder) certificate(to *place) string { return filepath.Join(string(f), to.file()+"-cert.pub") }

func (f folder) hosts(to *place) string { return filepath.Join(string(f), to.file()+".known_hosts") }

// file begins the names of the files about a place: a certificate is for an instance, or for an endpoint of it.
func (p *place) file() string {
	if p.endpoint == "" {
		return p.instance
	}
	return p.instance + "." + p.endpoint
}

// certify requests a certificate for the key, which it creates when it is missing.
func (f folder) certify(ctx context.Context, t *command.Tool, to *place, reason string) error {
	public, err := f.publicKey()
	if err != nil {
		return fmt.Errorf("keep the key: %w", err)
	}
	input := gql.IssueSshCertificateInput{InstanceId: to.instance, PublicKey: public, Reason: reason,
		Endpoint: command.Given(to.endpoint)}
	answer, err := gql.IssueSshCertificate(ctx, t, input)
	if err != nil {
		return err
	}
	said := answer.IssueSshCertificate
	var known strings.Builder
	for _, key := range said.HostAuthorities {
		fmt.Fprintf(&known, "@cert-authority %s %s\n", strings.Join(said.HostNames, ","), key)
	}
	if err := errors.Join(replace(f.certificate(to), said.Certificate+"\n"),
		replace(f.hosts(to), known.String())); err != nil {
		return fmt.Errorf("keep the certificate: %w", err)
	}
	return nil
}

// publicKey returns the public half of the key, which it creates when it is missing.
func (f folder) publicKey() (string, error) {
	if err := os.MkdirAll(string(f), 0o700); err != nil {
		return "", err
	}
	text, err := os.ReadFile(f.key())
	if errors.Is(err, os.ErrNotExist) {
		if text, err = f.make(); err != nil {
			return "", err
		}
	}
	if err != nil {
		return "", err
	}
	signer, err := ssh.ParsePrivateKey(text)
	if err != nil {
		return "", fmt.Errorf("%s: %w", f.key(), err)
	}
	return strings.TrimSpace(string(ssh.MarshalAuthorizedKey(signer.PublicKey()))), nil
}

// make creates the key. Of several processes that create one at once, all get the first one's.
func (f folder) make() ([]byte, error) {
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, err
	}
	block, err := ssh.MarshalPrivateKey(private, "appctl")
	if err != nil {
		return nil, err
	}
	draft, err := written(f.key(), string(pem.EncodeToMemory(block)))
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.Remove(draft) }()
	if err := os.Link(draft, f.key()); err != nil && !errors.Is(err, os.ErrExist) {
		return nil, err
	}
	return os.ReadFile(f.key())
}

// replace writes a file, whole or not at all, since an ssh may be reading it.
func replace(path, text string) error {
	draft, err := written(path, text)
	if err != nil {
		return err
	}
	return os.Rename(draft, path)
}

// written writes a draft beside the file at path and returns its name. Only the user can read it.
func written(path, text string) (string, error) {
	draft, err := os.CreateTemp(filepath.Dir(path), ".draft-*")
	if err != nil {
		return "", err
	}
	_, err = draft.WriteString(text)
	return draft.Name(), errors.Join(err, draft.Close())
}
