package reach

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/gpuaas/app-platform/cmd/appctl/internal/command"
	"github.com/gpuaas/app-platform/cmd/appctl/internal/render"
	"github.com/gpuaas/app-platform/sdk/client/generated/gql"
)

const (
	// spare is what a certificate must still be good for to be shown again.
	spare = time.Minute
	// idle is after how long without a connection a forwarding that a credential began ends.
	idle = 10 * time.Minute
	// startTime is how long it may take to begin.
	startTime = 15 * time.Second
	// groupPrefix begins the name of a level's group.
	groupPrefix = "gpuaas:"
)

// credential answers a client of an app's API: a certificate of minutes, and behind it a port of this machine that
// leads to the API.
func credential(t *command.Tool) *cobra.Command {
	var level, port, endpoint, version string
	cmd := t.Command("kube-credential INSTANCE", "Answer a kubeconfig's client with a short-lived certificate",
		func(ctx context.Context, args []string) error {
			kept := wallet(filepath.Join(filepath.Dir(t.Env.ConfigPath), "kube", filepath.Base(args[0])))
			certificate, until, err := kept.certificate(ctx, t, args[0], level)
			if err != nil {
				return err
			}
			if err := kept.forward(ctx, t, args[0], endpoint, port); err != nil {
				return err
			}
			key, err := os.ReadFile(kept.key())
			if err != nil {
				return fmt.Errorf("keep the key: %w", err)
			}
			return render.JSON(t.Env.Stdout, object{"apiVersion": version, "kind": "ExecCredential", "status": object{
				"expirationTimestamp":   until.UTC().Format(time.RFC3339),
				"clientCertificateData": string(certificate), "clientKeyData": string(key)}})
		})
	cmd.Hidden = true
	cmd.Flags().StringVar(&level, "as", "viewer", "the level of the certificate")
	cmd.Flags().StringVar(&port, "port", "", "the port of this machine that leads to the API")
	cmd.Flags().StringVar(&endpoint, "endpoint", "", "the endpoint that it leads to")
	cmd.Flags().StringVar(&version, "version-of", "", "the version of the answer")
	return cmd
}

// wallet is the folder with the key for an instance and the certificates that were signed for it.
type wallet string

func (w wallet) key() string { return filepath.Join(string(w), "key.pem") }
func (w wallet) log() string { return filepath.Join(string(w), "forward.log") }

// signed returns the file of a level's certificate for a login, since another login may be another user.
func (w wallet) signed(level, login string) string {
	return filepath.Join(string(w), level+"-"+login+".pem")
}

// login returns the name of this run's login: a digest of server and credential, which is not secret.
func login(t *command.Tool) (string, error) {
	server, token, err := t.Target()
	sum := sha256.Sum256([]byte(server + "\n" + token))
	return hex.EncodeToString(sum[:8]), err
}

// certificate returns the kept certificate of a level, or a new one where that is good for too short a time.
func (w wallet) certificate(ctx context.Context, t *command.Tool, instance, level string) ([]byte, time.Time, error) {
	of, err := login(t)
	if err != nil {
		return nil, time.Time{}, err
	}
	if held, err := os.ReadFile(w.signed(level, of)); err == nil {
		if until, err := goodUntil(held); err == nil && time.Until(until) > spare {
			return held, until, nil
		}
	}
	key, err := w.private()
	if err != nil {
		return nil, time.Time{}, fmt.Errorf("keep the key: %w", err)
	}
	me, err := gql.GetViewer(ctx, t)
	if err != nil {
		return nil, time.Time{}, err
	}
	request, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{Subject: pkix.Name{
		CommonName: me.Viewer.Actor.Id, Organization: []string{groupPrefix + level}}}, key)
	if err != nil {
		return nil, time.Time{}, err
	}
	var said struct{ Certificate string }
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: request})
	if err := act(ctx, t, instance, level, map[string]string{"request": string(text)}, &said); err != nil {
		return nil, time.Time{}, err
	}
	until, err := goodUntil([]byte(said.Certificate))
	if err != nil {
		return nil, until, fmt.Errorf("the signed certificate: %w", err)
	}
	if err := replace(w.signed(level, of), said.Certificate); err != nil {
		return nil, until, err
	}
	return []byte(said.Certificate), until, w.discard(level, of)
}

