// Command model-server is an image with the shape of a model server: it loads weights that were fetched to its node as
// an artifact of their own, and is well when it has them.
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
	server := &http.Server{Addr: *listen, Handler: mux, ReadHeaderTimeout: 5 * time.Second}
	slog.Info("model-server listens", "files", len(sums), "address", *listen)
	slog.Error("model-server ends", "error", server.ListenAndServe())
	os.Exit(1)
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
