package volumehttp

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"path"
	"regexp"
	"strconv"
	"time"

	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/graph/denial"
	"github.com/gpuaas/app-platform/sdk/volumefiles"
	"github.com/gpuaas/app-platform/service/volume"
	"github.com/gpuaas/app-platform/transport"
)

const (
	// maxHeaders bounds the headers of an agent's answer, maxFailure its refusal and maxPage its list, in bytes.
	maxHeaders, maxFailure, maxPage = 16 << 10, 16 << 10, 4 << 20
	// continuePatience is how long an agent may take to accept a part before its bytes are sent all the same.
	continuePatience = 20 * time.Second
	// downloadPolicy lets a file do nothing where a browser shows it in spite of all.
	downloadPolicy = "default-src 'none'; sandbox; frame-ancestors 'none'"
)

// passage passes one request to an agent, and its answer back.
type passage struct {
	*Handler
	asked  *asked
	conn   net.Conn
	writer http.ResponseWriter
	status int // of a refusal, where it is not the fault's own
	quit   func() bool
}

// pass passes the request.
func (p *passage) pass(r *http.Request) {
	defer p.quit()
	control := http.NewResponseController(p.writer) // the server's deadlines are for short answers
	_, _ = control.SetReadDeadline(time.Time{}), control.SetWriteDeadline(time.Time{})
	if r.Body != nil {
		r.Body = &patientBody{ReadCloser: r.Body, control: control}
	}
	web := &http.Transport{DisableKeepAlives: true, DisableCompression: true, MaxResponseHeaderBytes: maxHeaders,
		ExpectContinueTimeout: continuePatience,
		DialContext:           func(context.Context, string, string) (net.Conn, error) { return p.conn, nil }}
	defer web.CloseIdleConnections()
	proxy := &httputil.ReverseProxy{Transport: quiet{web, r.Context()}, Rewrite: p.rewrite, ModifyResponse: p.answered,
		ErrorHandler: p.failed}
	proxy.ServeHTTP(&patientWriter{ResponseWriter: p.writer, control: control}, r)
}

// quiet sends requests without the proxy's own trace, which passes an agent's informational answers on unchecked and
// clears the headers that are set here.
type quiet struct {
	web *http.Transport
	ctx context.Context
}

// RoundTrip implements http.RoundTripper.
func (q quiet) RoundTrip(request *http.Request) (*http.Response, error) {
	return q.web.RoundTrip(request.WithContext(q.ctx))
}

// rewrite makes the request that the agent gets: nothing of the caller's but what was read.
func (p *passage) rewrite(out *httputil.ProxyRequest) {
	to, err := url.Parse("http://volume" + p.asked.address)
	if err != nil {
		to = &url.URL{Scheme: "http", Host: "volume"} // it was read before, so that it is an address
	}
	out.Out.URL, out.Out.Host, out.Out.Header = to, "volume", p.asked.header.Clone()
	out.Out.Header.Set("User-Agent", "")
}

// answerForms are the headers of an agent's answer that pass, and their forms.
var answerForms = map[string]*regexp.Regexp{
	"Etag":                   tagForm,
	"Content-Range":          regexp.MustCompile(`^bytes ([0-9]{1,18})-[0-9]{1,18}/([0-9]{1,18})$`),
	"Last-Modified":          regexp.MustCompile(`^[A-Za-z0-9 ,:]{10,40}$`),
	"Accept-Ranges":          regexp.MustCompile(`^bytes$`),
	"Content-Length":         regexp.MustCompile(`^[0-9]{1,18}$`),
	volumefiles.UploadOffset: regexp.MustCompile(`^[0-9]{1,18}$`),
}

