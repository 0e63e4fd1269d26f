package agent

import (
	"context"
	"time"

	"github.com/gpuaas/app-platform/sdk/client/generated/gql"
)

// heartbeatEvery is how often the node says that it is alive.
const heartbeatEvery = 5 * time.Second

// keepBeating sends heartbeats. It logs a change of the platform's reachability once, not every five seconds.
func (a *Agent) keepBeating(ctx context.Context) error {
	failing := false
	tick := time.NewTicker(heartbeatEvery)
	defer tick.Stop()
	for {
		err := a.beat(ctx)
		switch {
		case err != nil && !failing && ctx.Err() == nil:
			a.log.WarnContext(ctx, "heartbeat failed", "error", err)
		case err == nil && failing:
			a.log.InfoContext(ctx, "heartbeat works again")
		}
		failing = err != nil
		select {
		case <-tick.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// declared is the inventory as it is now.
func (a *Agent) declared() gql.NodeInventoryInput {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.inventory
}

func (a *Agent) beat(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, heartbeatEvery)
	defer cancel()
	input := gql.NodeHeartbeatInput{AgentVersion: a.options.Version, BootId: a.bootID}
	if a.storageNews.Swap(false) {
		a.told.Store(false)
	}
	if a.sandboxes.Recheck() {
		a.mu.Lock()
		a.inventory.Walls = offered(a.sandboxes.Isolation())
		a.mu.Unlock()
		a.told.Store(false)
		a.log.WarnContext(ctx, "what the node offers to members has changed", "because", a.sandboxes.Isolation().Reason)
	}
	if !a.told.Load() { // the inventory may have changed since the node was enrolled
		inventory := a.declared()
		if a.stored(&inventory) {
			input.Inventory = &inventory
		}
	}
	kills := a.sandboxes.MemoryKills(maxKills)
	input.MemoryKills = killsInput(kills)
	lost, restarts := a.watcher.Look(ctx, maxKills)
	input.MemberFindings, input.ProcessRestarts = findingsInput(lost), restartsInput(restarts)
	input.Conditions = a.health.News(a.now())
	var round int
	input.MemberUsage, round = a.metrics.News()
	sent := a.now()
	theirs, err := a.client.Heartbeat(ctx, a.credentials, input)
	if err == nil {
		a.told.Store(a.told.Load() || input.Inventory != nil)
		a.sandboxes.KillsReported(kills)
		a.watcher.Reported(restarts)
		a.metrics.Told(round)
		a.heard(input.Conditions, theirs, sent)
	}
	return err
}
