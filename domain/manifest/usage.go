package manifest

import (
	"strconv"

	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/metering"
)

// New reads and lints a document that is published or staged now: it is Parse, and what earlier documents were let
// through with. A usage dimension that counts capacity would be charged twice, since the platform meters capacity
// itself.
func New(data []byte) (*Manifest, error) {
	m, err := Parse(data)
	if err != nil {
		return nil, err
	}
	if reasons := m.metersCapacity(); len(reasons) > 0 {
		return nil, invalid(reasons...)
	}
	return m, nil
}

// metersCapacity finds dimensions that only the platform may meter.
func (m *Manifest) metersCapacity() (reasons []fault.Reason) {
	for i, one := range m.UsageDimensions {
		at := "usageDimensions." + strconv.Itoa(i)
		shown := metering.DimensionKind(one.Kind) == metering.KindShowback
		switch {
		case metering.ClaimsMeter(one.Name):
			reasons = append(reasons, fault.Reason{Code: fault.CapacityUnit, Path: at + ".name",
				Message: "is the name of a meter of the platform: use another name"})
		case !shown && metering.CountsCapacity(one.Unit):
			reasons = append(reasons, fault.Reason{Code: fault.CapacityUnit, Path: at + ".unit",
				Message: "is a unit of capacity, which the platform meters: declare it of kind showback"})
		case !shown && metering.CountsCapacity(one.Name):
			reasons = append(reasons, fault.Reason{Code: fault.CapacityUnit, Path: at + ".name",
				Message: "names capacity, which the platform meters: declare it of kind showback"})
		}
	}
	return reasons
}
