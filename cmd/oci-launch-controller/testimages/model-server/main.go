// Command model-server is an image with the shape of a model server: it loads weights that were fetched to its node as
// an artifact of their own, is well when it has them, and counts what it serves in metrics as Prometheus reads them.
package main

import (
	"crypto/sha256"
	"encoding/hex"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"
)

func main() {
	listen := flag.String("listen", ":8000", "address to listen on")
	weights := flag.String("weights", "/models", "folder of the weights")
	flag.Parse()
	sums, err := load(*weights)
	if err != nil {
		slog.Error("model-server has no weights", "error", err)
		os.Exit(1)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	mux.HandleFunc("GET /v1/models", func(w http.ResponseWriter, _ *http.Request) {
		for _, sum := range sums {
			fmt.Fprintln(w, sum)
		}
	})
	served := &counters{}
	mux.HandleFunc("POST /v1/completions", served.complete)
	mux.HandleFunc("GET /metrics", served.metrics)
	server := &http.Server{Addr: *listen, Handler: mux, ReadHeaderTimeout: 5 * time.Second}
	slog.Info("model-server listens", "files", len(sums), "address", *listen)
	slog.Error("model-server ends", "error", server.ListenAndServe())
	os.Exit(1)
}

// counters are what was served since the start.
type counters struct{ requests, prompt, completion atomic.Int64 }

// complete answers the words of a prompt in reverse. A word is a token.
func (c *counters) complete(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 1<<20))
	if err != nil {
		http.Error(w, "the prompt cannot be read", http.StatusBadRequest)
		return
	}
	words := strings.Fields(string(body))
	for i := range len(words) / 2 {
		words[i], words[len(words)-1-i] = words[len(words)-1-i], words[i]
	}
	c.requests.Add(1)
	c.prompt.Add(int64(len(words)))
	c.completion.Add(int64(len(words)))
	fmt.Fprintln(w, strings.Join(words, " "))
}

func (c *counters) metrics(w http.ResponseWriter, _ *http.Request) {
	fmt.Fprintf(w, "# TYPE model_requests_total counter\nmodel_requests_total %d\n# TYPE model_tokens_total counter\n"+
		"model_tokens_total{kind=\"prompt\"} %d\nmodel_tokens_total{kind=\"completion\"} %d\nmodel_up 1\n",
		c.requests.Load(), c.prompt.Load(), c.completion.Load())
}

// load reads every file of weights as a real one would, and says what it has read. No weights are a mistake.
func load(folder string) ([]string, error) {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return nil, fmt.Errorf("weights: %w", err)
	}
	var sums []string
	for _, entry := range entries {
		sum, err := sumOf(filepath.Join(folder, entry.Name()))
		if err != nil {
			return nil, fmt.Errorf("weights: %w", err)
		}
		sums = append(sums, entry.Name()+" "+sum)
	}
	if len(sums) == 0 {
		return nil, fmt.Errorf("weights: %s is empty", folder)
	}
	return sums, nil
}

func sumOf(file string) (string, error) {
	opened, err := os.Open(file)
	if err != nil {
		return "", err
	}
	defer func() { _ = opened.Close() }()
	sum := sha256.New()
	if _, err := io.Copy(sum, opened); err != nil {
		return "", err
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}
