// Package exectest writes programs for tests.
package exectest

import (
	"os"
	"syscall"
	"testing"
)

// Write writes an executable file that may be run at once. A test beside the caller may start a program while the file is
// open for writing; that one's process holds the file open for a moment, and the kernel runs nothing that somebody may
// still write (ETXTBSY). So nothing is started by this process while the file is open.
func Write(t testing.TB, path, text string) {
	t.Helper()
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	if err := os.WriteFile(path, []byte(text), 0o700); err != nil { // #nosec G306 -- it is run
		t.Fatal(err)
	}
}
