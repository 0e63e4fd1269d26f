package parts

import (
	"os"

	"github.com/gpuaas/app-platform/sdk/signing"
)

// SignReport returns the signature of a report of this kind by the runner's key in a PEM file. An error never holds any
// of the key.
func SignReport(file, kind string, report []byte) (string, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return "", err
	}
	key, err := signing.ParsePrivate(text)
	if err != nil {
		return "", err
	}
	return signing.SignReport(key, kind, report)
}
