package conformance

import (
	"context"
	"errors"
	"time"

	"github.com/gpuaas/app-platform/sdk/adapter"
	"github.com/gpuaas/app-platform/sdk/adaptertest/conformance/internal/trial"
)

// Run exercises the adapter and returns the report. A clause that fails is not an error. The error
// states why nothing could be tested, or that ctx or the bound of the whole run ended it early; the
// report then holds what was finished.
func Run(ctx context.Context, options Options) (Report, error) {
	if err := checkOptions(options); err != nil {
		return Report{}, err
	}
	s := &trial.Suite{Options: options, Bounds: options.Bounds.Full(), Results: map[string]Outcome{},
		Acted: map[string]bool{}}
	ctx, cancel := context.WithTimeout(ctx, s.Bounds.Overall)
	defer cancel()
	s.Ctx = ctx
	report := Report{Started: time.Now().UTC(), Bounds: s.Bounds}
	stop, err := s.SetUp()
	if err != nil {
		return report, errors.Join(err, stop())
	}
	chosen := selected(options.Only)
	for _, clause := range all() {
		if chosen[clause.ID] {
			report.Results = append(report.Results, s.Run(clause))
		}
	}
	report.Seconds = time.Since(report.Started).Seconds()
	report.Digested = Digested{
		Suite: Version, Contract: adapter.ContractVersion, App: s.App.Slug,
		Adapter: AdapterID{Name: s.Description.Name, Build: s.Description.Build},
	}
	return report, errors.Join(s.Over(), report.seal(), stop())
}
