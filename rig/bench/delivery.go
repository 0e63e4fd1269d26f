package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/gpuaas/app-platform/authz/token"
	"github.com/gpuaas/app-platform/domain/digest"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/graph/deliveryhttp"
	"github.com/gpuaas/app-platform/rig/bench/dataset"
	"github.com/gpuaas/app-platform/rig/bench/kit"
	"github.com/gpuaas/app-platform/rig/bench/platform"
)

// The bars of delivery: a verified pull against a plain download, and how much more memory 2 GiB may take than a
// quarter of that or less.
const (
	pullBar       = 0.8
	flatFactor    = 1.1
	flatAllowance = 8 << 20
	peakEvery     = 20 * time.Millisecond
)

// puller pulls blobs as nodes do.
type puller struct {
	b        *bench
	agent    string // the agent's program
	platform *kit.Server
	source   *kit.Server
	ring     *token.Keyring
}

// pullResult is what the agent's program says of a pull, and the most memory that the server had meanwhile.
type pullResult struct {
	Bytes             int64
	Seconds           float64
	PeakBytes, server uint64
}

// measureDelivery pulls a blob through the platform onto the disk, as the node's agent does it, beside a plain download
// of the same from the same; and watches the memory of both while a large one passes.
func measureDelivery(ctx context.Context, b *bench) error {
	p, err := b.puller(ctx)
	if err != nil {
		return err
	}
	defer p.stop()
	var rates, direct kit.Pairs
	var small pullResult
	for round := range b.Plan.Rounds + 1 {
		mine, plain, err := p.both(ctx, round)
		if err != nil {
			return err
		}
		source, err := p.download(ctx, b.Plan.Blob, "http://"+p.source.Address+blobPath(b.Plan.Blob), "")
		if err != nil {
			return fmt.Errorf("plain download from the source: %w", err)
		}
		b.Log.Info("round", "of", "delivery", "platform", time.Duration(mine.Seconds*float64(time.Second)), "reference",
			plain, "source", source,
			"warm-up", round == 0)
		if round > 0 {
			rate := float64(b.Plan.Blob) / mine.Seconds
			rates.Platform, direct.Platform = append(rates.Platform, rate), append(direct.Platform, rate)
			rates.Other = append(rates.Other, float64(b.Plan.Blob)/plain.Seconds())
			direct.Other = append(direct.Other, float64(b.Plan.Blob)/source.Seconds())
		}
		small.server, small.PeakBytes = max(small.server, mine.server), max(small.PeakBytes, mine.PeakBytes)
	}
	large, err := p.pull(ctx, b.Plan.Large)
	if err != nil {
		return fmt.Errorf("pull: %w", err)
	}
	size, most := kit.Mib(uint64(b.Plan.Blob)), kit.Mib(uint64(b.Plan.Large)) // #nosec G115 -- sizes
	b.Sheet.AtLeast(fmt.Sprintf("verified pull of %s to disk", size), kit.Mib(uint64(kit.Median(rates.Platform)))+"/s",
		kit.Mib(uint64(kit.Median(rates.Other)))+"/s",
		rates.Ratio(), pullBar)
	b.Sheet.Told("that pull, beside a plain download from the source itself",
		kit.Mib(uint64(kit.Median(direct.Platform)))+"/s",
		kit.Mib(uint64(kit.Median(direct.Other)))+"/s", direct.Ratio())
	flat := func(who string, large, small uint64) {
		b.Sheet.Within(fmt.Sprintf("memory of the %s, peak resident, %s beside %s", who, most, size),
			kit.Mib(large)+" beside "+kit.Mib(small),
			"≤ 1.1 × + 8 MiB", float64(large) <= float64(small)*flatFactor+flatAllowance)
	}
	flat("server", large.server, small.server)
	flat("agent", large.PeakBytes, small.PeakBytes)
	return nil
}

// both pulls a blob and downloads it, in this order in one round and the other way round in the next: the second of the
// two finds memory that the first has just given back, which is cheaper.
func (p *puller) both(ctx context.Context, round int) (mine pullResult, plain time.Duration, err error) {
	for turn := range 2 {
		if (round+turn)%2 == 0 {
			if mine, err = p.pull(ctx, p.b.Plan.Blob); err != nil {
				return mine, plain, fmt.Errorf("pull: %w", err)
			}
		} else if plain, err = p.throughPlatform(ctx, p.b.Plan.Blob); err != nil {
			return mine, plain, fmt.Errorf("plain download: %w", err)
		}
	}
	return mine, plain, nil
}

// puller builds the agent and starts a source and a platform.
func (b *bench) puller(ctx context.Context) (p *puller, err error) {
	p = &puller{b: b}
	defer func() {
		if err != nil {
			p.stop()
		}
	}()
	if p.agent, err = filepath.Abs(filepath.Join(b.Plan.Data, "node-agent")); err != nil {
		return p, err
	}
	build := exec.CommandContext(ctx, "go", "build", "-o", p.agent, "github.com/gpuaas/app-platform/cmd/node-agent")
	if said, err := build.CombinedOutput(); err != nil {
		return p, fmt.Errorf("build the agent: %w: %s", err, said)
	}
	if p.source, err = b.Child(ctx, sourceRole, nil); err != nil {
		return p, err
	}
	if p.platform, err = b.Child(ctx, platform.Role, platform.Config{
		DSN: b.Set.DSN, Keys: b.Keys(), Issuer: kit.Issuer, Connections: b.Plan.Pool,
		Sources: []string{p.source.Address},
	}); err != nil {
		return p, err
	}
	p.ring, err = token.LoadKeyring(b.Keys(), kit.Issuer)
	return p, err
}

func (p *puller) stop() {
	for _, child := range []*kit.Server{p.platform, p.source} {
		if child != nil {
			child.Stop()
		}
	}
}

// opened is a delivery as openArtifactDelivery answers it.
type opened struct {
	TaskID    ids.ID           `json:"taskId"`
	Digest    string           `json:"digest"`
	Kind      string           `json:"kind"`
	URL       string           `json:"url"`
	Token     string           `json:"token"`
	ExpiresAt time.Time        `json:"expiresAt"`
	Parts     []map[string]any `json:"parts"`
}

// open makes a blob of a size an artifact that a task fetches, and opens its delivery; done takes it away again.
func (p *puller) open(ctx context.Context, size int64) (out opened, done func() error, err error) {
	digest, err := digestOf(size)
	if err != nil {
		return out, nil, err
	}
	fetch, err := p.b.Set.Fetch(ctx, dataset.Blob{Digest: digest, Size: size,
		Ref: "https://" + p.source.Address + blobPath(size)})
	if err != nil {
		return out, nil, err
	}
	now := time.Now()
	grant := token.Delivery{Task: fetch.Task, Node: fetch.Node, Artifact: fetch.Artifact, Credential: fetch.Credential,
		ExpiresAt: now.Add(token.MaxDeliveryLife)}
	text, err := p.ring.SignDelivery(grant, now)
	out = opened{TaskID: fetch.Task, Digest: digest, Kind: "BLOB",
		URL: "http://" + p.platform.Address + deliveryhttp.Path, Token: text,
		ExpiresAt: grant.ExpiresAt, Parts: []map[string]any{{"role": "BLOB", "digest": digest, "sizeBytes": size}}}
	return out, func() error { return p.b.Set.ForgetFetch(context.WithoutCancel(ctx), fetch) }, err
}

// throughPlatform is a plain download of what the agent pulls.
func (p *puller) throughPlatform(ctx context.Context, size int64) (took time.Duration, err error) {
	of, done, err := p.open(ctx, size)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, done()) }()
	return p.download(ctx, size, of.URL+of.Digest, of.Token)
}

// pull lets the agent's program fetch a blob of a size from the platform.
func (p *puller) pull(ctx context.Context, size int64) (out pullResult, err error) {
	of, done, err := p.open(ctx, size)
	if err != nil {
		return out, err
	}
	defer func() { err = errors.Join(err, done()) }()
	document, err := json.Marshal(of)
	if err != nil {
		return out, err
	}
	cache := filepath.Join(p.b.Plan.Data, "pull-cache")
	if err := os.RemoveAll(cache); err != nil {
		return out, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(cache)) }()
	peak := p.watch()
	command := exec.CommandContext(ctx, p.agent, "pull", "--cache-dir", cache, "--cache-bytes", fmt.Sprint(2*size))
	command.Stdin = bytes.NewReader(document)
	var complaint bytes.Buffer
	command.Stderr = &complaint
	said, err := command.Output()
	out.server = peak()
	if err != nil {
		return out, fmt.Errorf("%w: %s", err, complaint.String())
	}
	if err := json.Unmarshal(said, &out); err != nil {
		return out, err
	}
	if out.Bytes != size {
		return out, fmt.Errorf("the agent fetched %d bytes of %d", out.Bytes, size)
	}
	return out, nil
}

// watch polls the platform's memory until peak is called, which returns the maximum.
func (p *puller) watch() (peak func() uint64) {
	stop, done := make(chan struct{}), make(chan uint64)
	go func() {
		var most uint64
		tick := time.NewTicker(peakEvery)
		defer tick.Stop()
		for {
			var now uint64
			if err := p.platform.Ask("resident", nil, &now); err == nil {
				most = max(most, now)
			}
			select {
			case <-stop:
				done <- most
				return
			case <-tick.C:
			}
		}
	}()
	return func() uint64 { close(stop); return <-done }
}

// download gets bytes onto the disk and syncs them, and verifies nothing.
func (p *puller) download(ctx context.Context, size int64, from, token string) (took time.Duration, err error) {
	name := filepath.Join(p.b.Plan.Data, "plain-download")
	defer func() { err = errors.Join(err, os.Remove(name)) }()
	began := time.Now()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, from, nil)
	if err != nil {
		return 0, err
	}
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, err
	}
	defer func() { _ = response.Body.Close() }()
	file, err := os.Create(name)
	if err != nil {
		return 0, err
	}
	n, err := io.CopyBuffer(struct{ io.Writer }{file}, struct{ io.Reader }{response.Body}, make([]byte, 256<<10))
	if err := errors.Join(err, file.Sync(), file.Close()); err != nil {
		return 0, err
	}
	if n != size {
		return 0, fmt.Errorf("%d bytes of %d", n, size)
	}
	return time.Since(began), nil
}

// digestOf is the digest of the blob of a size.
func digestOf(size int64) (string, error) {
	sum := sha256.New()
	if _, err := io.CopyBuffer(struct{ io.Writer }{sum}, struct{ io.Reader }{&blob{size: size}},
		make([]byte, 1<<20)); err != nil {
		return "", err
	}
	return digest.Sum(sum), nil
}

func blobPath(size int64) string { return fmt.Sprintf("/blobs/%d", size) }

// sizeOf reads the size out of such a path.
func sizeOf(path string) (size int64, err error) {
	_, err = fmt.Sscan(strings.TrimPrefix(path, "/blobs/"), &size)
	return size, err
}
