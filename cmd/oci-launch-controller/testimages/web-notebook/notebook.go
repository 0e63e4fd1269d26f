package main

import (
	"embed"
	"fmt"
	"io/fs"
	"log/slog"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/gorilla/websocket"
)

// page is what browsers see.
//
//go:embed page
var page embed.FS

const (
	// pagePolicy is the content policy of the page.
	pagePolicy = "default-src 'self'; img-src data:; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"
	// maxMessage bounds a cell, in bytes.
	maxMessage = 8 << 10
	// sendFor bounds how long an answer may take to send.
	sendFor = 10 * time.Second
)

// notebook adds the page, and the socket that runs its cells.
func notebook(mux *http.ServeMux) {
	files, _ := fs.Sub(page, "page") // which is embedded
	serve := http.FileServerFS(files)
	for _, name := range []string{"notebook.css", "notebook.js"} {
		mux.Handle("GET /"+name, serve)
	}
	mux.HandleFunc("GET /cells", cells)
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, r *http.Request) {
		if !strings.Contains(r.Header.Get("Accept"), "text/html") {
			fmt.Fprintf(w, "%s from %s, build %s\n", os.Getenv("GREETING"), os.Getenv("GPUAAS_MEMBER_ID"), build)
			return
		}
		w.Header().Set("Content-Security-Policy", pagePolicy)
		serve.ServeHTTP(w, r)
	})
}

// asked is a cell to run, and said is what the page is told.
type (
	asked struct {
		Cell int    `json:"cell"`
		Code string `json:"code"`
	}
	said struct {
		Event    string `json:"event"`
		Greeting string `json:"greeting,omitempty"`
		Caller   string `json:"caller,omitempty"`
		Cell     int    `json:"cell,omitempty"`
		Out      string `json:"out,omitempty"`
		Error    string `json:"error,omitempty"`
	}
)

// cells runs cells until the page goes. What one defines is there in the next.
func cells(w http.ResponseWriter, r *http.Request) {
	greeting := fmt.Sprintf("%s from %s", os.Getenv("GREETING"), os.Getenv("GPUAAS_MEMBER_ID"))
	caller := callerOf(r, time.Now())
	socket, err := (&websocket.Upgrader{HandshakeTimeout: sendFor}).Upgrade(w, r, nil) // of this origin alone
	if err != nil {
		return // it was answered
	}
	defer func() { _ = socket.Close() }()
	slog.Info("a notebook is open", "caller", caller)
	socket.SetReadLimit(maxMessage)
	notes := newNotes(os.Environ())
	for answer := (said{Event: "hello", Greeting: greeting, Caller: caller}); ; {
		_ = socket.SetWriteDeadline(time.Now().Add(sendFor))
		var next asked
		if socket.WriteJSON(answer) != nil || socket.ReadJSON(&next) != nil {
			return
		}
		answer = said{Event: "ran", Cell: next.Cell}
		if answer.Out, err = notes.run(next.Code); err != nil {
			answer.Error = err.Error()
		}
	}
}
