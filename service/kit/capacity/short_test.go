package capacity

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/domain/lifecycle"
)

func TestAShortageSaysWhatIsShortAndWhatWouldFit(t *testing.T) {
	t.Parallel()
	four := 4
	there := []free{{Region: "eu", SKU: "large", Share: 2}, {Region: "us", SKU: "large", Share: 8, Whole: 1},
		{Region: "us", SKU: "small"}}
	for name, c := range map[string]struct {
		want        Want
		list        []free
		short, fits string
	}{
		"another region": {Want{Shape: lifecycle.ShapeGPUSlice, GPUCount: &four, SKU: "large", Region: "eu"}, there,
			"a share of 4 GPUs of SKU large in region eu is requested, and the largest share that is free on one " +
				"node is 2 GPUs",
			"would fit now: GPU_SLICE of 2 GPUs of SKU large in region eu; GPU_SLICE of 8 GPUs or 1 BAREMETAL of SKU " +
				"large in region us"},
		"no such SKU": {Want{Shape: lifecycle.ShapeGPUSlice, GPUCount: &four, SKU: "tiny"}, there[:1],
			"a share of 4 GPUs of SKU tiny is requested, and no such GPU is free",
			"would fit now: GPU_SLICE of 2 GPUs of SKU large in region eu"},
		"whole nodes": {Want{Shape: lifecycle.ShapeBaremetal, Region: "eu"}, there[:1],
			"a whole node in region eu is requested, and no such node is entirely free",
			"would fit now: GPU_SLICE of 2 GPUs of SKU large in region eu"},
		"nothing at all": {Want{Shape: lifecycle.ShapeBaremetal}, nil,
			"a whole node is requested, and no such node is entirely free",
			"nothing would fit now: release an allocation, or try again later"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			reasons := c.want.shortage(c.list)
			require.Equal(t, []string{c.short, c.fits}, []string{reasons[0].Message, reasons[1].Message})
		})
	}
}
