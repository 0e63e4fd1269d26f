package server

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/rig/platformtest"
	"github.com/gpuaas/app-platform/sdk/tunnel"
	"github.com/gpuaas/app-platform/sdk/volumefiles"
)

// playFiles plays the files of an agent.
func (r *reachable) playFiles(ctx context.Context, open tunnel.Open, stream *tunnel.Stream) error {
	var spec volumefiles.Spec
	if err := json.Unmarshal(open.Spec, &spec); err != nil || r.files == nil {
		return errors.Join(err, &tunnel.Refusal{Code: tunnel.Unserved, Message: "no files"})
	}
	r.told <- spec
	if err := stream.Granted(); err != nil {
		return err
	}
	volumefiles.Serve(ctx, stream.Conn, r.files)
	return nil
}

// shelf is a volume of a project whose files an agent serves as a test says.
type shelf struct {
	*reachable
	volume  ids.ID
	admin   string // a token of the project's admin
	person  ids.ID
	asked   atomic.Int64 // requests that reached the agent
	answers func(w http.ResponseWriter, request *http.Request)
}

func newShelf(t *testing.T) *shelf {
	s := &shelf{reachable: newReachable(t), volume: ids.New(ids.Volume)}
	s.told = make(chan volumefiles.Spec, 100)
	class := ids.New(ids.StorageClass)
	s.SQL(`INSERT INTO storage_class (id, name, kind, title, created_at, updated_at)
		VALUES ($1, 'parallel', 'SHARED', 'a test', now(), now())`, class)
	admin := s.User(s.tenant, platformtest.In(authz.ProjectAdmin, s.project))
	s.person = admin.ID
	s.SQL(`INSERT INTO volume (id, tenant_id, project_id, storage_class_id, name, size_gib, status, created_by,
		created_at,
		updated_at) VALUES ($1, $2, $3, $4, 'home', 2, 'READY', $5, now(),
		now())`, s.volume, s.tenant.ID, s.project.ID, class,
		admin.ID)
	s.SQL(`UPDATE compute_node SET storage = '[{"name": "parallel", "kind": "SHARED", "reason": ""}]'
		WHERE id = $1`, s.node.ID)
	s.admin = s.Session(admin)
	s.files = http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		s.asked.Add(1)
		s.answers(w, request)
	})
	s.answers = func(w http.ResponseWriter, _ *http.Request) { give(w, "content", digestOf("content")) }
	s.agent(t.Context(), s.near)
	return s
}

// give answers a whole file as an agent does, with a digest.
func give(w http.ResponseWriter, content, digest string) {
	w.Header().Set("Trailer", volumefiles.ReprDigest)
	w.Header().Set("Content-Range", fmt.Sprintf("bytes 0-%d/%d", len(content)-1, len(content)))
	w.WriteHeader(http.StatusPartialContent)
	_, _ = io.WriteString(w, content)
	w.Header().Set(volumefiles.ReprDigest, digest)
}

// request requests a path of the volume at the process without the tunnel; pairs are headers.
func (s *shelf) request(credential, method, path, body string, pairs ...string) (*http.Response, string) {
	s.t.Helper()
	return s.address(credential, method, volumefiles.Prefix+string(s.volume)+"/files/"+path, body, pairs...)
}

func (s *shelf) address(credential, method, address, body string, pairs ...string) (*http.Response, string) {
	s.t.Helper()
	request, err := http.NewRequestWithContext(s.t.Context(), method, s.far.url+address, strings.NewReader(body))
	require.NoError(s.t, err)
	if credential != "" {
		request.Header.Set("Authorization", "Bearer "+credential)
	}
	for i := 0; i < len(pairs); i += 2 {
		request.Header.Set(pairs[i], pairs[i+1])
	}
	response, err := http.DefaultTransport.RoundTrip(request)
	require.NoError(s.t, err)
	defer func() { _ = response.Body.Close() }()
	got, err := io.ReadAll(response.Body)
	require.NoError(s.t, err)
	return response, string(got)
}

// refused asserts a refusal by code and words, and that no agent was called.
func (s *shelf) refused(body, code, words string, before int64) {
	s.t.Helper()
	require.Contains(s.t, body, `"`+code+`"`)
	require.Contains(s.t, body, words)
	require.Equal(s.t, before, s.asked.Load(), "no agent was asked")
}

