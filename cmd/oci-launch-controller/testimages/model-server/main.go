// Command model-server is an image with the shape of a model server: it loads weights that were fetched to its node as an
// artifact of their own, and is well when it has them.
package main

import (
	"crypto/sha256"
	"encoding/hex"
	"flag"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"path/filepath"
	"time"
)

func main() {
	log.SetFlags(0)
	listen := flag.String("listen", ":8000", "address to listen on")
	weights := flag.String("weights", "/models", "folder of the weights")
	flag.Parse()
	sums, err := load(*weights)
	if err != nil {
		log.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	mux.HandleFunc("GET /v1/models", func(w http.ResponseWriter, _ *http.Request) {
		for _, sum := range sums {
			fmt.Fprintln(w, sum)
		}
	})
	server := &http.Server{Addr: *listen, Handler: mux, ReadHeaderTimeout: 5 * time.Second}
	log.Printf("model-server has %d files of weights and listens on %s", len(sums), *listen)
	log.Fatal(server.ListenAndServe())
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
