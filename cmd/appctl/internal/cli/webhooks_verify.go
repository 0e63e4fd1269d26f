package cli

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/gpuaas/app-platform/sdk/webhook"
)

// received is a delivery that somebody kept.
type received struct {
	id, timestamp, signature, secretFile string
	anyTime                              bool
}

func (t *tool) webhooksVerify() *cobra.Command {
	var r received
	verify := t.command("verify BODY", "Check the signature of a delivery whose body is in a file (- for the standard input)", cobra.ExactArgs(1),
		func(_ context.Context, args []string) error {
			body, err := t.bodyOf(args[0])
			if err != nil {
				return err
			}
			return t.verifyDelivery(&r, body)
		})
	verify.Example = "  appctl webhooks verify body.json --id whd_… --timestamp 1700000000 --signature v1,… --secret-file secret"
	set := verify.Flags()
	set.StringVar(&r.id, "id", "", "the header "+webhook.HeaderID)
	set.StringVar(&r.timestamp, "timestamp", "", "the header "+webhook.HeaderTimestamp)
	set.StringVar(&r.signature, "signature", "", "the header "+webhook.HeaderSignature)
	set.StringVar(&r.secretFile, "secret-file", "", "file with the signing secret, whsec_…")
	set.BoolVar(&r.anyTime, "any-time", false, "take a delivery that is older than five minutes, as a kept one is")
	for _, name := range []string{"id", "timestamp", "signature", "secret-file"} {
		_ = verify.MarkFlagRequired(name)
	}
	return verify
}

// bodyOf reads a body as it was received, at most as long as one can be.
func (t *tool) bodyOf(name string) ([]byte, error) {
	from := t.Env.Stdin
	if name != "-" {
		file, err := os.Open(name) // #nosec G304 -- the caller names it
		if err != nil {
			return nil, err
		}
		defer func() { _ = file.Close() }()
		from = file
	}
	body, err := io.ReadAll(io.LimitReader(from, webhook.MaxBody+1))
	if err == nil && len(body) > webhook.MaxBody {
		err = fmt.Errorf("no delivery is longer than %d bytes", webhook.MaxBody)
	}
	return body, err
}

func (t *tool) verifyDelivery(r *received, body []byte) error {
	secret, err := os.ReadFile(r.secretFile) // #nosec G304 -- the caller names it
	if err != nil {
		return err
	}
	header, now := http.Header{}, time.Now()
	header.Set(webhook.HeaderID, r.id)
	header.Set(webhook.HeaderTimestamp, r.timestamp)
	header.Set(webhook.HeaderSignature, r.signature)
	if r.anyTime {
		var seconds int64
		if _, err := fmt.Sscan(r.timestamp, &seconds); err == nil {
			now = time.Unix(seconds, 0)
		}
	}
	if err := webhook.Verify(string(bytes.TrimSpace(secret)), header, body, now); err != nil {
		return err
	}
	return t.showOne(map[string]any{"id": r.id, "verified": true}, r.id, "Signature", "holds")
}
