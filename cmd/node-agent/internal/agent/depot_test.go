package agent_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/gpuaas/app-platform/sdk/client"
	"github.com/gpuaas/app-platform/sdk/client/generated/gql"
)

// depot is the delivery part of the stand-in: it opens deliveries of artifacts and serves their parts by Range, with
// tokens that end, and whatever else a test makes it do.
type depot struct {
	mu        sync.Mutex
	artifacts map[string]gql.ArtifactDelivery // by task
	parts     map[string]func() io.ReadSeeker
	sizes     map[string]int64
	token     string
	opened    int
	asked     map[string]int
	served    map[string]int64 // bytes sent of each part
	// before is called at each request for bytes; it may answer itself.
	before func(w http.ResponseWriter, r *http.Request, digest string) (answered bool)
}

func newDepot(r *rig) *depot {
	d := &depot{
		artifacts: map[string]gql.ArtifactDelivery{}, parts: map[string]func() io.ReadSeeker{},
		sizes: map[string]int64{},
		token: "tok-0", asked: map[string]int{}, served: map[string]int64{},
	}
	r.standin.mu.Lock()
	defer r.standin.mu.Unlock()
	r.deliver, r.artifacts = d.open, d
	return d
}

func digestOf(raw []byte) string { return fmt.Sprintf("sha256:%x", sha256.Sum256(raw)) }

// add keeps bytes and gives their descriptor.
func (d *depot) add(mediaType string, raw []byte) map[string]any {
	return d.addReader(mediaType, digestOf(raw), int64(len(raw)), func() io.ReadSeeker { return bytes.NewReader(raw) })
}

func (d *depot) addReader(mediaType, digest string, size int64, open func() io.ReadSeeker) map[string]any {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.parts[digest], d.sizes[digest] = open, size
	return map[string]any{"mediaType": mediaType, "digest": digest, "size": size}
}

const (
	typeManifest = "application/vnd.oci.image.manifest.v1+json"
	typeIndex    = "application/vnd.oci.image.index.v1+json"
	typeLayer    = "application/vnd.oci.image.layer.v1.tar"
	typeConfig   = "application/vnd.oci.image.config.v1+json"
)

func (d *depot) addJSON(mediaType string, document any) map[string]any {
	raw, err := json.Marshal(document)
	if err != nil {
		panic(err)
	}
	return d.add(mediaType, raw)
}

// image keeps a manifest over a config and layers, and gives its descriptor.
func (d *depot) image(config string, layers ...map[string]any) map[string]any {
	return d.addJSON(typeManifest, map[string]any{
		"schemaVersion": 2, "mediaType": typeManifest, "config": d.add(typeConfig, []byte(config)), "layers": layers,
	})
}

func (d *depot) layer(text string) map[string]any { return d.add(typeLayer, []byte(text)) }

func titled(layer map[string]any, title string) map[string]any {
	layer["annotations"] = map[string]string{"org.opencontainers.image.title": title}
	return layer
}

func madeFor(image map[string]any, os, architecture string) map[string]any {
	image["platform"] = map[string]string{"os": os, "architecture": architecture}
	return image
}

// grant lets a task have an artifact.
func (d *depot) grant(taskID string, kind gql.ArtifactKind, root map[string]any) (digest string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	digest = root["digest"].(string)
	size, _ := root["size"].(int64)
	d.artifacts[taskID] = gql.ArtifactDelivery{
		TaskId: taskID, Digest: digest, Kind: kind, MediaType: root["mediaType"].(string),
		Parts: []gql.ArtifactPart{{Digest: digest, MediaType: root["mediaType"].(string), SizeBytes: float64(size)}},
	}
	return digest
}

// open is the platform's openArtifactDelivery.
func (d *depot) open(taskID string) (any, *client.Error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.opened++
	found, ok := d.artifacts[taskID]
	if !ok {
		return nil, &client.Error{Code: client.CodeNotFound, Message: "there is no such object"}
	}
	if found.Digest == "" {
		return nil, &client.Error{Code: client.CodeArtifactQuarantined,
			Message: "the artifact is in quarantine: it was found bad"}
	}
	found.Url, found.Token, found.ExpiresAt = "/v1/artifacts/", d.token, time.Now().Add(10*time.Minute)
	return found, nil
}

// ServeHTTP is the platform's delivery of parts.
func (d *depot) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	digest := strings.TrimPrefix(r.URL.Path, "/v1/artifacts/")
	d.mu.Lock()
	d.asked[digest]++
	open, size, before, good := d.parts[digest], d.sizes[digest], d.before,
		r.Header.Get("Authorization") == "Bearer "+d.token
	d.mu.Unlock()
	switch {
	case !good:
		w.WriteHeader(http.StatusUnauthorized)
		return
	case before != nil && before(w, r, digest):
		return
	case open == nil:
		w.WriteHeader(http.StatusNotFound)
		return
	}
	content := open()
	offset, _ := strconv.ParseInt(strings.TrimSuffix(strings.TrimPrefix(r.Header.Get("Range"), "bytes="), "-"), 10, 64)
	_, _ = content.Seek(offset, io.SeekStart)
	w.Header().Set("Content-Length", strconv.FormatInt(size-offset, 10))
	if offset > 0 {
		w.Header().Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", offset, size-1, size))
		w.WriteHeader(http.StatusPartialContent)
	}
	_, _ = io.Copy(&counting{w, d, digest}, content)
}

// counting counts what leaves.
type counting struct {
	http.ResponseWriter
	depot  *depot
	digest string
}

func (c *counting) Write(raw []byte) (int, error) {
	n, err := c.ResponseWriter.Write(raw)
	c.depot.mu.Lock()
	defer c.depot.mu.Unlock()
	c.depot.served[c.digest] += int64(n)
	return n, err
}

func (d *depot) sent(digest string) int64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.served[digest]
}

func (d *depot) total() (bytes int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, sent := range d.served {
		bytes += sent
	}
	return bytes
}
