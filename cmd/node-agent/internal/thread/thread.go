// Package thread runs code on threads of the operating system that may change their namespaces.
package thread

import (
	"runtime"

	"golang.org/x/sys/unix"
)

// Apart runs do on a thread of its own, which ends with it, and with it whatever namespaces do has entered. It is never
// the main thread: what that one has is what the process is seen to have.
func Apart(do func() error) error {
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		if unix.Gettid() == unix.Getpid() {
			done <- Apart(do) // this goroutine keeps the main thread meanwhile, so that another has another
			runtime.UnlockOSThread()
			return
		}
		done <- do() // never unlocked: the thread ends with the goroutine
	}()
	return <-done
}
