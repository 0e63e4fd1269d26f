// Package panics turns a panic of background work into an error, so that one bad row does not end the process that met
// it, and then each process that takes the work over.
package panics

import (
	"errors"
	"log/slog"
	"runtime/debug"
)

// ErrPanicked is the error of work that panicked. The panic and its stack are in the log alone: they may hold a row's
// content.
var ErrPanicked = errors.New("the work panicked; its stack is in the log")

// Caught runs work and returns its error; ErrPanicked when it panicked.
func Caught(log *slog.Logger, what string, work func() error) (err error) {
	defer func() {
		if thrown := recover(); thrown != nil {
			log.Error("background work panicked", "what", what, "panic", thrown, "stack", string(debug.Stack()))
			err = ErrPanicked
		}
	}()
	return work()
}
