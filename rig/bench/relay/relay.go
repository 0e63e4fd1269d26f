// Package relay measures the way from a person to what runs in a member, beside hand-written relays: person, server,
// agent, app, over TLS but for the last stretch. The agent is played, without a member's network namespace around its
// port; the tunnel and the server are the product's.
package relay

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/gpuaas/app-platform/rig/bench/dataset"
	"github.com/gpuaas/app-platform/rig/bench/kit"
	"github.com/gpuaas/app-platform/rig/bench/platform"
	"github.com/gpuaas/app-platform/sdk/tunnel"
)

// Subjects are what this package measures.
var Subjects = []kit.Subject{{Name: "relay", Measure: measure}}

// The bars, and how much is sent.
const (
	rateBar   = 0.7
	slowerBar = time.Millisecond // at the median, of a round trip
	// of a stream beside ten that no one reads: there are more streams on the same two cores
	besideBar  = 0.5
	streamBar  = 160 << 10 // bytes of the server's memory for an open stream
	streams    = 1_000     // as many as a tenant may have
	trips      = 2_000
	tripBytes  = 64
	slowReader = 10
)

// relay is one run: two ways to one source.
type relay struct {
	*kit.Bench
	made    dataset.Reach
	server  *kit.Server
	hop     *kit.Server // the first of the hand-written ones
	client  *tls.Config
	started []*kit.Server
}

// side opens a connection to the source.
type side func(context.Context) (io.ReadWriteCloser, error)

func measure(ctx context.Context, b *kit.Bench) (err error) {
	r := &relay{Bench: b}
	defer func() {
		for _, child := range slices.Backward(r.started) {
			child.Stop()
		}
		err = errors.Join(err, b.Set.ForgetReach(context.WithoutCancel(ctx), r.made))
	}()
	if err := r.start(ctx); err != nil {
		return err
	}
	// All that a tenant may have open are opened first: a stream that was closed gives its place back some time after.
	for _, one := range []func(context.Context) error{r.many, r.rates, r.trips, r.slow} {
		if err := one(ctx); err != nil {
			return err
		}
	}
	return nil
}

// start makes both ways.
func (r *relay) start(ctx context.Context) error {
	certificate, key, err := certify(r.Plan.Data)
	if err != nil {
		return err
	}
	by := way{Certificate: certificate, Key: key}
	if r.client, err = by.client(); err != nil {
		return err
	}
	if r.made, err = r.Set.Reach(ctx); err != nil {
		return err
	}
	source, err := r.child(r.Child(ctx, SourceRole, nil))
	if err != nil {
		return err
	}
	if r.server, err = r.child(r.Child(ctx, platform.Role, platform.Config{DSN: r.Set.DSN, Keys: r.Keys(),
		Issuer: kit.Issuer, Connections: r.Plan.Pool, Certificate: certificate, Key: key})); err != nil {
		return err
	}
	mine := way{Certificate: certificate, To: r.server.Address, Token: r.made.Agent}
	if _, err := r.child(r.Child(ctx, AgentRole, agentConfig{mine, source.Address})); err != nil {
		return err
	}
	last := by
	last.To = source.Address
	second, err := r.child(r.Child(ctx, HopRole, last))
	if err != nil {
		return err
	}
	first := by
	first.To, first.TLS = second.Address, true
	r.hop, err = r.child(r.Child(ctx, HopRole, first))
	return err
}

// child keeps a child to stop it.
func (r *relay) child(child *kit.Server, err error) (*kit.Server, error) {
	if err == nil {
		r.started = append(r.started, child)
	}
	return child, err
}

// platform connects through the product.
func (r *relay) platform(ctx context.Context) (io.ReadWriteCloser, error) {
	query := url.Values{"instance": {string(r.made.Instance)}, "endpoint": {dataset.Endpoint},
		"member": {string(r.made.Member)}}
	return tunnel.Dial(ctx, "https://"+r.server.Address+tunnel.ConnectPath+"?"+query.Encode(), r.made.Caller,
		&http.Transport{TLSClientConfig: r.client.Clone()})
}

// byHand connects through the hand-written relays.
func (r *relay) byHand(ctx context.Context) (io.ReadWriteCloser, error) {
	return (&tls.Dialer{Config: r.client}).DialContext(ctx, "tcp4", r.hop.Address)
}