// answered checks what an agent answers, and takes out of it what is not the agent's to say.
func (p *passage) answered(response *http.Response) error {
	kept := http.Header{}
	for name, form := range answerForms {
		if value := response.Header.Get(name); form.MatchString(value) {
			kept.Set(name, value)
		}
	}
	switch response.StatusCode {
	case http.StatusOK, http.StatusPartialContent, http.StatusCreated, http.StatusAccepted, http.StatusNoContent:
	default:
		return p.refusal(response, kept)
	}
	response.Header = kept
	if response.Request.Method == http.MethodGet && p.asked.folder {
		return p.page(response)
	}
	switch p.asked.Act {
	case volume.ReadFile:
		err := p.noteRead(response)
		if err == nil && p.asked.compared {
			err = p.whole(response)
		}
		if err != nil {
			return err
		}
	case volume.LookFiles:
	default: // the status and the headers say it all
		_ = response.Body.Close()
		response.Body, response.ContentLength, response.Trailer = http.NoBody, 0, nil
		kept.Del("Content-Length")
		return nil
	}
	kept.Set("Content-Type", "application/octet-stream")
	kept.Set("Content-Disposition", disposition(path.Base(p.asked.Path)))
	p.writer.Header().Set("Content-Security-Policy", downloadPolicy) // in the place of the server's own
	kept.Set("Cross-Origin-Resource-Policy", "same-origin")
	for name := range response.Trailer { // the names of trailers go out before the first byte
		if name != volumefiles.ReprDigest {
			delete(response.Trailer, name)
		}
	}
	response.Body = &trailing{ReadCloser: response.Body, response: response}
	return nil
}

// disposition has browsers keep a file by its name, and never show it. A name is anything, so that it is encoded.
func disposition(name string) string {
	if value := mime.FormatMediaType("attachment",
		map[string]string{"filename": volumefiles.Shown(name)}); value != "" {
		return value
	}
	return "attachment"
}

// noteRead notes what is taken out, before a byte of it passes.
func (p *passage) noteRead(response *http.Response) error {
	size, from := response.ContentLength, int64(0)
	if found := answerForms["Content-Range"].FindStringSubmatch(response.Header.Get("Content-Range")); found != nil {
		from, _ = strconv.ParseInt(found[1], 10, 64)
		size, _ = strconv.ParseInt(found[2], 10, 64)
	}
	in := p.asked.FilesInput
	in.After = map[string]any{"from": from}
	if size >= 0 {
		in.After["bytes"] = size
	}
	return p.Volumes.NoteRead(response.Request.Context(), in)
}

// page reads a folder's list, and answers it as it was understood.
func (p *passage) page(response *http.Response) error {
	raw, err := io.ReadAll(io.LimitReader(response.Body, maxPage+1))
	if err == nil && len(raw) > maxPage {
		err = fmt.Errorf("it has more than %d bytes", maxPage)
	}
	var found volumefiles.Page
	if err == nil {
		found, err = volumefiles.ParsePage(raw)
	}
	if err == nil {
		raw, err = json.Marshal(found)
	}
	if err != nil {
		return fmt.Errorf("read a node's list: %w", err)
	}
	response.Header = http.Header{"Content-Type": {"application/json; charset=utf-8"}}
	response.ContentLength = int64(len(raw))
	response.Header.Set("Content-Length", strconv.Itoa(len(raw)))
	response.Body, response.Trailer = io.NopCloser(bytes.NewReader(raw)), nil
	return nil
}

// known are the codes that an agent may refuse by.
var known = map[fault.Code]bool{fault.NotFound: true, fault.Conflict: true, fault.InvalidArgument: true,
	fault.FailedPrecondition: true, fault.LimitExceeded: true, fault.DigestMismatch: true, fault.Unavailable: true,
	fault.MethodNotAllowed: true}

