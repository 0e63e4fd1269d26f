package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/subtle"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"
)

// maxBody bounds what is read of a request's or an answer's body.
const maxBody = 1 << 20

// supervisor is the API by which nodes join, at port 9345 of each server.
type supervisor struct {
	settings

	api   apiClient
	ready atomic.Bool
}

// serve answers until the context ends.
func (s *supervisor) serve(ctx context.Context) error {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /ping", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "pong") })
	mux.HandleFunc("GET /cacerts", s.file("server-ca.crt"))
	for path, handle := range map[string]http.HandlerFunc{
		"GET /v1-rke2/readyz": s.readyz, "GET /v1-rke2/config": s.config, "GET /v1-rke2/apiservers": s.apiservers,
		"GET /v1-rke2/client-ca.crt": s.file("client-ca.crt"), "GET /v1-rke2/server-ca.crt": s.file("server-ca.crt"),
		"POST /v1-rke2/client-kubelet.crt":         s.signs("client-kubelet"),
		"POST /v1-rke2/serving-kubelet.crt":        s.signs("serving-kubelet"),
		"POST /v1-rke2/client-rke2-controller.crt": s.signs("client-rke2-controller"),
	} {
		mux.HandleFunc(path, s.only("node", handle))
	}
	mux.HandleFunc("GET /v1-rke2/server-bootstrap", s.only("server", s.bootstrap))
	listener, err := net.Listen("tcp", net.JoinHostPort(s.listens(), supervisorPort))
	if err != nil {
		return err
	}
	pair, err := tls.LoadX509KeyPair(s.path("server/tls/serving-supervisor.crt"),
		s.path("server/tls/serving-supervisor.key"))
	if err != nil {
		return err
	}
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second,
		TLSConfig: &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}}
	go func() {
		<-ctx.Done()
		_ = server.Close()
	}()
	go func() {
		if err := server.ServeTLS(listener, "", ""); !errors.Is(err, http.ErrServerClosed) {
			fmt.Fprintln(os.Stderr, "supervisor:", err)
			os.Exit(1)
		}
	}()
	return nil
}

// only lets in who has a role's password: servers may do what nodes may.
func (s *supervisor) only(role string, next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		user, password, _ := r.BasicAuth()
		held := s.secret("token")
		if user == "node" {
			held = s.secret("agent-token")
		}
		_, _, held = splitToken(held)
		switch {
		case user != "node" && user != "server" || held == "" ||
			subtle.ConstantTimeCompare([]byte(held), []byte(password)) != 1:
			http.Error(w, "not authorized", http.StatusUnauthorized)
		case role == "server" && user != "server":
			http.Error(w, "forbidden", http.StatusForbidden)
		default:
			next(w, r)
		}
	}
}

func (s *supervisor) file(name string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		raw, err := os.ReadFile(s.path("server/tls", name))
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		_, _ = w.Write(raw)
	}
}

func (s *supervisor) readyz(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), 5*time.Second)
	defer cancel()
	if _, err := s.api.do(ctx, http.MethodGet, "/readyz", nil); err != nil {
		http.Error(w, "core not ready: "+err.Error(), http.StatusServiceUnavailable)
		return
	}
	_, _ = io.WriteString(w, "ok")
}

func (s *supervisor) config(w http.ResponseWriter, _ *http.Request) {
	_ = json.NewEncoder(w).Encode(s.critical())
}

// apiservers lists where API servers answer, by the endpoints that they keep themselves.
func (s *supervisor) apiservers(w http.ResponseWriter, r *http.Request) {
	_ = json.NewEncoder(w).Encode(s.api.servers(r.Context()))
}

func (s *supervisor) bootstrap(w http.ResponseWriter, _ *http.Request) {
	files := map[string][]byte{}
	for _, name := range shared() {
		raw, err := os.ReadFile(s.path("server/tls", name))
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		files[name] = raw
	}
	_ = json.NewEncoder(w).Encode(files)
}

