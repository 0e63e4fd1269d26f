// Package ociregistry serves a small OCI registry from a folder.
//
// It is go-containerregistry's handler (with the referrers API) and its blobs on disk, plus what that one lacks:
// manifests are kept on disk too, so that what was pinned by digest is still there after a restart. By itself it lets
// everybody in; Auth guards it: pulls with the platform's short-lived tokens, pushes with a password. It is for local
// use.
package ociregistry

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/google/go-containerregistry/pkg/registry"
)

const (
	maxManifest = 4 << 20 // the distribution specification's own bound
	maxBlob     = 4 << 30
)

// Handler serves the registry of one folder. Only one may use a folder at a time.
type Handler struct {
	dir   string
	inner http.Handler
}

// stored is a manifest on disk: what a PUT of it needs.
type stored struct {
	Path      string `json:"path"` // of the request: /v2/NAME/manifests/REFERENCE
	MediaType string `json:"mediaType"`
	Body      []byte `json:"body"`
}

// New opens the registry in dir, making it when absent.
func New(dir string) (*Handler, error) {
	h := &Handler{dir: dir}
	for _, sub := range []string{h.blobs(), h.manifests()} {
		if err := os.MkdirAll(sub, 0o755); err != nil {
			return nil, fmt.Errorf("registry: %w", err)
		}
	}
	h.inner = registry.New(
		registry.WithBlobHandler(registry.NewDiskBlobHandler(h.blobs())),
		registry.WithReferrersSupport(true),
		registry.Logger(log.New(io.Discard, "", 0)))
	if err := h.restore(); err != nil {
		return nil, fmt.Errorf("registry: %w", err)
	}
	return h, nil
}

func (h *Handler) blobs() string     { return filepath.Join(h.dir, "blobs") }
func (h *Handler) manifests() string { return filepath.Join(h.dir, "manifests") }

// ServeHTTP implements http.Handler.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !strings.Contains(r.URL.Path, "/manifests/") || r.Method != http.MethodPut && r.Method != http.MethodDelete {
		r.Body = http.MaxBytesReader(w, r.Body, maxBlob)
		h.inner.ServeHTTP(w, r)
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxManifest))
	if err != nil {
		http.Error(w, "manifest is larger than 4 MiB", http.StatusRequestEntityTooLarge)
		return
	}
	if why := refuse(r, body); why != "" {
		http.Error(w, why, http.StatusBadRequest)
		return
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	answer := httptest.NewRecorder()
	h.inner.ServeHTTP(answer, r)
	if answer.Code < http.StatusMultipleChoices {
		if err := h.record(r, body); err != nil {
			http.Error(w, "manifest could not be stored", http.StatusInternalServerError)
			return
		}
	}
	copyAnswer(w, answer)
}

// refuse checks what the inner handler does not: that a manifest is JSON, and is what its digest says.
func refuse(r *http.Request, body []byte) string {
	if r.Method != http.MethodPut {
		return ""
	}
	if !json.Valid(body) {
		return "manifest is not JSON"
	}
	reference := path.Base(r.URL.Path)
	if digest := fmt.Sprintf("sha256:%x", sha256.Sum256(body)); strings.Contains(reference, ":") &&
		reference != digest {
		return "manifest has digest " + digest
	}
	return ""
}

func copyAnswer(w http.ResponseWriter, answer *httptest.ResponseRecorder) {
	for name, values := range answer.Header() {
		w.Header()[name] = values
	}
	w.WriteHeader(answer.Code)
	_, _ = w.Write(answer.Body.Bytes())
}

// record repeats an accepted change of a manifest on disk. The file is written whole or not at all.
func (h *Handler) record(r *http.Request, body []byte) error {
	file := filepath.Join(h.manifests(), base64.RawURLEncoding.EncodeToString([]byte(r.URL.Path)))
	if r.Method == http.MethodDelete {
		if err := os.Remove(file); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
		return nil
	}
	data, err := json.Marshal(stored{Path: r.URL.Path, MediaType: r.Header.Get("Content-Type"), Body: body})
	if err != nil {
		return err
	}
	if err := os.WriteFile(file+".new", data, 0o644); err != nil {
		return err
	}
	return os.Rename(file+".new", file)
}

// restore pushes the stored manifests again. An index is refused before the manifests it lists, so it goes round until
// no more are taken.
func (h *Handler) restore() error {
	pending, err := h.load()
	if err != nil {
		return err
	}
	for len(pending) > 0 {
		var refused []stored
		for _, m := range pending {
			if h.push(m) >= http.StatusMultipleChoices {
				refused = append(refused, m)
			}
		}
		if len(refused) == len(pending) {
			return fmt.Errorf("stored manifest %s is refused", refused[0].Path)
		}
		pending = refused
	}
	return nil
}

func (h *Handler) push(m stored) int {
	r := httptest.NewRequest(http.MethodPut, m.Path, bytes.NewReader(m.Body))
	r.Header.Set("Content-Type", m.MediaType)
	answer := httptest.NewRecorder()
	h.inner.ServeHTTP(answer, r)
	return answer.Code
}

func (h *Handler) load() (manifests []stored, err error) {
	entries, err := os.ReadDir(h.manifests())
	if err != nil {
		return nil, err
	}
	for _, entry := range entries {
		if filepath.Ext(entry.Name()) == ".new" {
			continue // half written by a killed process
		}
		data, err := os.ReadFile(filepath.Join(h.manifests(), entry.Name()))
		if err != nil {
			return nil, err
		}
		var m stored
		if err := json.Unmarshal(data, &m); err != nil {
			return nil, fmt.Errorf("stored manifest %s: %w", entry.Name(), err)
		}
		manifests = append(manifests, m)
	}
	return manifests, nil
}