func digestOf(content string) string {
	return volumefiles.Digest(sha256.Sum256([]byte(content))).String()
}

func TestFilesOfAVolumeGoToItsNodeAndAreInTheAudit(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	s.answers = func(w http.ResponseWriter, request *http.Request) {
		w.Header().Set("ETag", `"1-2-3-4"`)
		http.ServeContent(w, request, "", time.Time{}, strings.NewReader("content"))
	}
	response, body := s.request(s.admin, http.MethodGet, "a/x%22y", "", "Range", "bytes=3-")
	require.Equal(t, []any{http.StatusPartialContent, "tent", `"1-2-3-4"`, "bytes 3-6/7"},
		[]any{response.StatusCode, body, response.Header.Get("ETag"), response.Header.Get("Content-Range")})
	require.Equal(t, "attachment; filename=\"x\\\"y\"", response.Header.Get("Content-Disposition"))
	require.Equal(t, "application/octet-stream", response.Header.Get("Content-Type"))
	require.Equal(t, "nosniff", response.Header.Get("X-Content-Type-Options"))
	require.Equal(t, volumefiles.Spec{Volume: string(s.volume), Storage: "parallel", Tenant: string(s.tenant.ID),
		SizeBytes: 2 << 30}, <-s.told)
	require.Equal(t, 1, s.Count("volume_node", "volume_id = $1 AND node_id = $2", s.volume, s.node.ID),
		"its deletion is proved from now on")
	require.Equal(t, 1, s.Count("audit_entry", `action = 'readVolumeFile' AND allowed AND object_id = $1 AND after @>
		'{"path": "a/x\"y", "bytes": 7, "from": 3}'`, s.volume))

	s.answers = func(w http.ResponseWriter, request *http.Request) {
		got, _ := io.ReadAll(request.Body)
		w.Header().Set(volumefiles.UploadOffset, fmt.Sprint(len(got)))
		w.Header().Set("X-Told", request.Header.Get("Cookie")+request.Header.Get("Authorization"))
		w.WriteHeader(http.StatusCreated)
	}
	response, body = s.request(s.admin, http.MethodPut, "new", "hello", volumefiles.ReprDigest, digestOf("hello"),
		"Cookie", "a=b")
	require.Equal(t, []any{http.StatusCreated, "5", ""}, []any{response.StatusCode,
		response.Header.Get(volumefiles.UploadOffset), response.Header.Get("X-Told")}, body)
	spec := <-s.told
	require.True(t, spec.Write)
	require.Equal(t, 1, s.Count("posix_identity", "tenant_id = $1 AND subject_id = $2 AND uid = $3",
		s.tenant.ID, s.person, spec.ID), "what is written is the person's own")
	require.Equal(t, 1, s.Count("audit_entry", `action = 'writeVolumeFile' AND after @> jsonb_build_object('path', 'new',
		'bytes', 5, 'uid', $1::int, 'digest', $2::text)`, spec.ID, digestOf("hello")))
	response, _ = s.request(s.admin, http.MethodPut, "new", "he", volumefiles.ReprDigest, digestOf("hello"),
		"Content-Range", "bytes 0-1/5")
	require.Equal(t, http.StatusCreated, response.StatusCode)
	require.Equal(t, 1, s.Count("audit_entry", `action = 'writeVolumeFile'`), "a part is nothing that anybody sees")
	response, _ = s.request(s.admin, http.MethodDelete, "old/?recursive=true", "")
	require.Equal(t, http.StatusCreated, response.StatusCode)
	require.Equal(t, 1, s.Count("audit_entry", `action = 'deleteVolumeFile' AND after @>
		'{"path": "old", "folder": true, "recursive": true}'`))
}

