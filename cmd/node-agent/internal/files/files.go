// Package files serves the files of volumes to the platform: each stream of the tunnel is one HTTP request about one
// volume, which the agent mounts for itself while the request lasts, whether or not a member has it.
//
// What is on a volume is hostile: members' root writes it. Paths are taken below the mount alone (os.Root), links lead
// nowhere else, pipes and devices are not read. What is uploaded waits in a folder of the platform's own, where the
// next request continues it, and has its name in one step when its digest is right.
package files

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gpuaas/app-platform/cmd/node-agent/internal/volume"
	"github.com/gpuaas/app-platform/sdk/tunnel"
	"github.com/gpuaas/app-platform/sdk/volumefiles"
)

const (
	// MaxRequests is how many requests a node serves at once: each may keep a file system busy and computes digests.
	MaxRequests = 32
	// bufferSize is how much of a file is in memory at once, in bytes.
	bufferSize = 256 << 10
)

// Volumes mounts volumes for the agent itself.
type Volumes interface {
	Private(ctx context.Context, volume volume.Volume, write bool) (*os.File, error)
}

// Server serves requests. Its fields are set before it is used and not changed.
type Server struct {
	// Volumes are the node's. Required.
	Volumes Volumes
	// Log takes what no client may read. Required.
	Log *slog.Logger

	share share
	mu    sync.Mutex
	swept map[string]time.Time // when the uploads of a volume were last swept
}

// Serve serves one request on a stream.
func (s *Server) Serve(ctx context.Context, open tunnel.Open, stream *tunnel.Stream) error {
	var spec volumefiles.Spec
	if err := json.Unmarshal(open.Spec, &spec); err != nil || spec.ID < 0 || spec.SizeBytes < 0 {
		return &tunnel.Refusal{Code: tunnel.Invalid, Message: "a request about files must name a volume"}
	}
	leave, others, ok := s.share.wait(ctx, spec.Tenant, MaxRequests)
	if !ok {
		return busy(others)
	}
	defer leave()
	due := s.due(spec.Volume)
	tree, err := s.Volumes.Private(ctx, volume.Volume{ID: spec.Volume, Storage: spec.Storage,
		SizeBytes: spec.SizeBytes},
		spec.Write || due)
	if err != nil {
		return &tunnel.Refusal{Code: tunnel.NoMember, Message: err.Error()}
	}
	defer tree.Close()
	root, err := os.OpenRoot(fmt.Sprintf("/proc/self/fd/%d", tree.Fd()))
	if err != nil {
		return &tunnel.Refusal{Code: tunnel.NoMember, Message: "the volume cannot be entered: " + plain(err)}
	}
	defer root.Close()
	if err := stream.Granted(); err != nil {
		return err
	}
	wanted := &request{server: s, spec: spec, root: root}
	if due {
		wanted.sweep()
	}
	volumefiles.Serve(ctx, stream.Conn, wanted)
	return nil
}

// busy refuses a request beyond what a node serves at once, or beyond what one tenant has of it.
func busy(others bool) error {
	message := fmt.Sprintf("the node already serves %d requests about files: try again when one has ended", MaxRequests)
	if others {
		message = fmt.Sprintf("the node serves as many requests about files as this tenant may have, and keeps "+
			"the rest of %d for other tenants: try again when one has ended", MaxRequests)
	}
	return &tunnel.Refusal{Code: tunnel.Busy, Message: message}
}

// request is one request about a volume.
type request struct {
	server *Server
	spec   volumefiles.Spec
	root   *os.Root
	path   string
}

// ServeHTTP implements http.Handler.
func (q *request) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if err := q.answer(w, r); err != nil {
		q.refuse(r.Context(), w, err)
	}
}

