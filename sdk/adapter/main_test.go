package adapter

import (
	"os"
	"testing"
)

// TestMain lets the test binary run as a controller of its own, for the tests that kill one.
func TestMain(m *testing.M) {
	if os.Getenv(childEnv) != "" {
		os.Exit(runChild())
	}
	os.Exit(m.Run())
}
