package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/rig/bench/dataset"
	"github.com/gpuaas/app-platform/rig/bench/kit"
	"github.com/gpuaas/app-platform/rig/bench/load"
	"github.com/gpuaas/app-platform/rig/bench/platform"
	"github.com/gpuaas/app-platform/rig/bench/process"
	"github.com/gpuaas/app-platform/rig/bench/reference"
)

// The bars of the fan-out.
const (
	fanoutBar    = 0.9
	fanoutP99Bar = 2
	socketBar    = 16 << 10 // bytes
)

const (
	sessions = 64 // that the sockets share
	past     = 60 // events before anybody subscribes
	together = 10 // events a transaction in a burst
)

// timelineDocument selects the message first, so that an event's number is at a fixed place.
const timelineDocument = `subscription Timeline($id: ID!, $after: String) {
  instanceTimeline(instanceId: $id, after: $after) { message id cursor seq type payload operationId memberId correlationId occurredAt }
}`

// opening is what a message begins with.
const opening = `{"id":"1","type":"next","payload":{"data":{"instanceTimeline":{"message":"`

// closing is what a message ends with; its length is that of the platform's.
const closing = `","id":"evt_01kaj4n6y8f1ra2v3w4x5y6z7a","cursor":"s000","seq":100,"type":"apps.operation.progress","payload":{"percent": 1},` +
	`"operationId":null,"memberId":null,"correlationId":"launch-00000000","occurredAt":"2026-11-20T00:00:00.000000Z"}}}}`

// text is the n-th event's message; sizes are mixed, 100 B to 1.9 KiB.
func text(n int) string {
	size := []int{100, 100, 300, 300, 600, 1_900}[n%6]
	return fmt.Sprintf("%08d%s", n, strings.Repeat("x", size))
}

// crowd is a server with its subscribers.
type crowd struct {
	server  *kit.Server
	sockets *process.Child
	send    func(first int, messages []string) (map[int]int64, error)
	number  int     // of the next event
	weight  float64 // bytes a socket
}

func (c *crowd) stop() {
	c.sockets.Stop()
	c.server.Stop()
}

func measureFanout(ctx context.Context, b *bench) error {
	for _, sockets := range b.Plan.Sockets {
		if err := b.fanout(ctx, sockets); err != nil {
			return fmt.Errorf("%d sockets: %w", sockets, err)
		}
	}
	return nil
}

// fanout lets both sides send to their crowds in turns; both crowds are there all the time.
func (b *bench) fanout(ctx context.Context, sockets int) error {
	bare, err := b.bareCrowd(ctx, sockets)
	if err != nil {
		return fmt.Errorf("reference: %w", err)
	}
	defer bare.stop()
	ours, replay, err := b.liveCrowd(ctx, sockets)
	if err != nil {
		return fmt.Errorf("platform: %w", err)
	}
	defer ours.stop()
	events := max(b.Plan.Messages/sockets, 6)
	var rates, p99 kit.Pairs
	for round := range b.Plan.Rounds + 1 {
		if err := both(&rates, round > 0, func(c *crowd) (float64, error) { return c.burst(sockets, events) }, ours,
			bare); err != nil {
			return err
		}
		if err := both(&p99, round > 0, func(c *crowd) (float64, error) { return c.steady(sockets, events) }, ours,
			bare); err != nil {
			return err
		}
		b.Log.Info("round", "of", "fan-out", "sockets", sockets, "warm-up", round == 0)
	}
	if err := b.Profiled(ours.server, fmt.Sprintf("fanout-%d", sockets), func() error {
		_, err := ours.burst(sockets, events)
		return err
	}); err != nil {
		return err
	}
	name := fmt.Sprintf("fan-out to %d sockets", sockets)
	b.Sheet.AtLeast(name+", messages/s", fmt.Sprintf("%.0f/s", kit.Median(rates.Platform)),
		fmt.Sprintf("%.0f/s", kit.Median(rates.Other)), rates.Ratio(), fanoutBar)
	b.Sheet.AtMost(name+", p99", kit.Millis(time.Duration(kit.Median(p99.Platform))),
		kit.Millis(time.Duration(kit.Median(p99.Other))), p99.Ratio(), fanoutP99Bar)
	b.Sheet.Within(name+", memory of a socket", kit.Kib(ours.weight), "≤ 16 KiB", ours.weight <= socketBar)
	b.Sheet.Told(name+", replay before it goes live", fmt.Sprintf("%.0f/s", replay), "", 0)
	return nil
}

// both measures one thing on either side, and keeps it unless it was a warm-up.
func both(into *kit.Pairs, keep bool, do func(*crowd) (float64, error), ours, bare *crowd) error {
	other, err := do(bare)
	if err != nil {
		return fmt.Errorf("reference: %w", err)
	}
	mine, err := do(ours)
	if err != nil {
		return fmt.Errorf("platform: %w", err)
	}
	if keep {
		into.Platform, into.Other = append(into.Platform, mine), append(into.Other, other)
	}
	return nil
}

// next are the next events' messages.
func (c *crowd) next(events int) (first int, messages []string) {
	first = c.number
	for range events {
		messages = append(messages, text(c.number))
		c.number++
	}
	return first, messages
}