// signs signs a certificate of a node's, for the key that it sends, once the node's password was found to hold.
func (s *supervisor) signs(kind string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		name, ip := r.Header.Get("Rke2-Node-Name"), r.Header.Get("Rke2-Node-Ip")
		raw, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		block, _ := pem.Decode(raw)
		if name == "" || block == nil {
			http.Error(w, "a node's name and a certificate request are needed", http.StatusBadRequest)
			return
		}
		csr, err := x509.ParseCertificateRequest(block.Bytes)
		if err == nil {
			err = csr.CheckSignature()
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		// This server's own node starts the API server first; its password is looked at once that serves.
		if name != s.nodeName() || s.ready.Load() {
			if err := s.api.vouch(r.Context(), name, r.Header.Get("Rke2-Node-Password")); err != nil {
				http.Error(w, err.Error(), http.StatusForbidden)
				return
			}
		}
		by, what := "client-ca", request{name: "system:node:" + name, groups: []string{"system:nodes"}, asks: true}
		switch kind {
		case "serving-kubelet":
			by, what = "server-ca", request{name: name, hosts: []string{name, ip, "127.0.0.1", "localhost"},
				serves: true}
		case "client-rke2-controller":
			what = request{name: controllerUser, asks: true}
		}
		signer, err := loadAuthority(s.path("server/tls", by))
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		der, err := signer.sign(what, csr.PublicKey)
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		_ = pem.Encode(w, &pem.Block{Type: "CERTIFICATE", Bytes: der})
	}
}

// joiner talks to the supervisor of a server with a token.
type joiner struct {
	base, user, password string
	client               *http.Client
}

// splitToken reads a token: K10, a hash, two colons, a user, a colon and a password; or a password alone.
func splitToken(token string) (hash, user, password string) {
	rest, full := strings.CutPrefix(token, "K10")
	if !full {
		return "", "", token
	}
	hash, rest, _ = strings.Cut(rest, "::")
	user, password, _ = strings.Cut(rest, ":")
	return hash, user, password
}

// dial reads the cluster's authority, unverified, holds it to the token's hash, and from then on believes no other.
func (s settings) dial(ctx context.Context, base, token string) (*joiner, error) {
	hash, user, password := splitToken(token)
	if user == "" {
		user = s.role
		if user == "agent" {
			user = "node"
		}
	}
	ca, err := get(ctx, &http.Client{Transport: &http.Transport{
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, // #nosec G402 -- its hash is checked below
	}}, base+"/cacerts")
	if err != nil {
		return nil, err
	}
	if hash != "" && hash != digest(string(ca)) {
		return nil, fatal{fmt.Errorf("token CA hash does not match the Cluster CA certificate hash: %s != %s", hash,
			digest(string(ca)))}
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(ca)
	j := &joiner{base: base, user: user, password: password, client: &http.Client{Timeout: 20 * time.Second,
		Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}}}}
	return j, write(s.path("agent/server-ca.crt"), ca, 0o644)
}

// fatal is what trying again does not mend.
type fatal struct{ error }

func get(ctx context.Context, client *http.Client, url string) ([]byte, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	return answer(client.Do(r))
}

func answer(response *http.Response, err error) ([]byte, error) {
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, maxBody))
	if err != nil {
		return nil, err
	}
	if response.StatusCode/100 != 2 {
		err = fmt.Errorf("%s: %s", response.Status, strings.TrimSpace(string(body)))
		if code := response.StatusCode; code == http.StatusUnauthorized || code == http.StatusForbidden {
			err = fatal{err}
		}
		return nil, err
	}
	return body, nil
}

func (j *joiner) do(ctx context.Context, method, path string, header http.Header, body io.Reader) ([]byte, error) {
	r, err := http.NewRequestWithContext(ctx, method, j.base+path, body)
	if err != nil {
		return nil, err
	}
	for key, values := range header {
		r.Header[key] = values
	}
	r.SetBasicAuth(j.user, j.password)
	return answer(j.client.Do(r))
}

// signed writes a key and has the supervisor sign a certificate of this kind for it.
func (j *joiner) signed(ctx context.Context, s settings, kind string) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{}, key)
	if err != nil {
		return err
	}
	password, err := os.ReadFile(nodePasswordPath)
	if err != nil {
		return err
	}
	signed, err := j.do(ctx, http.MethodPost, "/v1-rke2/"+kind+".crt", http.Header{
		"Rke2-Node-Name": {s.nodeName()}, "Rke2-Node-Ip": {s.nodeIP()}, "Rke2-Node-Password": {string(password)},
	}, strings.NewReader(string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}))))
	if err != nil {
		return err
	}
	block, _ := pem.Decode(signed)
	if block == nil {
		return fmt.Errorf("%s: the server answered no certificate", kind)
	}
	return writePair(filepath.Join(s.path("agent"), kind), block.Bytes, key)
}
