package fetch

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/gpuaas/app-platform/internal/signature"
)

const (
	maxReferrers = 512 // of one manifest
	maxPages     = 8   // of their list
)

// Referrers lists the manifests that refer to a digest, at most 512 of them from at most 8 pages. ErrNotFound for a
// file, and from a registry that keeps no such list, whose referrers are listed under a tag.
func (s *Session) Referrers(ctx context.Context, digest string) (out []signature.Descriptor, err error) {
	if s.ref.File() {
		return nil, ErrNotFound
	}
	address := s.base + "referrers/" + digest
	for range maxPages {
		page, next, err := s.referrers(ctx, address)
		if err != nil {
			return nil, err
		}
		out = append(out, page...)
		if next == "" || len(out) >= maxReferrers {
			return out[:min(len(out), maxReferrers)], nil
		}
		address = next
	}
	return out, nil
}

// referrers reads one page of the list, and where the next one lies.
func (s *Session) referrers(ctx context.Context, address string) (page []signature.Descriptor, next string, err error) {
	response, err := s.ask(ctx, http.MethodGet, address, header("application/vnd.oci.image.index.v1+json"),
		http.StatusOK)
	if errors.Is(err, statusError(http.StatusMethodNotAllowed)) {
		return nil, "", ErrNotFound
	}
	if err != nil {
		return nil, "", err
	}
	defer func() { _ = response.Body.Close() }()
	data, err := whole(response.Body, MaxManifest)
	if err != nil {
		return nil, "", err
	}
	var index struct {
		Manifests []signature.Descriptor `json:"manifests"`
	}
	if err := json.Unmarshal(data, &index); err != nil {
		return nil, "", fmt.Errorf("the registry's list of referrers is malformed: %w", err)
	}
	return index.Manifests, s.nextPage(address, response.Header.Get("Link")), nil
}

// nextPage returns the address of a list's next page, within the same repository; empty after the last.
func (s *Session) nextPage(address, link string) string {
	target, rel, ok := strings.Cut(strings.TrimPrefix(link, "<"), ">")
	here, err := url.Parse(address)
	if !ok || err != nil || !strings.Contains(rel, `rel="next"`) {
		return ""
	}
	there, err := here.Parse(target)
	if err != nil || !strings.HasPrefix(there.String(), s.base) {
		return ""
	}
	return there.String()
}
