// Command web is what the test's pods run: it answers every request with its host's name, and logs it. With the
// argument "say" it prints the words that follow, for a command in the pod.
package main

import (
	"fmt"
	"net/http"
	"os"
	"strings"
	"time"
)

func main() {
	if len(os.Args) > 1 && os.Args[1] == "say" {
		fmt.Println(strings.Join(os.Args[2:], " "), "NVIDIA_VISIBLE_DEVICES="+os.Getenv("NVIDIA_VISIBLE_DEVICES"))
		return
	}
	host, _ := os.Hostname()
	address := os.Getenv("LISTEN")
	if address == "" {
		address = ":8080"
	}
	server := http.Server{Addr: address, ReadHeaderTimeout: 5 * time.Second,
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			fmt.Println("request", r.Method, r.URL.Path)
			fmt.Fprintln(w, "hello from pod", host)
		})}
	fmt.Println("web listens on", address)
	fmt.Fprintln(os.Stderr, server.ListenAndServe())
	os.Exit(1)
}