// burst sends events as fast as they go and answers messages a second, from the first one's
// beginning until the last has arrived.
func (c *crowd) burst(sockets, events int) (float64, error) {
	first, messages := c.next(events)
	if err := c.sockets.Tell("receive", sockets*events); err != nil {
		return 0, err
	}
	began := time.Now()
	if _, err := c.send(first, messages); err != nil {
		return 0, err
	}
	if err := c.sockets.Hear("receive", nil); err != nil {
		return 0, err
	}
	took := time.Since(began)
	return float64(sockets*events) / took.Seconds(), c.sockets.Ask("forget", nil, nil)
}

// steady sends each event when the one before has arrived everywhere, and answers the 99th
// percentile of all arrivals, from when the event was there: committed, or about to be written.
func (c *crowd) steady(sockets, events int) (float64, error) {
	sent := map[int]int64{}
	for range events {
		first, messages := c.next(1)
		if err := c.sockets.Tell("receive", sockets); err != nil {
			return 0, err
		}
		times, err := c.send(first, messages)
		if err != nil {
			return 0, err
		}
		for number, at := range times {
			sent[number] = at
		}
		if err := c.sockets.Hear("receive", nil); err != nil {
			return 0, err
		}
	}
	var delays load.Delays
	if err := c.sockets.Ask("delays", sent, &delays); err != nil {
		return 0, err
	}
	return float64(delays.P99), c.sockets.Ask("forget", nil, nil)
}

// bareCrowd is a broadcast of frames that are prepared beforehand.
func (b *bench) bareCrowd(ctx context.Context, sockets int) (*crowd, error) {
	s, err := b.Serve(ctx, reference.BroadcastRole, false)
	if err != nil {
		return nil, err
	}
	c := &crowd{server: s}
	c.sockets, err = process.Start(ctx, load.SocketsRole,
		load.SocketsConfig{Address: s.Address, Sockets: sockets, NumberAt: len(opening)})
	if err != nil {
		s.Stop()
		return nil, err
	}
	c.send = func(first int, messages []string) (times map[int]int64, err error) {
		burst := reference.Burst{First: first}
		for _, message := range messages {
			burst.Messages = append(burst.Messages, opening+message+closing)
		}
		return times, s.Ask("send", burst, &times)
	}
	return c, nil
}

// liveCrowd is the platform with subscribers whose cursors differ: a third replays everything, a
// third a half, a third nothing. It answers how many replayed messages came a second.
func (b *bench) liveCrowd(ctx context.Context, sockets int) (c *crowd, replay float64, err error) {
	instance, tokens, err := b.Set.Watched(ctx, sessions)
	if err != nil {
		return nil, 0, err
	}
	s, err := b.Serve(ctx, platform.Role, false)
	if err != nil {
		return nil, 0, err
	}
	c = &crowd{server: s}
	c.send = func(first int, messages []string) (times map[int]int64, err error) {
		return times, s.Ask("append", platform.Append{Instance: instance, First: first, Messages: messages,
			Together: together}, &times)
	}
	if _, err := c.send(c.next(past)); err != nil {
		s.Stop()
		return nil, 0, err
	}
	replay, err = b.gather(ctx, c, instance, tokens, sockets)
	if err != nil {
		s.Stop()
		return nil, 0, err
	}
	return c, replay, nil
}

func (b *bench) gather(ctx context.Context, c *crowd, instance ids.ID, tokens []string, sockets int) (replay float64,
	err error) {
	cursors := []int{0, past / 2, past}
	config := load.SocketsConfig{Address: c.server.Address, Sockets: sockets, Subscribe: true, Tokens: tokens,
		Document: timelineDocument, Instance: string(instance), NumberAt: len(opening)}
	for _, cursor := range cursors {
		config.Afters = append(config.Afters, dataset.Cursor(cursor))
	}
	replays := func(sockets int) (n int) {
		for i := range sockets {
			n += past - cursors[i%len(cursors)]
		}
		return n
	}
	var before, after float64
	if err := b.warm(ctx, config, replays); err != nil {
		return 0, err
	}
	if err := c.server.Ask("memory", nil, &before); err != nil {
		return 0, err
	}
	replayed := replays(sockets)
	began := time.Now()
	if c.sockets, err = process.Start(ctx, load.SocketsRole, config); err != nil {
		return 0, err
	}
	if err := c.sockets.Ask("receive", replayed, nil); err != nil {
		c.sockets.Stop()
		return 0, fmt.Errorf("replay: %w", err)
	}
	replay = float64(replayed) / time.Since(began).Seconds()
	if err := c.sockets.Ask("forget", nil, nil); err != nil {
		return 0, err
	}
	if err := c.server.Ask("memory", nil, &after); err != nil {
		return 0, err
	}
	c.weight = (after - before) / float64(sockets)
	return replay, nil
}

// warm has a few subscribers come and go, so that what a server keeps once, such as prepared
// statements, is not counted as a socket's.
func (b *bench) warm(ctx context.Context, config load.SocketsConfig, replays func(sockets int) int) error {
	config.Sockets = sessions
	few, err := process.Start(ctx, load.SocketsRole, config)
	if err != nil {
		return err
	}
	defer few.Stop()
	return few.Ask("receive", replays(sessions), nil)
}