// discard deletes the certificates of a level that were signed for other logins, and have ended.
func (w wallet) discard(level, login string) error {
	others, err := filepath.Glob(w.signed(level, "*"))
	for _, path := range others {
		held, readErr := os.ReadFile(filepath.Clean(path))
		if until, endErr := goodUntil(held); path == w.signed(level, login) || readErr != nil ||
			endErr == nil && time.Now().Before(until) {
			continue
		}
		if gone := os.Remove(path); !errors.Is(gone, os.ErrNotExist) {
			err = errors.Join(err, gone)
		}
	}
	return err
}

// goodUntil is when a certificate ends.
func goodUntil(text []byte) (time.Time, error) {
	block, _ := pem.Decode(text)
	if block == nil {
		return time.Time{}, errors.New("it is not PEM")
	}
	certificate, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return time.Time{}, err
	}
	return certificate.NotAfter, nil
}

// private returns the key, which it creates when it is missing. Of several processes that create one at once, all get
// the first one's.
func (w wallet) private() (*ecdsa.PrivateKey, error) {
	if err := os.MkdirAll(string(w), 0o700); err != nil {
		return nil, err
	}
	text, err := os.ReadFile(w.key())
	if errors.Is(err, os.ErrNotExist) {
		if err = w.make(); err == nil {
			text, err = os.ReadFile(w.key())
		}
	}
	if err != nil {
		return nil, err
	}
	block, _ := pem.Decode(text)
	if block == nil {
		return nil, fmt.Errorf("%s is not PEM: delete it, and a new one is created", w.key())
	}
	return x509.ParseECPrivateKey(block.Bytes)
}

func (w wallet) make() error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	raw, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return err
	}
	draft, err := written(w.key(), string(pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: raw})))
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(draft) }()
	if err := os.Link(draft, w.key()); err != nil && !errors.Is(err, os.ErrExist) {
		return err
	}
	return nil
}

// replace writes a file, whole or not at all, since another process may be reading it.
func replace(path, text string) error {
	draft, err := written(path, text)
	if err != nil {
		return fmt.Errorf("keep the certificate: %w", err)
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

// forward sees that the port leads to the endpoint: where nothing listens there, this program is started again to
// forward it, and ends when it was not used for a while. Somebody else's listener is found out by its certificate.
func (w wallet) forward(ctx context.Context, t *command.Tool, instance, endpoint, port string) error {
	if port == "" || endpoint == "" || taken(ctx, port) {
		return nil
	}
	program, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find this program: %w", err)
	}
	args := []string{"forward", "--idle=" + idle.String()}
	for _, flag := range [][2]string{{"--server", t.Server}, {"--context", t.Context}} {
		if flag[1] != "" {
			args = append(args, flag[0]+"="+flag[1])
		}
	}
	// The endpoint is what the app says: behind the dashes it can be no flag, such as one that names another server.
	args = append(args, "--", instance, endpoint, port)
	log, err := os.OpenFile(w.log(), os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return fmt.Errorf("keep the log of the forwarding: %w", err)
	}
	defer func() { _ = log.Close() }()
	started := exec.Command(program, args...) // #nosec G204 -- this program; it outlives this call, so without ctx
	started.Stderr = log
	detach(started)
	if err := started.Start(); err != nil {
		return fmt.Errorf("forward the endpoint: %w", err)
	}
	ended := make(chan error, 1)
	go func() { ended <- started.Wait() }()
	look := time.NewTicker(50 * time.Millisecond)
	defer look.Stop()
	late := time.NewTimer(startTime)
	defer late.Stop()
	for {
		said, _ := os.ReadFile(w.log()) // what it says when it listens; a look at the port could take the port from it
		if bytes.Contains(said, []byte("127.0.0.1:"+port)) {
			return nil
		}
		select {
		case <-look.C:
		case <-ended:
			if taken(ctx, port) { // by one that another call started meanwhile
				return nil
			}
			return fmt.Errorf("the endpoint %s is not forwarded: %s", endpoint, bytes.TrimSpace(said))
		case <-late.C:
			return errors.Join(fmt.Errorf("the endpoint %s was not forwarded in %s", endpoint, startTime),
				started.Process.Kill())
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// taken reports whether something listens on a port of this machine. It connects to nothing: a connection would be one
// to the app.
func taken(ctx context.Context, port string) bool {
	var listening net.ListenConfig
	listener, err := listening.Listen(ctx, "tcp", net.JoinHostPort("127.0.0.1", port))
	if err != nil {
		return true
	}
	_ = listener.Close()
	return false
}
