package capacity

import (
	"context"
	"fmt"
	"strings"

	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/isolation"
	"github.com/gpuaas/app-platform/domain/volume"
	"github.com/gpuaas/app-platform/internal/tx"
)

// Lodging is what the node of an allocation must serve, since its members have volumes. The zero value is nothing.
type Lodging struct {
	// Volumes name them, for a person.
	Volumes []string
	// Storages are what they lie in, by name and kind.
	Storages []volume.Storage
	// Node is where a local one is: no other will do. Empty for any.
	Node ids.ID
	// Together is how many such allocations come to live on one node, since a local volume will be there; else 0.
	Together int
}

// columns are the storages' names and kinds.
func (l *Lodging) columns() (names, kinds []string) {
	names, kinds = make([]string, len(l.Storages)), make([]string, len(l.Storages))
	for i, one := range l.Storages {
		names[i], kinds[i] = one.Name, string(one.Kind)
	}
	return names, kinds
}

// text names the volumes, and what they lie in.
func (l *Lodging) text() string {
	text := strings.Join(l.Volumes, ", ")
	if l.Node != "" {
		return text + " (one of them is on the disk of one node)"
	}
	return text
}

// elsewhere refuses what would fit if it were not for the volumes: INCOMPATIBLE with VOLUME_UNAVAILABLE, and what would
// fit now beside them. Nil where that would not fit either. Fits is what could be placed on nodes that serve them.
func (d *Draft) elsewhere(ctx context.Context, t *tx.Tx, walls isolation.Want, classes []isolation.Class,
	fits []free) error {
	if len(d.Lodging.Storages) == 0 || d.Want.within(fits) {
		return nil
	}
	all, err := d.free(ctx, t, walls, classes, Lodging{})
	if err != nil {
		return err
	}
	if !d.Want.within(all) {
		return nil
	}
	message := fmt.Sprintf("%s is free, but on no node that serves the volumes %s", d.Want.text(), d.Lodging.text())
	reasons := []fault.Reason{{Code: fault.VolumeUnavailable, Message: message}, d.Want.alternatives(fits)}
	return fault.New(fault.Incompatible, "%s", message).With(reasons...)
}

// within reports whether one allocation would fit what is free.
func (w *Want) within(list []free) bool {
	for _, one := range list {
		if w.takes(one) && (w.GPUCount == nil && one.Whole > 0 || w.GPUCount != nil && one.Share >= *w.GPUCount) {
			return true
		}
	}
	return false
}

// Refused gives a refusal of volumes the path of the input that wants the capacity; nil when the error is another one.
func Refused(err error, path string) error {
	if !fault.Is(err, fault.Incompatible) {
		return nil
	}
	refusal := fault.From(err)
	reasons := refusal.Reasons
	for i := range reasons {
		reasons[i].Path = path
	}
	return fault.New(fault.Incompatible, "%s", refusal.Message).With(reasons...)
}
