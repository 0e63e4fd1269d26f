package ociregistry

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"sync"
)

// Bounds of what is remembered, and of how deep an index lists indexes.
const (
	maxTrees = 1_000
	maxDepth = 4
)

// trees know the parts of a registry's artifacts. A digest names the same bytes always, so that what was read once
// holds.
type trees struct {
	registry http.Handler
	lock     sync.Mutex
	known    map[string]map[string]bool
}

// has reports whether the artifact of a digest is, or contains, what lies under another one.
func (t *trees) has(ctx context.Context, repository, digest, wanted string) bool {
	if digest == wanted {
		return true
	}
	key := repository + "@" + digest
	t.lock.Lock()
	tree := t.known[key]
	t.lock.Unlock()
	if tree == nil {
		tree = map[string]bool{}
		if !t.read(ctx, repository, digest, tree, maxDepth) {
			return false // it is not there, or not yet
		}
		t.lock.Lock()
		if t.known == nil || len(t.known) >= maxTrees {
			t.known = map[string]map[string]bool{}
		}
		t.known[key] = tree
		t.lock.Unlock()
	}
	return tree[wanted]
}

// listed are the descriptors of a manifest or an index.
type listed struct {
	Config    descriptor
	Layers    []descriptor
	Blobs     []descriptor
	Manifests []descriptor
}

type descriptor struct {
	Digest string `json:"digest"`
}

// read adds what a manifest lists, and what the manifests list that it lists.
func (t *trees) read(ctx context.Context, repository, digest string, into map[string]bool, depth int) bool {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "/v2/"+repository+"/manifests/"+digest, nil)
	if err != nil {
		return false
	}
	var answer recorded
	t.registry.ServeHTTP(&answer, request)
	var found listed
	if answer.status > http.StatusOK || json.Unmarshal(answer.body.Bytes(), &found) != nil {
		return false
	}
	into[digest], into[found.Config.Digest] = true, true
	for _, part := range append(found.Layers, found.Blobs...) {
		into[part.Digest] = true
	}
	for _, part := range found.Manifests {
		into[part.Digest] = true
		if depth > 0 {
			t.read(ctx, repository, part.Digest, into, depth-1)
		}
	}
	return true
}

// recorded is an answer of the registry to itself; the zero value is ready.
type recorded struct {
	status int
	header http.Header
	body   bytes.Buffer
}

// Header implements http.ResponseWriter.
func (r *recorded) Header() http.Header {
	if r.header == nil {
		r.header = http.Header{}
	}
	return r.header
}

// WriteHeader implements http.ResponseWriter.
func (r *recorded) WriteHeader(status int) { r.status = status }

// Write implements http.ResponseWriter.
func (r *recorded) Write(part []byte) (int, error) { return r.body.Write(part) }
