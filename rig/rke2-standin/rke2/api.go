package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"time"
)

// apiClient calls an API server as the supervisor, by the few paths that are needed here.
type apiClient struct {
	base   string
	client *http.Client
}

// newAPI returns a client with a certificate of this node's.
func newAPI(base, ca, pair string) (apiClient, error) {
	raw, err := os.ReadFile(ca)
	if err != nil {
		return apiClient{}, err
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(raw)
	own, err := tls.LoadX509KeyPair(pair+".crt", pair+".key")
	if err != nil {
		return apiClient{}, err
	}
	return apiClient{base: base, client: &http.Client{Timeout: 15 * time.Second, Transport: &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: pool, Certificates: []tls.Certificate{own}, MinVersion: tls.VersionTLS12},
	}}}, nil
}

func (a apiClient) do(ctx context.Context, method, path string, body any) ([]byte, error) {
	var content io.Reader
	if body != nil {
		raw, err := json.Marshal(body)
		if err != nil {
			return nil, err
		}
		content = bytes.NewReader(raw)
	}
	r, err := http.NewRequestWithContext(ctx, method, a.base+path, content)
	if err != nil {
		return nil, err
	}
	if body != nil {
		r.Header.Set("Content-Type", "application/json")
		if method == http.MethodPatch {
			r.Header.Set("Content-Type", "application/merge-patch+json")
		}
	}
	response, err := a.client.Do(r)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	got, err := io.ReadAll(io.LimitReader(response.Body, 16<<20))
	if err == nil && response.StatusCode/100 != 2 {
		err = status{code: response.StatusCode, text: string(got[:min(len(got), 300)])}
	}
	return got, err
}

// status is an answer of the API server that is no success.
type status struct {
	code int
	text string
}

func (s status) Error() string { return fmt.Sprintf("%d: %s", s.code, s.text) }

func missing(err error) bool { return answered(err, http.StatusNotFound) }

// already reports whether an object was there before.
func already(err error) bool { return answered(err, http.StatusConflict) }

func answered(err error, code int) bool {
	var s status
	return errors.As(err, &s) && s.code == code
}

// vouch holds a node's password to the one that the cluster keeps of its name, and keeps it where there is none.
func (a apiClient) vouch(ctx context.Context, node, password string) error {
	if password == "" {
		return errors.New("node password is not set")
	}
	const secrets = "/api/v1/namespaces/kube-system/secrets"
	name := node + ".node-password.rke2"
	raw, err := a.do(ctx, http.MethodGet, secrets+"/"+name, nil)
	if missing(err) {
		_, err = a.do(ctx, http.MethodPost, secrets, map[string]any{"apiVersion": "v1", "kind": "Secret",
			"metadata": map[string]any{"name": name}, "immutable": true,
			"data": map[string]string{"hash": base64.StdEncoding.EncodeToString([]byte(digest(password)))}})
		return err
	}
	if err != nil {
		return err
	}
	var secret struct{ Data struct{ Hash []byte } }
	if err := json.Unmarshal(raw, &secret); err != nil {
		return err
	}
	if string(secret.Data.Hash) != digest(password) {
		return fmt.Errorf("Node password rejected, duplicate hostname or contents of '%s' may not match server "+
			"node-passwd entry, try enabling a unique node name with the --with-node-id flag: %s",
			nodePasswordPath, node)
	}
	return nil
}

// servers lists the addresses of the API servers that serve.
func (a apiClient) servers(ctx context.Context) (list []string) {
	raw, err := a.do(ctx, http.MethodGet, "/api/v1/namespaces/default/endpoints/kubernetes", nil)
	var found struct {
		Subsets []struct {
			Addresses []struct{ IP string }
			Ports     []struct{ Port int }
		}
	}
	if err != nil || json.Unmarshal(raw, &found) != nil {
		return nil
	}
	for _, subset := range found.Subsets {
		for _, address := range subset.Addresses {
			for _, port := range subset.Ports {
				list = append(list, net.JoinHostPort(address.IP, fmt.Sprint(port.Port)))
			}
		}
	}
	return list
}

// nodePassword makes the password of this machine where it has none.
func nodePassword() error {
	if exists(nodePasswordPath) {
		return nil
	}
	return write(nodePasswordPath, []byte(rand.Text()), 0o600)
}