// refusal is the fault of an agent's refusal.
func (p *passage) refusal(response *http.Response, kept http.Header) error {
	header := p.writer.Header()
	if offset := kept.Get(volumefiles.UploadOffset); offset != "" {
		header.Set(volumefiles.UploadOffset, offset)
	}
	p.status = response.StatusCode
	switch p.status {
	case http.StatusPreconditionFailed:
		return fault.New(fault.Conflict, "the file has changed since: begin again")
	case http.StatusRequestedRangeNotSatisfiable:
		return fault.New(fault.InvalidArgument, "Range: the file has no such bytes")
	}
	if response.Request.Method == http.MethodHead && headStatuses[p.status] { // which has no body
		return headRefusal(response.StatusCode)
	}
	p.status = 0
	raw, err := io.ReadAll(io.LimitReader(response.Body, maxFailure))
	var said volumefiles.Failure
	if err == nil {
		err = json.Unmarshal(raw, &said)
	}
	code := fault.Code(said.Code)
	if err != nil || !known[code] {
		return fmt.Errorf("a node answered %d: %w", response.StatusCode, err)
	}
	return fault.New(code, "%.2000s", volumefiles.Shown(said.Message))
}

// headStatuses are the statuses with which an agent may refuse HEAD; any other is not an answer of our agents.
var headStatuses = map[int]bool{http.StatusBadRequest: true, http.StatusForbidden: true, http.StatusNotFound: true,
	http.StatusMethodNotAllowed: true, http.StatusConflict: true, http.StatusUnprocessableEntity: true,
	http.StatusServiceUnavailable: true}

// headRefusal returns the fault of an agent's refusal without a body, by its status alone.
func headRefusal(status int) error {
	switch status {
	case http.StatusNotFound:
		return fault.New(fault.NotFound, "path: it is not on the volume")
	case http.StatusBadRequest:
		return fault.New(fault.InvalidArgument, "path: the request cannot be read")
	case http.StatusServiceUnavailable:
		return fault.New(fault.Unavailable, "the volume's file system does not answer").Retry(true)
	}
	return fault.New(fault.FailedPrecondition, "path: it is not a regular file; GET returns the reason")
}

// failed answers in the place of an agent that did not, or refused.
func (p *passage) failed(w http.ResponseWriter, r *http.Request, err error) {
	ctx := r.Context()
	if cause := context.Cause(ctx); cause != nil {
		if refused, ok := fault.As(cause); ok {
			p.refuse(ctx, w, refused)
		}
		return // else the caller has gone
	}
	if refused, ok := fault.As(err); ok {
		denial.Answer(ctx, w, refused, p.status)
		return
	}
	p.Log.InfoContext(ctx, "a node did not serve files", "volume", p.asked.VolumeID, "error", err, "correlation_id",
		transport.CorrelationID(ctx))
	p.refuse(ctx, w, fault.New(fault.Unavailable, "the node broke off, or its answer cannot be passed on: try again").
		Retry(true))
}

// trailing lets no trailer pass but the digest.
type trailing struct {
	io.ReadCloser
	response *http.Response
}

// Read implements io.Reader; the trailers are there with the last byte.
func (t *trailing) Read(p []byte) (int, error) {
	n, err := t.ReadCloser.Read(p)
	if err != nil {
		for name, values := range t.response.Trailer {
			if name != volumefiles.ReprDigest || len(values) != 1 {
				delete(t.response.Trailer, name)
			} else if _, bad := volumefiles.ParseDigest(values[0]); bad != nil {
				delete(t.response.Trailer, name)
			}
		}
	}
	return n, err
}

// patientBody puts the end of a caller that sends nothing off with each byte.
type patientBody struct {
	io.ReadCloser
	control *http.ResponseController
}

// Read implements io.Reader.
func (b *patientBody) Read(p []byte) (int, error) {
	_ = b.control.SetReadDeadline(time.Now().Add(idle))
	n, err := b.ReadCloser.Read(p)
	if err != nil { // all is here, and the agent may take its time with it
		_ = b.control.SetReadDeadline(time.Time{})
	}
	return n, err
}

// patientWriter puts the end of a caller that takes nothing off with each byte.
type patientWriter struct {
	http.ResponseWriter
	control *http.ResponseController
}

// Write implements io.Writer.
func (w *patientWriter) Write(p []byte) (int, error) {
	_ = w.control.SetWriteDeadline(time.Now().Add(idle))
	return w.ResponseWriter.Write(p)
}

// Unwrap is for http.ResponseController.
func (w *patientWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }
