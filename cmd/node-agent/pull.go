package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"github.com/gpuaas/app-platform/cmd/node-agent/internal/agent"
	"github.com/gpuaas/app-platform/cmd/node-agent/internal/content"
	"github.com/gpuaas/app-platform/cmd/node-agent/internal/fetch"
	"github.com/gpuaas/app-platform/sdk/client/generated/gql"
)

// maxDelivery bounds the delivery that pull reads, in bytes.
const maxDelivery = 4 << 20

// pulled is the report of pull.
type pulled struct {
	// Bytes came over the network, in Seconds, until the last of them was verified and on the disk.
	Bytes   int64   `json:"bytes"`
	Seconds float64 `json:"seconds"`
	// PeakBytes is the most memory that this process had, as the system counts it.
	PeakBytes int64 `json:"peakBytes"`
}

// pullCommand fetches one artifact as a task would, without a task, to show how fast a node gets it, or why it does
// not.
func pullCommand() *cobra.Command {
	var dir string
	limit := int64(agent.DefaultCacheBytes)
	cmd := &cobra.Command{
		Use: "pull", Short: "Fetch an artifact into a cache, to measure it", Args: cobra.NoArgs, Hidden: true,
		Long: "Reads an answer of openArtifactDelivery, as JSON, from standard input, fetches the artifact into a " +
			"cache of its own, and prints how much came in which time.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			done, err := pull(cmd.Context(), cmd.InOrStdin(), dir, limit)
			if err != nil {
				return err
			}
			return json.NewEncoder(cmd.OutOrStdout()).Encode(done)
		},
	}
	cmd.Flags().StringVar(&dir, "cache-dir", "", "directory of the cache; no agent may be using it")
	cmd.Flags().Int64Var(&limit, "cache-bytes", limit, "size limit of the cache, in bytes")
	_ = cmd.MarkFlagRequired("cache-dir")
	return cmd
}

func pull(ctx context.Context, from io.Reader, dir string, limit int64) (pulled, error) {
	var delivery gql.ArtifactDelivery
	if err := json.NewDecoder(io.LimitReader(from, maxDelivery)).Decode(&delivery); err != nil {
		return pulled{}, fmt.Errorf("read the delivery: %w", err)
	}
	cache, err := content.Open(dir, limit)
	if err != nil {
		return pulled{}, err
	}
	open := func(context.Context, string) (gql.ArtifactDelivery, error) { return delivery, nil }
	fetcher := fetch.New(cache, open, nil, slog.New(slog.NewTextHandler(os.Stderr, nil)))
	began := time.Now()
	artifact, err := fetcher.Fetch(ctx, fetch.Wanted{TaskID: delivery.TaskId, Digest: delivery.Digest,
		Progress: func(int64, int64) {}})
	if err != nil {
		return pulled{}, err
	}
	defer artifact.Release()
	done := pulled{Bytes: artifact.Fetched(), Seconds: time.Since(began).Seconds()}
	var used unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &used); err != nil {
		return pulled{}, fmt.Errorf("read the memory used: %w", err)
	}
	done.PeakBytes = used.Maxrss << 10 // told in KiB
	return done, nil
}
