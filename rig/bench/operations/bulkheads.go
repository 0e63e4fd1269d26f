package operations

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/gpuaas/app-platform/rig/bench/kit"
	"github.com/gpuaas/app-platform/rig/bench/load"
)

// besideBar is how much longer a launch may take beside tenants whose adapter does not answer; besideFloor is the time
// that it may take anyway, since tens of milliseconds differ by what else the machine does.
const (
	besideBar   = 2
	besideFloor = 100 * time.Millisecond
)

// each is how many launches of every other tenant wait for the dead adapter.
const each = 4

// measureBulkheads launches on an adapter that is well, alone and beside every other tenant's launches on one that
// takes connections and never answers.
func measureBulkheads(ctx context.Context, b *bench, _ machine) error {
	alone, err := b.lonely(ctx, 0)
	if err != nil {
		return err
	}
	beside, tenants, err := b.besideTheDead(ctx)
	if err != nil {
		return err
	}
	median, other := load.Quantile(beside, 0.5), load.Quantile(alone, 0.5)
	b.Log.Info("bulkheads", "alone", alone, "beside", beside)
	b.Sheet.Within(fmt.Sprintf("a launch, accepted to succeeded, beside %d tenants with %d launches each on an "+
		"adapter that does not answer",
		tenants, each),
		fmt.Sprintf("%s, %s at most; alone %s, %s at most", kit.Millis(median), kit.Millis(load.Quantile(beside, 1)),
			kit.Millis(other), kit.Millis(load.Quantile(alone, 1))),
		fmt.Sprintf("≤ %d ×, or %s", besideBar, kit.Millis(besideFloor)), median <= max(besideBar*other, besideFloor))
	return nil
}

// besideTheDead answers how long single launches take beside those of every other tenant on an adapter that is dead.
func (b *bench) besideTheDead(ctx context.Context) (took []time.Duration, tenants int, err error) {
	address, stop, err := silence()
	if err != nil {
		return nil, 0, err
	}
	defer stop()
	tenants = b.Set.Size.Tenants - 1 // the last one is well
	projects := tenants * b.Set.Size.Projects
	crowd, err := b.Set.Backlog(ctx, tenants*each, 0, projects)
	if err != nil {
		return nil, 0, err
	}
	defer func() { err = errors.Join(err, b.Set.Forget(context.WithoutCancel(ctx), crowd)) }()
	if err := b.Set.OnDead(ctx, address, crowd); err != nil {
		return nil, 0, err
	}
	if err := b.Set.Wake(ctx); err != nil {
		return nil, 0, err
	}
	took, err = b.lonely(ctx, len(crowd))
	if err != nil || tenants == 1 { // too few to be waited for
		return took, tenants, err
	}
	if err := b.named(ctx); err != nil {
		return nil, 0, err
	}
	later, err := b.lonely(ctx, len(crowd)) // when calls have begun to time out
	return append(took, later...), tenants, err
}

// named waits until a worker says that operations wait for the dead adapter.
func (b *bench) named(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, endsIn)
	defer cancel()
	for {
		busy, err := b.Set.DeadIsBusy(ctx)
		if busy || err != nil {
			return err
		}
		if err := pause(ctx, 200*time.Millisecond); err != nil {
			return fmt.Errorf("no worker reports that operations wait for the adapter that does not answer: %w", err)
		}
	}
}

// silence takes connections and never answers.
func silence() (address string, stop func(), err error) {
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return "", nil, err
	}
	var taken []net.Conn
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			taken = append(taken, conn)
		}
	}()
	return "http://" + listener.Addr().String(), func() {
		_ = listener.Close()
		<-done
		for _, conn := range taken {
			_ = conn.Close()
		}
	}, nil
}