// rates compares the bytes a second of one stream, and of eight at once.
func (r *relay) rates(ctx context.Context) error {
	for _, at := range []int{1, 8} {
		var pairs kit.Pairs
		size := r.Plan.Blob / int64(at)
		for round := range r.Plan.Rounds + 1 {
			mine, err := together(ctx, r.platform, at, size)
			if err != nil {
				return fmt.Errorf("through the platform: %w", err)
			}
			other, err := together(ctx, r.byHand, at, size)
			if err != nil {
				return fmt.Errorf("by hand: %w", err)
			}
			if round > 0 { // the first warms up
				pairs.Platform, pairs.Other = append(pairs.Platform, mine), append(pairs.Other, other)
			}
		}
		r.Sheet.AtLeast(fmt.Sprintf("bytes through the platform to a member, streams at once: %d", at),
			rate(kit.Median(pairs.Platform)), rate(kit.Median(pairs.Other)), pairs.Ratio(), rateBar)
	}
	return nil
}

func rate(bytes float64) string { return kit.Mib(uint64(bytes)) + "/s" }

// together reads so many bytes on each of so many connections, and answers bytes a second of all.
func together(ctx context.Context, by side, at int, size int64) (float64, error) {
	began := time.Now()
	ended := make(chan error, at)
	for range at {
		go func() {
			conn, err := ask(ctx, by, fmt.Sprint(size))
			if err == nil {
				_, err = io.CopyN(io.Discard, conn, size)
				_ = conn.Close()
			}
			ended <- err
		}()
	}
	var err error
	for range at {
		err = errors.Join(err, <-ended)
	}
	return float64(size) * float64(at) / time.Since(began).Seconds(), err
}

// ask connects and sends the source the command.
func ask(ctx context.Context, by side, what string) (io.ReadWriteCloser, error) {
	conn, err := by(ctx)
	if err != nil {
		return nil, err
	}
	if _, err := io.WriteString(conn, what+"\n"); err != nil {
		_ = conn.Close()
		return nil, err
	}
	return conn, nil
}

// trips compares how long some bytes take there and back.
func (r *relay) trips(ctx context.Context) error {
	var mine, other []time.Duration
	for range r.Plan.Rounds {
		for _, one := range []struct {
			by   side
			into *[]time.Duration
		}{{r.platform, &mine}, {r.byHand, &other}} {
			took, err := bounce(ctx, one.by)
			if err != nil {
				return err
			}
			*one.into = append(*one.into, took)
		}
	}
	platform, hand := kit.Median(mine), kit.Median(other)
	r.Sheet.Within("a round trip to a member, p50, beside by hand", kit.Millis(platform)+" beside "+kit.Millis(hand),
		"≤ 1 ms more", platform-hand <= slowerBar)
	return nil
}

// bounce returns the median of trips on one connection.
func bounce(ctx context.Context, by side) (time.Duration, error) {
	conn, err := ask(ctx, by, "echo")
	if err != nil {
		return 0, err
	}
	defer func() { _ = conn.Close() }()
	took, bytes := make([]time.Duration, trips), make([]byte, tripBytes)
	for i := range took {
		began := time.Now()
		if _, err := conn.Write(bytes); err != nil {
			return 0, err
		}
		if _, err := io.ReadFull(conn, bytes); err != nil {
			return 0, err
		}
		took[i] = time.Since(began)
	}
	return kit.Median(took), nil
}

// slow compares a stream beside ten that no client reads with one that is alone.
func (r *relay) slow(ctx context.Context) error {
	size := r.Plan.Blob / 4
	alone, err := together(ctx, r.platform, 1, size)
	if err != nil {
		return err
	}
	for range slowReader {
		conn, err := ask(ctx, r.platform, fmt.Sprint(r.Plan.Blob))
		if err != nil {
			return err
		}
		defer func() { _ = conn.Close() }()
	}
	beside, err := together(ctx, r.platform, 1, size)
	if err != nil {
		return err
	}
	r.Sheet.AtLeast(fmt.Sprintf("bytes of a stream beside %d that no one reads, and alone", slowReader), rate(beside),
		rate(alone), beside/alone, besideBar)
	return nil
}

// many watches the server's memory while hundreds of streams are open, each of which has passed bytes.
func (r *relay) many(ctx context.Context) error {
	var before, after uint64
	if err := r.server.Ask("memory", nil, &before); err != nil {
		return err
	}
	for range streams {
		conn, err := ask(ctx, r.platform, "echo")
		if err != nil {
			return err
		}
		defer func() { _ = conn.Close() }()
		if _, err := conn.Write(make([]byte, tripBytes)); err != nil {
			return err
		}
		if _, err := io.ReadFull(conn, make([]byte, tripBytes)); err != nil {
			return err
		}
	}
	if err := r.server.Ask("memory", nil, &after); err != nil {
		return err
	}
	each := (float64(after) - float64(before)) / streams
	r.Sheet.Within(fmt.Sprintf("memory of the server for each of %d open streams", streams), kit.Kib(each), "≤ 160 KiB",
		each <= streamBar)
	return nil
}
