package apphttp

import (
	"html/template"
	"net/http"
	"strings"

	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/graph/denial"
)

// pagePolicy is the content policy of our own pages at an app's host.
const pagePolicy = "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'; base-uri 'none'; " +
	"form-action 'none'"

var page = template.Must(template.New("page").Parse(`<!doctype html>
<html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>{{.Title}}</title>
<style>body{font:16px/1.5 system-ui,sans-serif;max-width:36rem;margin:15vh auto;padding:0 1rem;color:#1a1d21}
h1{font-size:1.4rem}a{color:#0b5cad}</style>
<h1>{{.Title}}</h1><p>{{.Text}}</p>{{if .Link}}<p><a href="{{.Link}}">Go to the console</a></p>{{end}}
`))

// page answers a page of ours.
func (h *Handler) page(w http.ResponseWriter, status int, title, text, link string) {
	header := w.Header()
	header.Set("Content-Type", "text/html; charset=utf-8")
	header.Set("Content-Security-Policy", pagePolicy)
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_ = page.Execute(w, map[string]string{"Title": title, "Text": text, "Link": link}) // the caller may have gone
}

// titles are what people read first of a refusal.
var titles = map[fault.Code]string{
	fault.Unauthenticated: "Open this from the console", fault.TokenExpired: "Open this from the console",
	fault.PermissionRevoked: "You may not open this any more", fault.Forbidden: "You may not open this",
	fault.NotFound: "There is no such app", fault.NodeUnreachable: "The app cannot be reached just now",
	fault.RateLimited: "Too many connections",
}

// refuse answers a fault: a page to people, the platform's envelope to programs.
func (h *Handler) refuse(w http.ResponseWriter, r *http.Request, err error, instance ids.ID) {
	refused := fault.From(err)
	if refused.Code == fault.Internal {
		h.Log.ErrorContext(r.Context(), "an endpoint could not be served", "error", err)
	}
	w.Header().Set("Cache-Control", "no-store")
	if !strings.Contains(r.Header.Get("Accept"), "text/html") {
		denial.Answer(r.Context(), w, err, 0)
		return
	}
	title, ok := titles[refused.Code]
	if !ok {
		title = "The app does not answer"
	}
	link := h.Console.String()
	if instance != "" {
		link = h.Console.JoinPath("workloads", string(instance)).String()
	}
	h.page(w, refused.HTTPStatus(), title, refused.Message, link)
}
