package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"

	"github.com/gpuaas/app-platform/rig/bench/kit"
)

// The bars of a member's walls, beside the sandbox that members had before.
const (
	maxMemberStart = 3
	maxMemberExec  = 2
)

// memberTimes are one side's, as cmd/node-agent/bench/members prints them.
type memberTimes struct{ Start, Exec []time.Duration }

// measureMembers starts members, and commands in them, beside the sandbox that agents had before members were
// containers.
func measureMembers(ctx context.Context, b *bench) error {
	if os.Geteuid() != 0 {
		b.Sheet.Told("start of a member: not measured, it needs root", "", "", 0)
		return nil
	}
	program, err := filepath.Abs(filepath.Join(b.Plan.Data, "members"))
	if err != nil {
		return err
	}
	build := exec.CommandContext(ctx, "go", "build", "-o", program,
		"github.com/gpuaas/app-platform/cmd/node-agent/bench/members")
	if said, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("build the starter of members: %w: %s", err, said)
	}
	measure := exec.CommandContext(ctx, program, "-rounds", strconv.Itoa(b.Plan.Members), "-execs",
		strconv.Itoa(b.Plan.Members))
	measure.Stderr = os.Stderr
	printed, err := measure.Output()
	if err != nil {
		return fmt.Errorf("start members: %w", err)
	}
	var got struct {
		Members, Reference memberTimes
		Floor              []time.Duration
		Runtime            string
		Network            bool
	}
	if err := json.Unmarshal(printed, &got); err != nil {
		return fmt.Errorf("read the times of members: %w", err)
	}
	with := got.Runtime
	if got.Network {
		with += ", with a network"
	}
	b.beside("start of a member ("+with+")", got.Members.Start, got.Reference.Start, maxMemberStart)
	if len(got.Floor) > 0 {
		b.Sheet.Told("the runtime alone, one call with the same configuration and /bin/true",
			kit.Millis(kit.Median(got.Floor)),
			kit.Millis(kit.Median(got.Reference.Start)),
			float64(kit.Median(got.Floor))/float64(kit.Median(got.Reference.Start)))
	}
	b.beside("a command in a member", got.Members.Exec, got.Reference.Exec, maxMemberExec)
	return nil
}

// beside notes the medians of both sides, and the median of the ratios of pairs: the sides take turns.
func (b *bench) beside(name string, mine, other []time.Duration, bar float64) {
	pairs := &kit.Pairs{}
	for n := range min(len(mine), len(other)) {
		pairs.Platform, pairs.Other = append(pairs.Platform, float64(mine[n])), append(pairs.Other, float64(other[n]))
	}
	b.Sheet.AtMost(name, kit.Millis(kit.Median(mine)), kit.Millis(kit.Median(other)), pairs.Ratio(), bar)
}
