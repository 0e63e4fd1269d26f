package login

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/gpuaas/app-platform/cmd/appctl/internal/command"
	"github.com/gpuaas/app-platform/sdk/client"
	"github.com/gpuaas/app-platform/sdk/logincode"
)

// browserPatience bounds a login in the browser; the server's own bound is as long.
const browserPatience = 10 * time.Minute

// OpenBrowser shows an address to the person at this machine; it does not wait for the browser.
func OpenBrowser(address string) error {
	program := "xdg-open"
	if runtime.GOOS == "darwin" {
		program = "open"
	}
	return exec.Command(program, address).Start()
}

// A returned login is what the browser brought back.
type returned struct{ code, problem string }

// browserLogin logs in at the platform's identity provider in a browser of this machine. The code that comes back to
// a port of ours is good only with the verifier, which never leaves this process before it is redeemed (RFC 8252).
func browserLogin(ctx context.Context, t *command.Tool, server string) (*client.Session, error) {
	c, err := t.NewClient(server, "")
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, browserPatience)
	defer cancel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("wait for the browser: %w", err)
	}
	back := make(chan returned, 1)
	waiting := &http.Server{Handler: awaitBrowser(back), ReadHeaderTimeout: 5 * time.Second, MaxHeaderBytes: 16 << 10}
	go func() { _ = waiting.Serve(listener) }()
	defer func() { _ = waiting.Close() }()

	var raw [32]byte
	_, _ = rand.Read(raw[:]) // never fails: crypto/rand ends the program instead
	verifier := base64.RawURLEncoding.EncodeToString(raw[:])
	sum := sha256.Sum256([]byte(verifier))
	challenge := base64.RawURLEncoding.EncodeToString(sum[:])
	query := url.Values{"cli": {strconv.Itoa(listener.Addr().(*net.TCPAddr).Port)}, "challenge": {challenge}}
	address := strings.TrimRight(server, "/") + "/auth/oidc/start?" + query.Encode()
	fmt.Fprintf(t.Env.Stderr,
		"log in at this address, on this machine:\n%s\ncontinue there only if the page shows this code: %s\n",
		address, logincode.Of(challenge))
	if t.Env.Browse != nil {
		_ = t.Env.Browse(address) // the address is on the screen
	}
	select {
	case <-ctx.Done():
		return nil, fmt.Errorf("no one logged in: %w", ctx.Err())
	case got := <-back:
		if got.problem != "" {
			return nil, &client.Error{Code: got.problem, Message: "the login was refused"}
		}
		return c.LoginBound(ctx, got.code, verifier)
	}
}

// awaitBrowser returns a handler that takes the first answer that a browser brings, and shows the person that it did.
func awaitBrowser(back chan<- returned) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		query := r.URL.Query()
		got := returned{code: query.Get("code"), problem: query.Get("error")}
		if r.URL.Path != "/" || (got == returned{}) {
			http.Error(w, "page not found", http.StatusNotFound)
			return
		}
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		w.Header().Set("Cache-Control", "no-store")
		select {
		case back <- got:
			_, _ = w.Write([]byte("You can close this page and go back to the command line.\n"))
		default:
			http.Error(w, "the login has ended", http.StatusGone)
		}
	})
}
