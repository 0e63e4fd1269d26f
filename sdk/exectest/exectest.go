// Package exectest writes programs for tests.
package exectest

import (
	"os"
	"syscall"
	"testing"
)

// Write writes an executable file that may be run at once. A parallel test may start a program while the file is open
// for writing; the new process keeps the file open for a moment, and the kernel refuses to run a file that is open for
// writing (ETXTBSY). So Write keeps this process from starting programs while the file is open.
func Write(t testing.TB, path, text string) {
	t.Helper()
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	if err := os.WriteFile(path, []byte(text), 0o700); err != nil { // #nosec G306 -- it is run
		t.Fatal(err)
	}
}
