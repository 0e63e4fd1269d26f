// Package edition is what a reference app publishes: its manifest, with what it pins, and what its catalog has already.
package edition

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"github.com/gpuaas/app-platform/sdk/client/generated/gql"
)

// MediaType is that of everything that is pinned here.
const MediaType = "application/vnd.oci.image.manifest.v1+json"

// Document is a manifest, of which publishing reads some parts and fills others in.
type Document map[string]json.RawMessage

// Text returns a part that is a text; empty for any other.
func (d Document) Text(key string) string {
	var text string
	_ = json.Unmarshal(d[key], &text)
	return text
}

// Set sets a part to a text.
func (d Document) Set(key, text string) { d[key], _ = json.Marshal(text) }

// Names are those of the artifacts that the manifest pins, first what runs.
func (d Document) Names() (names []string) {
	var artifacts []Pin
	_ = json.Unmarshal(d["artifacts"], &artifacts)
	for _, one := range artifacts {
		names = append(names, one.Name)
	}
	if len(names) == 0 {
		return []string{"controller"}
	}
	return names
}

// Pin is an artifact as a manifest pins it.
type Pin struct {
	Name      string `json:"name"`
	MediaType string `json:"mediaType"`
	Ref       string `json:"ref"`
	Digest    string `json:"digest"`
}

// Publish returns the document of a version with its pins.
func (d Document) Publish(version string, pins []Pin) (json.RawMessage, error) {
	artifacts, err := json.Marshal(pins)
	if err != nil {
		return nil, err
	}
	d["artifacts"] = artifacts
	d.Set("version", version)
	return json.Marshal(d)
}

// Published is what the catalog has of an app: its versions, and the digests that the active one pins.
type Published struct {
	Versions []string
	Active   map[string]bool
}

// Next returns the document's own version the first time, and afterwards one that names the bytes: a version, once
// published, never changes.
func (p Published) Next(document Document, digest string) (string, error) {
	version := document.Text("version")
	if version == "" {
		return "", errors.New("the manifest has no version")
	}
	if slices.Contains(p.Versions, version) {
		return version + "-local." + strings.TrimPrefix(digest, "sha256:")[:12], nil
	}
	return version, nil
}

// order is how far each stage is on the way to active.
var order = map[gql.Stage]int{gql.StageDraft: 0, gql.StageStaged: 1, gql.StageCanary: 2, gql.StageActive: 3}

// Reached reports whether a stage is the wanted one or one after it.
func Reached(stage, wanted gql.Stage) bool { return order[stage] >= order[wanted] }
