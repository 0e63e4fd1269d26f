// Command web-notebook is what the image of the reference app runs: a web server with everything that a test of a
// launched container needs. It takes the place of a notebook, and needs nothing but itself.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"os/signal"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// maxEat is the most memory that one request takes, in MiB.
const maxEat = 4096

// build distinguishes images with otherwise the same bytes; it is set when the program is linked.
var build = "1"

func main() {
	listen := flag.String("listen", ":8888", "address to listen on")
	work := flag.String("work", "", "folder that keeps the notebook; empty: it is not kept")
	flag.Parse()
	slog.Info("web-notebook listens", "build", build, "address", *listen)
	if err := serve(*listen, book{*work}); err != nil {
		slog.Error("web-notebook ends", "error", err)
		os.Exit(1)
	}
}

// serve answers until the container receives SIGTERM or an interrupt.
func serve(listen string, b book) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	server := &http.Server{Addr: listen, Handler: routes(b), ReadHeaderTimeout: 5 * time.Second}
	context.AfterFunc(ctx, func() {
		slog.Info("web-notebook stops")
		bounded, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		_ = server.Shutdown(bounded)
	})
	if err := server.ListenAndServe(); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

func routes(b book) http.Handler {
	mux := http.NewServeMux()
	b.notebook(mux)
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	mux.HandleFunc("GET /env", func(w http.ResponseWriter, _ *http.Request) {
		all := os.Environ()
		slices.Sort(all)
		fmt.Fprintln(w, strings.Join(all, "\n"))
	})
	// It ends as a program with a mistake does.
	mux.HandleFunc("POST /crash", func(http.ResponseWriter, *http.Request) {
		slog.Error("crashing")
		os.Exit(3)
	})
	mux.HandleFunc("POST /eat", eat)
	return mux
}

// eat takes memory and holds it while it answers, so that a limit is seen.
func eat(w http.ResponseWriter, r *http.Request) {
	mib, err := strconv.Atoi(r.URL.Query().Get("mib"))
	if err != nil || mib < 1 || mib > maxEat {
		http.Error(w, fmt.Sprintf("mib must be 1 to %d", maxEat), http.StatusBadRequest)
		return
	}
	held := make([]byte, mib<<20)
	for i := 0; i < len(held); i += 4096 {
		held[i] = 1
	}
	fmt.Fprintf(w, "%d MiB\n", mib)
	runtime.KeepAlive(held)
}
