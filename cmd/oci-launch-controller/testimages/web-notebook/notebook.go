package main

import (
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/gorilla/websocket"

	"github.com/gpuaas/app-platform/cmd/oci-launch-controller/testimages/caller"
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

// notebook adds the page, the socket that runs its cells, and the notes for programs.
func (b book) notebook(mux *http.ServeMux) {
	files, _ := fs.Sub(page, "page") // which is embedded
	serve := http.FileServerFS(files)
	for _, name := range []string{"notebook.css", "notebook.js"} {
		mux.Handle("GET /"+name, serve)
	}
	mux.HandleFunc("GET /cells", b.cells)
	mux.HandleFunc("GET /notes", b.notes)
	mux.HandleFunc("POST /notes", b.add)
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, r *http.Request) {
		if !strings.Contains(r.Header.Get("Accept"), "text/html") {
			fmt.Fprintf(w, "%s from %s, build %s\n", os.Getenv("GREETING"), os.Getenv("GPUAAS_MEMBER_ID"), build)
			return
		}
		w.Header().Set("Content-Security-Policy", pagePolicy)
		serve.ServeHTTP(w, r)
	})
}

// asked is a cell to run, ran is a cell that has run, and said is a message to the page.
type (
	asked struct {
		Cell int    `json:"cell"`
		Code string `json:"code"`
	}
	ran struct {
		Cell  int    `json:"cell,omitempty"`
		Code  string `json:"code,omitempty"`
		Out   string `json:"out,omitempty"`
		Error string `json:"error,omitempty"`
	}
	said struct {
		Event    string `json:"event"`
		Greeting string `json:"greeting,omitempty"`
		Caller   string `json:"caller,omitempty"`
		Cells    []ran  `json:"cells,omitempty"`
		ran
	}
)

// cells runs cells until the page goes. What one defines is there in the next, and all are kept.
func (b book) cells(w http.ResponseWriter, r *http.Request) {
	greeting := fmt.Sprintf("%s from %s", os.Getenv("GREETING"), os.Getenv("GPUAAS_MEMBER_ID"))
	who := callerOf(r, time.Now())
	socket, err := (&websocket.Upgrader{HandshakeTimeout: sendFor}).Upgrade(w, r, nil) // of this origin alone
	if err != nil {
		return // it was answered
	}
	defer func() { _ = socket.Close() }()
	slog.Info("a notebook is open", "caller", who)
	socket.SetReadLimit(maxMessage)
	notes := newNotes(os.Environ())
	earlier, err := b.again(notes)
	if err != nil {
		slog.Error("the notebook cannot be read", "error", err)
		greeting += ", but the notebook cannot be read"
	}
	for answer := (said{Event: "hello", Greeting: greeting, Caller: who, Cells: earlier}); ; {
		_ = socket.SetWriteDeadline(time.Now().Add(sendFor))
		var next asked
		if socket.WriteJSON(answer) != nil || socket.ReadJSON(&next) != nil {
			return
		}
		answer = said{Event: "ran", ran: notes.cell(next.Cell, next.Code)}
		if _, err := b.put(max(next.Cell, 1), next.Code); err != nil {
			answer.Error = unkept(err)
		}
	}
}

// again runs the cells that are kept, and returns what they make.
func (b book) again(notes *notes) (all []ran, err error) {
	found, err := b.read()
	for i, code := range found.Cells {
		one := notes.cell(i+1, code)
		one.Code = code
		all = append(all, one)
	}
	return all, err
}

// cell runs one cell.
func (n *notes) cell(number int, code string) ran {
	out, err := n.run(code)
	if err != nil {
		return ran{Cell: number, Error: err.Error()}
	}
	return ran{Cell: number, Out: out}
}

// unkept says that a cell was not kept, and logs why.
func unkept(err error) string {
	slog.Error("a cell was not kept", "error", err)
	return "this cell was not kept: " + err.Error()
}

// notes answers programs the cells that are kept, and what they make.
func (b book) notes(w http.ResponseWriter, _ *http.Request) {
	all, err := b.again(newNotes(os.Environ()))
	if err != nil {
		http.Error(w, "the notebook cannot be read: "+err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string]any{"cells": append([]ran{}, all...)})
}

// add runs a program's cell after all that are kept, and keeps it as the last.
func (b book) add(w http.ResponseWriter, r *http.Request) {
	code, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxMessage))
	if err != nil {
		http.Error(w, fmt.Sprintf("a cell has at most %d bytes", maxMessage), http.StatusRequestEntityTooLarge)
		return
	}
	notes := newNotes(os.Environ())
	_, err = b.again(notes)
	if err == nil && b.folder == "" {
		err = errors.New("this notebook has no folder")
	}
	one := notes.cell(0, string(code))
	if err == nil {
		one.Cell, err = b.put(0, string(code))
	}
	if err != nil {
		http.Error(w, unkept(err), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(one)
}

// callerOf says who calls, and whether that is proved: by the platform's keys, which the setting PLATFORM_KEYS holds.
func callerOf(r *http.Request, now time.Time) string {
	const nobody = "You are not identified: this page was not opened through the platform."
	keys := os.Getenv("PLATFORM_KEYS")
	switch {
	case r.Header.Get(caller.Header) == "":
		return nobody
	case keys == "":
		return "Opened through the platform. Your identity is not verified: the setting PLATFORM_KEYS is empty."
	}
	verifier, err := caller.NewVerifier(keys, os.Getenv("GPUAAS_INSTANCE_ID"))
	if err != nil {
		return "Your identity is not verified: " + err.Error() + "."
	}
	who, err := verifier.Of(r, now)
	if err != nil {
		return "Your identity is not verified: " + err.Error() + "."
	}
	return "You are " + who.Name + ", as the platform has signed."
}