func TestFilesAreRefusedToWhoMayNot(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	other := s.Project(s.Tenant())
	stranger := s.Session(s.User(s.Tenant(), platformtest.In(authz.ProjectAdmin, other)))
	viewer := s.Session(s.User(s.tenant, platformtest.In(authz.ProjectViewer, s.project)))
	_, reader := s.ServiceAccount(s.project, authz.VolumeFilesRead)
	put := []string{volumefiles.ReprDigest, digestOf("x")}
	s.request(s.admin, http.MethodGet, "x", "")
	asked, audited := s.asked.Load(), s.Count("audit_entry", "allowed")
	for _, method := range []string{http.MethodGet, http.MethodPut, http.MethodDelete} {
		body := ""
		if method == http.MethodPut {
			body = "x"
		}
		_, said := s.request(stranger, method, "x", body, put...)
		s.refused(said, "NOT_FOUND", "", asked)
		_, said = s.request(viewer, method, "x", body, put...)
		s.refused(said, "FORBIDDEN", "volume.files.", asked)
		_, said = s.request("", method, "x", body, put...)
		s.refused(said, "UNAUTHENTICATED", "", asked)
		if method != http.MethodGet {
			_, said = s.request(reader, method, "x", body, put...)
			s.refused(said, "FORBIDDEN", "volume.files.write", asked)
		}
	}
	require.Equal(t, audited, s.Count("audit_entry", "allowed"))
	response, _ := s.request(reader, http.MethodGet, "x", "")
	require.Equal(t, http.StatusOK, response.StatusCode)
	asked = s.asked.Load()
	cookie := "gpuaas_session=" + s.admin
	for _, from := range [][]string{{"Sec-Fetch-Site", "cross-site"}, {"Sec-Fetch-Site", "same-site"},
		{"Sec-Fetch-Site", "none"},
		{"Origin", "http://web--x.apps.test"}, {}} {
		for _, method := range []string{http.MethodGet, http.MethodDelete} {
			_, said := s.request("", method, "x", "", append([]string{"Cookie", cookie}, from...)...)
			s.refused(said, "FORBIDDEN", "another origin", asked)
		}
	}
	response, _ = s.request("", http.MethodGet, "x", "", "Cookie", cookie, "Sec-Fetch-Site", "same-origin")
	require.Equal(t, http.StatusOK, response.StatusCode)
	asked = s.asked.Load()
	for address, words := range map[string]string{"a/%2e%2e%2fb": "slash", "a%00b": "NUL", "a//b": "",
		volumefiles.UploadsFolder + "/x": "the platform's own folder"} {
		_, said := s.request(s.admin, http.MethodDelete, address, "")
		require.Equal(t, asked, s.asked.Load(), address)
		require.Contains(t, said, words, address)
	}
	for _, bad := range [][]string{{"Content-Range", "bytes 0-0/2", volumefiles.ReprDigest, "md5=:x:"},
		{"Content-Range", "bytes 0-5/2", volumefiles.ReprDigest, digestOf("x")}} {
		_, said := s.request(s.admin, http.MethodPut, "x", "x", bad...)
		s.refused(said, "INVALID_ARGUMENT", "must be", asked)
	}
	_, said := s.request(s.admin, http.MethodGet, "x", "", "Range", "bytes=0-1,3-4")
	s.refused(said, "INVALID_ARGUMENT", "Range", asked)
	s.SQL(`UPDATE volume SET status = 'DELETING' WHERE id = $1`, s.volume)
	_, said = s.request(s.admin, http.MethodGet, "x", "")
	s.refused(said, "FAILED_PRECONDITION", "DELETING", asked)
	s.SQL(`UPDATE volume SET status = 'READY' WHERE id = $1`, s.volume)
	s.SQL(`UPDATE compute_node SET status = 'OFFLINE'`)
	_, said = s.request(s.admin, http.MethodGet, "x", "")
	s.refused(said, "NODE_UNREACHABLE", "serves storage class", asked)
	s.SQL(`UPDATE storage_class SET kind = 'LOCAL'`)
	_, said = s.request(s.admin, http.MethodGet, "x", "")
	s.refused(said, "FAILED_PRECONDITION", "on no node yet", asked)
}

