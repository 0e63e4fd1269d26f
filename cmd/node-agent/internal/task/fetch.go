package task

import (
	"context"
	"fmt"
	"io"
	"path"
	"path/filepath"
	"strings"

	"github.com/gpuaas/app-platform/cmd/node-agent/internal/fetch"
	"github.com/gpuaas/app-platform/cmd/node-agent/internal/journal"
	"github.com/gpuaas/app-platform/cmd/node-agent/internal/sandbox"
	"github.com/gpuaas/app-platform/cmd/node-agent/internal/wire"
	"github.com/gpuaas/app-platform/sdk/client/generated/gql"
	"github.com/gpuaas/app-platform/sdk/nodetask"
)

// How an artifact is placed.
const (
	asLayout = "oci_layout"
	asFiles  = "files"
	asFile   = "file"
)

// maxTitle bounds a file name that an artifact brings, in bytes.
const maxTitle = 1024

// fetchResult is the result of a FETCH_ARTIFACT. FetchedBytes is what this agent fetched for it; Manifest is the one
// that was chosen, which of an index is not the artifact's digest.
type fetchResult struct {
	Digest       string `json:"digest"`
	Manifest     string `json:"manifest,omitempty"`
	Path         string `json:"path"`
	Bytes        int64  `json:"bytes"`
	FetchedBytes int64  `json:"fetchedBytes"`
	Parts        int    `json:"parts"`
	Cached       bool   `json:"cached"`
}

// fetchArtifact finds the member's init before it fetches, and places through that one alone: a member that was torn
// down meanwhile does not come back.
func (e *Executor) fetchArtifact(
	ctx context.Context, task Task, spec *nodetask.FetchArtifact, attempt Attempt,
) (journal.Outcome, error) {
	var err error
	to := &placement{path: path.Clean(spec.Path), as: spec.As, mode: nodetask.Mode(spec.Mode), owner: spec.Owner}
	if to.client, err = e.Sandboxes.Ensure(ctx, task.member()); err != nil {
		return journal.Outcome{}, err
	}
	artifact, err := e.Artifacts.Fetch(ctx, fetch.Wanted{
		TaskID: task.ID, Digest: spec.Digest, Platform: spec.Platform, Accept: to.accept, Progress: attempt.Progress,
	})
	if err != nil {
		return journal.Outcome{}, err
	}
	defer artifact.Release()
	parts, err := to.place(ctx, artifact)
	if err != nil {
		return journal.Outcome{}, err
	}
	result := fetchResult{
		Digest: spec.Digest, Path: spec.Path, Bytes: artifact.Bytes(), FetchedBytes: artifact.Fetched(), Parts: parts,
		Cached: artifact.Fetched() == 0,
	}
	if artifact.Manifest != nil {
		result.Manifest = artifact.Manifest.Digest
	}
	return success(result), nil
}

// placement is where and how an artifact goes into a member.
type placement struct {
	client *sandbox.Client
	path   string
	as     string
	mode   uint32
	owner  string
}

// accept decides on the form, and refuses what cannot be placed before any of it is fetched.
func (p *placement) accept(artifact *fetch.Artifact) error {
	if p.as == "" {
		p.as = map[gql.ArtifactKind]string{gql.ArtifactKindBlob: asFile,
			gql.ArtifactKindOciArtifact: asFiles}[artifact.Kind]
	}
	if p.as == "" {
		p.as = asLayout
	}
	switch {
	case p.as == asLayout && artifact.Manifest == nil:
		return invalid("as", "a blob has no OCI layout")
	case p.as == asFile && len(artifact.Layers) != 1:
		return invalid("as", "the artifact has %d files, not one", len(artifact.Layers))
	case p.as == asFiles:
		return checkTitles(artifact.Layers)
	}
	return nil
}

// checkTitles refuses names by which an artifact would leave its folder, or overwrite its own files.
func checkTitles(layers []fetch.Descriptor) error {
	taken := map[string]bool{}
	for _, layer := range layers {
		title := layer.Title()
		switch {
		case title == "":
			continue
		case !filepath.IsLocal(title) || path.Clean(title) != title || title == "." || len(title) > maxTitle ||
			strings.ContainsRune(title, 0):
			return wire.Errorf(wire.CodePathInvalid,
				"the artifact has a file %.200q, which is not a plain path in a folder", title)
		case taken[title]:
			return wire.Errorf(wire.CodePathInvalid, "the artifact has two files %.200q", title)
		}
		taken[title] = true
	}
	if len(taken) == 0 {
		return invalid("as", "no layer of the artifact has a title, so it has no files")
	}
	return nil
}

// place writes the artifact in the form of p.as and returns how many parts it placed.
func (p *placement) place(ctx context.Context, artifact *fetch.Artifact) (parts int, err error) {
	switch p.as {
	case asLayout:
		return p.layout(ctx, artifact)
	case asFile:
		return 1, p.part(ctx, artifact, artifact.Layers[0], p.path)
	}
	for _, layer := range artifact.Layers {
		if layer.Title() == "" {
			continue
		}
		if err := p.part(ctx, artifact, layer, path.Join(p.path, layer.Title())); err != nil {
			return 0, err
		}
		parts++
	}
	return parts, nil
}

// layout writes the index last: without an index a folder is not a layout, so a reader finds it whole or not at all.
func (p *placement) layout(ctx context.Context, artifact *fetch.Artifact) (int, error) {
	placed := map[string]bool{}
	for _, part := range artifact.Parts {
		if placed[part.Digest] {
			continue
		}
		placed[part.Digest] = true
		to := path.Join(p.path, "blobs", "sha256", strings.TrimPrefix(part.Digest, "sha256:"))
		if err := p.part(ctx, artifact, part, to); err != nil {
			return 0, err
		}
	}
	chosen := *artifact.Manifest
	if chosen.MediaType == "" {
		chosen.MediaType = "application/vnd.oci.image.manifest.v1+json"
	}
	for _, file := range []struct {
		name    string
		content any
	}{
		{"oci-layout", map[string]string{"imageLayoutVersion": "1.0.0"}},
		{"index.json", map[string]any{
			"schemaVersion": 2, "mediaType": "application/vnd.oci.image.index.v1+json",
			"manifests": []fetch.Descriptor{chosen},
		}},
	} {
		text := string(encode(file.content))
		if err := p.client.Place(ctx, p.file(path.Join(p.path, file.name)), int64(len(text)),
			strings.NewReader(text)); err != nil {
			return 0, err
		}
	}
	return len(placed), nil
}

func (p *placement) file(to string) wire.File {
	return wire.File{Path: to, Mode: p.mode, Owner: p.owner, MakeDirs: true, OwnDirs: p.owner != ""}
}

func (p *placement) part(ctx context.Context, artifact *fetch.Artifact, part fetch.Descriptor, to string) error {
	err := artifact.Read(ctx, part, func(bytes io.Reader) error {
		return p.client.Place(ctx, p.file(to), part.Size, bytes)
	})
	if err != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err != nil {
		return fmt.Errorf("place %s: %w", part.Digest, err)
	}
	return nil
}
