package capacity

import (
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/isolation"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/internal/tx"
)

// free is what could be placed now of one SKU in one region: the largest share of one node's GPUs, and whole nodes.
type free struct {
	Region, SKU  string
	Share, Whole int
}

// short refuses a request that no node has capacity for, with what is short and what would fit now within policy.
func (d *Draft) short(ctx context.Context, t *tx.Tx, walls isolation.Want, classes []isolation.Class) error {
	list, err := d.free(ctx, t, walls, classes, d.Lodging)
	if err != nil {
		return err
	}
	if err := d.elsewhere(ctx, t, walls, classes, list); err != nil {
		return err
	}
	want := d.Want
	if want.GPUCount != nil && d.Lodging.Together > 1 {
		together := *want.GPUCount * d.Lodging.Together
		want.GPUCount = &together
	}
	return fault.New(fault.CapacityUnavailable, "no node has enough free capacity now").With(want.shortage(list)...)
}

// free reads what could be placed now within policy, on nodes that serve what the lodging says.
func (d *Draft) free(ctx context.Context, t *tx.Tx, walls isolation.Want, classes []isolation.Class,
	lodging Lodging) ([]free, error) {
	skus, regions := d.Policy.SKUs(), d.Policy.Regions()
	storages, kinds := lodging.columns()
	list, err := tx.Collect(ctx, t, pgx.RowToStructByPos[free], `SELECT region, sku, share, whole
		FROM platform.capacity_now($1, $2, $3, $4, $5, $6, $7, $8, $9,
		$10)`, skus.Only, skus.Not, regions.Only, regions.Not,
		classes, walls.Demanding(), d.Want.Profile, storages, kinds, lodging.Node)
	if err != nil {
		return nil, fmt.Errorf("find free capacity: %w", err)
	}
	return list, nil
}

// takes reports whether what is free is of the SKU and in the region that are wanted.
func (w *Want) takes(one free) bool {
	return (w.SKU == "" || one.SKU == w.SKU) && (w.Region == "" || one.Region == w.Region)
}

// shortage returns what of a request is short, and what would fit.
func (w *Want) shortage(list []free) []fault.Reason {
	share, whole := 0, 0
	for _, one := range list {
		if w.takes(one) {
			share, whole = max(share, one.Share), whole+one.Whole
		}
	}
	short := fault.Reason{Code: fault.CapacityShort, Message: w.text() + " is requested, and " + w.most(share, whole)}
	return []fault.Reason{short, w.alternatives(list)}
}

// alternatives returns what would be accepted instead.
func (w *Want) alternatives(list []free) fault.Reason {
	var fits []string
	for _, one := range list {
		if text := w.fitting(one); text != "" {
			fits = append(fits, text)
		}
	}
	if len(fits) == 0 {
		return fault.Reason{Code: fault.CapacityFits,
			Message: "nothing would fit now: release an allocation, or try again later"}
	}
	return fault.Reason{Code: fault.CapacityFits,
		Message: "would fit now: " + strings.Join(fits[:min(len(fits), maxFits)], "; ")}
}

// maxFits bounds the alternatives that one refusal names.
const maxFits = 5

// text spells the request.
func (w *Want) text() string {
	text := "a whole node"
	if w.Shape == lifecycle.ShapeGPUSlice {
		text = fmt.Sprintf("a share of %s", gpus(*w.GPUCount))
	}
	if w.SKU != "" {
		text += " of SKU " + w.SKU
	}
	if w.Region != "" {
		text += " in region " + w.Region
	}
	return text
}

// most spells what is free of that.
func (w *Want) most(share, whole int) string {
	switch {
	case w.Shape == lifecycle.ShapeGPUSlice && share == 0:
		return "no such GPU is free"
	case w.Shape == lifecycle.ShapeGPUSlice:
		return fmt.Sprintf("the largest share that is free on one node is %s", gpus(share))
	case whole == 0:
		return "no such node is entirely free"
	}
	return fmt.Sprintf("%d such nodes are entirely free", whole)
}

// fitting spells what of one SKU in one region would be accepted instead; empty for nothing.
func (w *Want) fitting(one free) string {
	var parts []string
	if one.Share > 0 {
		parts = append(parts, fmt.Sprintf("GPU_SLICE of %s", gpus(min(one.Share, maxGPUs))))
	}
	if one.Whole > 0 {
		parts = append(parts, fmt.Sprintf("%d BAREMETAL", one.Whole))
	}
	if len(parts) == 0 {
		return ""
	}
	text := strings.Join(parts, " or ")
	if one.SKU != "" {
		text += " of SKU " + one.SKU
	}
	if one.Region != "" {
		text += " in region " + one.Region
	}
	return text
}

func gpus(count int) string {
	if count == 1 {
		return "1 GPU"
	}
	return fmt.Sprintf("%d GPUs", count)
}

// Exhausted is the refusal of the number-th of several allocations, at the path, with the reasons of its own; nil when
// the error is another one.
func Exhausted(err error, number, of int, path string) error {
	if !fault.Is(err, fault.CapacityUnavailable) {
		return nil
	}
	reasons := fault.From(err).Reasons
	for i := range reasons {
		reasons[i].Path = path
	}
	short := ""
	if len(reasons) > 0 {
		short = ": " + reasons[0].Message
	}
	return fault.New(fault.CapacityUnavailable, "no node has enough free capacity for allocation %d of %d now%s",
		number, of, short).With(reasons...)
}
