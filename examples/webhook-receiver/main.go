// Command webhook-receiver takes the platform's webhooks: it verifies each, does its work once however often a delivery
// comes, and answers before it does anything slow.
//
//	WEBHOOK_SECRET=whsec_… webhook-receiver 127.0.0.1:9000
package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/gpuaas/app-platform/sdk/webhook"
)

// remembered bounds the ids of deliveries that are kept; a receiver with a database keeps them there, in the
// transaction of its own work.
const remembered = 100_000

func main() {
	if len(os.Args) != 2 || os.Getenv("WEBHOOK_SECRET") == "" {
		fmt.Fprintln(os.Stderr, "usage: WEBHOOK_SECRET=whsec_… webhook-receiver ADDRESS")
		os.Exit(2)
	}
	server := &http.Server{Addr: os.Args[1], Handler: newReceiver(os.Getenv("WEBHOOK_SECRET"), os.Stdout),
		ReadTimeout: 10 * time.Second}
	if err := server.ListenAndServe(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// receiver verifies deliveries and writes a line for each event.
type receiver struct {
	secret string
	out    io.Writer

	mu   sync.Mutex
	seen map[string]bool
}

func newReceiver(secret string, out io.Writer) *receiver {
	return &receiver{secret: secret, out: out, seen: make(map[string]bool)}
}

// ServeHTTP takes a delivery. An answer 2xx says that it was taken; anything else makes the platform send it again.
func (r *receiver) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, request.Body, webhook.MaxBody))
	if err != nil {
		http.Error(w, "too long", http.StatusRequestEntityTooLarge)
		return
	}
	if err := webhook.Verify(r.secret, request.Header, body, time.Now()); err != nil {
		http.Error(w, err.Error(), http.StatusUnauthorized)
		return
	}
	var event webhook.Event
	if err := json.Unmarshal(body, &event); err != nil {
		http.Error(w, "not an event", http.StatusBadRequest)
		return
	}
	if err := r.once(request.Header.Get(webhook.HeaderID), &event); err != nil {
		http.Error(w, "not now", http.StatusServiceUnavailable)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

// once does the work of a delivery that did not come before.
func (r *receiver) once(id string, event *webhook.Event) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.seen[id] {
		return nil
	}
	_, err := fmt.Fprintf(r.out, "%s %s #%d: %s\n", event.Type, event.Data.AppInstanceID, event.Data.Seq,
		event.Data.Message)
	if err != nil {
		return err // it was not done: let it come again
	}
	if len(r.seen) >= remembered {
		clear(r.seen)
	}
	r.seen[id] = true
	return nil
}
