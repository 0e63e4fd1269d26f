package volumehttp

import (
	"net/http"
	"net/url"
	"regexp"

	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/sdk/volumefiles"
	"github.com/gpuaas/app-platform/service/volume"
)

// forms are the forms of the headers that are passed to agents without being read here.
var forms = map[string]*regexp.Regexp{
	"Range":    regexp.MustCompile(`^bytes=[0-9]{1,18}-[0-9]{0,18}$`),
	"If-Range": tagForm, "If-Match": tagForm,
	volumefiles.WantReprDigest: regexp.MustCompile(`^` + volumefiles.WantSHA256 + `$`),
}

// tagForm is the form of an ETag.
var tagForm = regexp.MustCompile(`^"[0-9a-f-]{1,120}"$`)

// parse reads a request. Faults: INVALID_ARGUMENT, REQUEST_INVALID, METHOD_NOT_ALLOWED, NOT_FOUND for a malformed id.
func parse(r *http.Request) (*asked, error) {
	of, path, folder, err := volumefiles.ParseAddress(r.URL.EscapedPath())
	if err != nil {
		return nil, invalid(err)
	}
	id, err := volumeID(of)
	if err != nil {
		return nil, err
	}
	out := &asked{FilesInput: volume.FilesInput{VolumeID: id, Path: path}, folder: folder, header: http.Header{},
		address: volumefiles.Address(of, path, folder)}
	query := r.URL.Query()
	told := url.Values{}
	for _, name := range []string{volumefiles.AfterQuery, volumefiles.FirstQuery, volumefiles.RecursiveQuery,
		volumefiles.ModeQuery} {
		if query.Has(name) {
			told.Set(name, query.Get(name))
		}
	}
	if len(told) > 0 {
		out.address += "?" + told.Encode()
	}
	if r.Method != http.MethodPut && r.ContentLength != 0 {
		return nil, fault.New(fault.RequestInvalid, "a %s request has no body", r.Method)
	}
	return out, out.act(r, query)
}

// act reads what the request wants, and the headers for the agent.
func (a *asked) act(r *http.Request, query url.Values) error {
	switch r.Method {
	case http.MethodGet, http.MethodHead:
		return a.reads(r)
	case http.MethodPut:
		return a.brings(r)
	case http.MethodDelete:
		a.Act = volume.DeleteFile
		a.After = map[string]any{"folder": a.folder, "recursive": query.Get(volumefiles.RecursiveQuery) == "true"}
		return nil
	}
	return fault.New(fault.MethodNotAllowed, "files are read by GET and HEAD, written by PUT and deleted by DELETE")
}

// reads reads what a GET or HEAD wants.
func (a *asked) reads(r *http.Request) error {
	a.Act = volume.LookFiles
	if r.Method == http.MethodGet && !a.folder {
		a.Act = volume.ReadFile
	}
	if digest := r.Header.Get(volumefiles.ReprDigest); r.Method == http.MethodHead && digest != "" {
		a.Act = volume.BringFile
		given, err := volumefiles.ParseDigest(digest)
		if err != nil {
			return invalid(err)
		}
		if _, err := volumefiles.Number(r.Header.Get(volumefiles.UploadLength)); err != nil {
			return fault.New(fault.InvalidArgument, "%s: %v", volumefiles.UploadLength, err)
		}
		a.header.Set(volumefiles.ReprDigest, given.String())
		a.header.Set(volumefiles.UploadLength, r.Header.Get(volumefiles.UploadLength))
	}
	if r.Method == http.MethodHead && a.folder {
		return fault.New(fault.InvalidArgument, "path: HEAD is for a file: leave out the slash at its end")
	}
	for name, form := range forms {
		if value := r.Header.Get(name); value != "" {
			if !form.MatchString(value) || len(r.Header.Values(name)) > 1 {
				return fault.New(fault.InvalidArgument, "%s: %.100q does not have the expected form", name, value)
			}
			a.header.Set(name, value)
		}
	}
	if a.Act == volume.ReadFile {
		a.compareWhole()
	}
	return nil
}

// brings reads what a PUT brings.
func (a *asked) brings(r *http.Request) error {
	if a.folder {
		a.Act, a.After = volume.WriteFile, map[string]any{"folder": true}
		if r.ContentLength != 0 {
			return fault.New(fault.InvalidArgument,
				"path: a folder is created without a body: for a file, leave out the slash at its end")
		}
		return nil
	}
	digest, err := volumefiles.ParseDigest(r.Header.Get(volumefiles.ReprDigest))
	if err == nil {
		a.part, err = volumefiles.ParsePart(r.Header.Get("Content-Range"), r.ContentLength)
	}
	if err != nil {
		return invalid(err)
	}
	a.header.Set(volumefiles.ReprDigest, digest.String())
	a.header.Set("Content-Range", a.part.String())
	if a.part.Total == 0 {
		a.header.Del("Content-Range")
	}
	if a.part.Length > 0 {
		a.header.Set("Expect", "100-continue") // no byte is read of a caller that the agent refuses
	}
	a.Act = volume.BringFile
	if a.part.Last() {
		a.Act, a.After = volume.WriteFile, map[string]any{"bytes": a.part.Total, "digest": digest.String()}
	}
	return nil
}

func invalid(err error) error { return fault.New(fault.InvalidArgument, "%s", err) }