func (q *request) answer(w http.ResponseWriter, r *http.Request) error {
	of, path, folder, err := volumefiles.ParseAddress(r.URL.EscapedPath())
	if err == nil && of != q.spec.Volume {
		err = errors.New("the request and its stream name different volumes")
	}
	if err != nil {
		return refusal("INVALID_ARGUMENT", "%v", err)
	}
	q.path = path
	if r.Method != http.MethodGet && r.Method != http.MethodHead && !q.spec.Write {
		return refusal("FORBIDDEN", "the stream was opened only for reading")
	}
	switch {
	case r.Method == http.MethodGet && folder:
		return q.list(w, r)
	case r.Method == http.MethodHead && r.Header.Get(volumefiles.ReprDigest) != "" && !folder:
		return q.progress(w, r)
	case (r.Method == http.MethodGet || r.Method == http.MethodHead) && !folder:
		return q.read(w, r)
	case r.Method == http.MethodPut && folder:
		return q.makeFolders(w)
	case r.Method == http.MethodPut:
		return q.upload(w, r)
	case r.Method == http.MethodDelete:
		return q.remove(w, r, folder)
	}
	return refusal("METHOD_NOT_ALLOWED", "files are read by GET and HEAD, written by PUT and deleted by DELETE")
}

// refusal is a refusal with a code of the platform's catalogue.
func refusal(code, format string, args ...any) *volumefiles.Failure {
	return &volumefiles.Failure{Code: code, Message: fmt.Sprintf(format, args...)}
}

// statuses are the HTTP statuses of refusals, for HTTP clients; the platform reads the code.
var statuses = map[string]int{
	"NOT_FOUND": http.StatusNotFound, "CONFLICT": http.StatusConflict, "INVALID_ARGUMENT": http.StatusBadRequest,
	"FORBIDDEN": http.StatusForbidden, "METHOD_NOT_ALLOWED": http.StatusMethodNotAllowed,
	"UNAVAILABLE": http.StatusServiceUnavailable,
}

// refuse answers why a request is not served.
func (q *request) refuse(ctx context.Context, w http.ResponseWriter, err error) {
	var failure *volumefiles.Failure
	if !errors.As(err, &failure) {
		failure = q.failure(err)
		q.server.Log.InfoContext(ctx, "a request about files was not served", "volume", q.spec.Volume, "error",
			plain(err))
	}
	status, known := statuses[failure.Code]
	if !known {
		status = http.StatusUnprocessableEntity
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(failure) // the platform may have gone
}

// failure is the refusal for what a file system answered.
func (q *request) failure(err error) *volumefiles.Failure {
	path := volumefiles.Shown(q.path)
	switch {
	case errors.Is(err, unix.ENOTDIR):
		return refusal("FAILED_PRECONDITION", "path: a part of %q is a file, and not a folder", path)
	case errors.Is(err, os.ErrNotExist):
		return refusal("NOT_FOUND", "path: %q is not on the volume", path)
	case errors.Is(err, unix.ENOSPC), errors.Is(err, unix.EDQUOT):
		return refusal("LIMIT_EXCEEDED", "the volume has no space left: delete files, or make it larger")
	case errors.Is(err, unix.ENOTEMPTY), errors.Is(err, unix.EEXIST):
		return refusal("FAILED_PRECONDITION",
			"path: folder %q is not empty: delete what is in it, or all by recursive=true", path)
	case errors.Is(err, unix.EISDIR):
		return refusal("FAILED_PRECONDITION", "path: %q is a folder: end the address with a slash", path)
	case errors.Is(err, unix.ELOOP), strings.Contains(err.Error(), "escapes from parent"):
		return refusal("FAILED_PRECONDITION", "path: a link in %q leads out of the volume, or to nothing", path)
	case errors.Is(err, unix.ENXIO), errors.Is(err, unix.ENODEV), errors.Is(err, unix.EACCES):
		return refusal("FAILED_PRECONDITION", "path: %q is not a regular file", path)
	case errors.Is(err, unix.ENAMETOOLONG):
		return refusal("INVALID_ARGUMENT", "path: a name in %q is too long for the volume's file system", path)
	}
	return refusal("UNAVAILABLE", "the volume's file system reports: %s", plain(err))
}

// plain is the cause of an error, without a path.
func plain(err error) string {
	var errno unix.Errno
	if errors.As(err, &errno) {
		return errno.Error()
	}
	var at *os.PathError
	if errors.As(err, &at) {
		return at.Err.Error()
	}
	return "the transfer was interrupted"
}
