// Command model-server is an image with the shape of a model server: it reads weights from a folder, a volume's or an
// artifact's, answers completions that follow from them, distinguishes its callers by what the platform has signed, and
// counts what it serves in metrics as Prometheus reads them.
package main

import (
	"flag"
	"log/slog"
	"net/http"
	"os"
	"time"

	"github.com/gpuaas/app-platform/cmd/oci-launch-controller/testimages/caller"
)

func main() {
	listen := flag.String("listen", ":8000", "address to listen on")
	weights := flag.String("weights", "/models", "folder of the weights")
	var p published
	flag.BoolVar(&p.manifest, "print-manifest", false, "print the app's manifest and exit")
	flag.StringVar(&p.artifact, "artifact", "", "write the files of an artifact of the manifest into a folder and exit")
	flag.StringVar(&p.into, "into", "", "the folder for --artifact; it must not have those files yet")
	flag.Parse()
	if ok, err := p.write(os.Stdout); ok {
		if err != nil {
			slog.Error("model-server has nothing to publish", "error", err)
			os.Exit(1)
		}
		return
	}
	models, err := load(*weights)
	if err != nil {
		slog.Error("model-server has no weights", "error", err)
		os.Exit(1)
	}
	s := &service{models: models, served: make(map[string]*count)}
	if keys := os.Getenv("PLATFORM_KEYS"); keys == "" {
		slog.Warn("callers are not identified: the setting PLATFORM_KEYS is empty")
	} else if s.callers, err = caller.NewVerifier(keys, os.Getenv("GPUAAS_INSTANCE_ID")); err != nil {
		slog.Error("model-server cannot identify callers", "error", err)
		os.Exit(1)
	}
	server := &http.Server{Addr: *listen, Handler: s.routes(), ReadHeaderTimeout: 5 * time.Second}
	slog.Info("model-server listens", "models", len(models), "address", *listen)
	slog.Error("model-server ends", "error", server.ListenAndServe())
	os.Exit(1)
}