func TestWhatANodeAnswersOfFilesIsChecked(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	s.answers = func(w http.ResponseWriter, _ *http.Request) {
		header := w.Header()
		header.Set("Content-Type", "text/html")
		header.Set("Set-Cookie", "gpuaas_session=stolen")
		header.Set("Location", "http://evil.test")
		header.Set("Content-Security-Policy", "default-src *")
		header.Set("ETag", `"<script>"`)
		header.Set("Trailer", "Set-Cookie, "+volumefiles.ReprDigest)
		_, _ = io.WriteString(w, "<script>")
		header.Set(volumefiles.ReprDigest, "a lie")
	}
	compares := []string{volumefiles.WantReprDigest, volumefiles.WantSHA256}
	response, _ := s.request(s.admin, http.MethodGet, "x.html", "", compares...)
	for _, name := range []string{"Set-Cookie", "Location", "Etag"} {
		require.Empty(t, response.Header.Get(name), name)
	}
	require.Empty(t, response.Trailer.Get(volumefiles.ReprDigest))
	require.Empty(t, response.Trailer.Get("Set-Cookie"))
	require.Equal(t, "application/octet-stream", response.Header.Get("Content-Type"))
	require.Contains(t, response.Header.Get("Content-Security-Policy"), "sandbox")
	s.answers = func(w http.ResponseWriter, request *http.Request) {
		_, _ = io.Copy(io.Discard, request.Body) // which sends 100 Continue
		w.Header().Set("Link", "<http://evil.test>; rel=preload")
		w.WriteHeader(http.StatusEarlyHints)
		w.Header().Set("Content-Type", "text/html")
		_, _ = io.WriteString(w, "<script>")
	}
	response, said := s.request(s.admin, http.MethodPut, "x", "hello", volumefiles.ReprDigest, digestOf("hello"))
	require.Equal(t, []any{http.StatusOK, "nosniff", "", "", ""}, []any{response.StatusCode,
		response.Header.Get("X-Content-Type-Options"), response.Header.Get("Link"),
		response.Header.Get("Content-Type"), said})
	s.answers = func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) }
	response, _ = s.request(s.admin, http.MethodHead, "x", "")
	require.Equal(t, http.StatusServiceUnavailable, response.StatusCode)
	for answer, words := range map[string]string{
		`{"entries": [{"segment": "..%2f..%2fx"}]}`: "", `{"entries": 5}`: "", `garbage`: "",
		`{"entries": [` + strings.Repeat(`{"segment": "x"},`, 1_001) + `{"segment": "x"}]}`: ""} {
		s.answers = func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, answer) }
		response, said := s.request(s.admin, http.MethodGet, "folder/", "")
		require.Equal(t, http.StatusServiceUnavailable, response.StatusCode, said)
		require.Contains(t, said, "cannot be passed on"+words)
	}
	for status, answer := range map[int]string{http.StatusFound: "", http.StatusTeapot: `{"code": "UNAUTHENTICATED"}`,
		http.StatusUnauthorized: `{"code": "FORBIDDEN"}`} {
		s.answers = func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Location", "http://evil.test")
			w.WriteHeader(status)
			_, _ = io.WriteString(w, answer)
		}
		response, said := s.request(s.admin, http.MethodGet, "x", "")
		require.Equal(t, http.StatusServiceUnavailable, response.StatusCode, said)
		require.Empty(t, response.Header.Get("Location"))
	}
	s.answers = func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set(volumefiles.UploadOffset, "7")
		w.WriteHeader(http.StatusConflict)
		_, _ = io.WriteString(w, `{"code": "CONFLICT", "message": "7 bytes are there"}`)
	}
	response, said = s.request(s.admin, http.MethodPut, "x", "x", volumefiles.ReprDigest, digestOf("x"))
	require.Equal(t, []any{http.StatusConflict, "7"}, []any{response.StatusCode,
		response.Header.Get(volumefiles.UploadOffset)})
	require.Contains(t, said, "7 bytes are there")
}

func TestFilesEndWithTheRight(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	begun := make(chan struct{}, 1)
	ended := make(chan struct{})
	s.answers = func(w http.ResponseWriter, request *http.Request) {
		_, _ = io.WriteString(w, "begun")
		_ = http.NewResponseController(w).Flush()
		begun <- struct{}{}
		<-request.Context().Done()
		close(ended)
	}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet,
		s.far.url+volumefiles.Prefix+string(s.volume)+"/files/x", nil)
	require.NoError(t, err)
	request.Header.Set("Authorization", "Bearer "+s.admin)
	request.Header.Set(volumefiles.WantReprDigest, volumefiles.WantSHA256)
	response, err := http.DefaultTransport.RoundTrip(request)
	require.NoError(t, err)
	defer func() { _ = response.Body.Close() }()
	<-begun
	s.SQL(`UPDATE volume SET status = 'DELETING' WHERE id = $1`, s.volume)
	_, err = io.ReadAll(response.Body)
	require.Error(t, err, "it is cut, and nobody takes it for whole")
	select {
	case <-ended:
	case <-time.After(patience):
		require.FailNow(t, "the node goes on though nobody may read")
	}
}
