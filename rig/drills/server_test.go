package drills_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/gpuaas/app-platform/internal/supervise"
	"github.com/gpuaas/app-platform/rig/turned"
)

// writes puts a certificate for this machine, and its key, into files.
func (a *authority) writes(w *ward, cert, key string, until time.Time) {
	w.t.Helper()
	made := a.certificate(w, until)
	private, err := x509.MarshalPKCS8PrivateKey(made.PrivateKey)
	w.fine(err)
	for file, block := range map[string]*pem.Block{key: {Type: "PRIVATE KEY", Bytes: private},
		cert: {Type: "CERTIFICATE", Bytes: made.Certificate[0]}} {
		w.fine(os.WriteFile(file, pem.EncodeToMemory(block), 0o600))
	}
}

// shows reports why the server there does not show a certificate with that end.
func (w *ward) shows(address string, until time.Time) error {
	dialer := tls.Dialer{Config: &tls.Config{InsecureSkipVerify: true}} // #nosec G402 -- its end alone is read
	connection, err := dialer.DialContext(w.ctx, "tcp", address)
	if err != nil {
		return err
	}
	defer func() { _ = connection.Close() }()
	shown := connection.(*tls.Conn).ConnectionState().PeerCertificates[0]
	if !shown.NotAfter.Equal(until) {
		return errNotYet
	}
	return nil
}

// another starts a server beside the installation's, which ends with the drill.
func (w *ward) another(name, program string, flags ...string) (server *supervise.Child, address string) {
	w.t.Helper()
	server, address, err := shared.StartServer(name, program, "api", flags...)
	w.fine(err)
	w.later(func(context.Context) { _ = server.Stop() })
	return server, address
}

// ready reports why the server there is not ready.
func (w *ward) ready(address string) error {
	request, err := http.NewRequestWithContext(w.ctx, http.MethodGet, "http://"+address+"/readyz", nil)
	if err != nil {
		return err
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	_ = answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return errNotYet
	}
	return nil
}

// serverDrills are those of a server of the drill's own.
var serverDrills = map[string]drill{
	"expiry/edge/not-taken": {
		fault: func(w *ward) {
			ca, dir := w.certify(), w.t.TempDir()
			cert, key := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
			first := time.Now().AddDate(0, 3, 0).Truncate(time.Second)
			ca.writes(w, cert, key, first)
			_, address := w.another("server-edge", "", "--tls-cert", cert, "--tls-key", key)
			w.eventually("the server shows its certificate", func() error { return w.shows(address, first) })
			w.walker.URL = "https://" + address
			w.fine(os.WriteFile(cert, []byte("half a certificate"), 0o600))
			w.mend = func() {
				next := first.AddDate(0, 1, 0)
				ca.writes(w, cert, key, next)
				w.eventually("the new certificate is taken", func() error { return w.shows(address, next) })
			}
		},
		cure: func(w *ward) { w.mend() },
	},
	"database/slow/clock": {
		fault: func(w *ward) {
			program, err := turned.Link(w.t.TempDir(), 1)
			w.fine(err)
			server, address := w.another("server-turned", program)
			w.eventually("the server is ready", func() error { return w.ready(address) })
			w.fine(os.WriteFile(turned.Skew(program), []byte("1m"), 0o600))
			w.mend = func() { // by NTP; the server then starts
				w.fine(os.Remove(turned.Skew(program)))
				w.eventually("the server is ready again", func() error { return w.ready(address) })
				w.fine(server.Stop())
			}
		},
		cure: func(w *ward) { w.mend() },
	},
}
