package read

import (
	"github.com/gpuaas/app-platform/service/kit/tariff"
	"github.com/gpuaas/app-platform/service/orphan"
)

// Value returns what a nullable argument holds, or the zero value.
func Value[T any](v *T) T {
	if v == nil {
		var zero T
		return zero
	}
	return *v
}

// Hourly returns what an hour costs as the API has it; nil where no price is set.
func Hourly(cost *tariff.Hourly) *orphan.Money {
	if cost == nil {
		return nil
	}
	return orphan.MoneyOf(cost.Currency, cost.Amount)
}
