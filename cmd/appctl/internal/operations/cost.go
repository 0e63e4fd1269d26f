package operations

import (
	"fmt"
	"strings"

	"github.com/gpuaas/app-platform/cmd/appctl/internal/command"
	"github.com/gpuaas/app-platform/cmd/appctl/internal/render"
	"github.com/gpuaas/app-platform/sdk/client/generated/gql"
)

// noPrice is shown where the price book has no price: the price is unknown, not zero.
const noPrice = "No price set"

// hourly returns what a change makes of the price of an hour.
func hourly(cost gql.HourlyCost) string {
	var texts []string
	for _, total := range cost.Totals {
		text := fmt.Sprintf("%s %s an hour now, %s after", total.Before, total.Currency, total.After)
		if total.Left != "0" {
			text += fmt.Sprintf(", %s of it for capacity without members", total.Left)
		}
		texts = append(texts, text)
	}
	if cost.Unpriced > 0 {
		texts = append(texts, noPrice+" for "+render.Plural(cost.Unpriced, "allocation"))
	}
	if len(texts) == 0 {
		return "it uses no capacity"
	}
	return strings.Join(texts, "; ")
}

// pageCost shows the capacity and the usage that the price of an hour consists of.
func pageCost(p *render.Page, cost gql.HourlyCost) {
	if len(cost.Capacity) > 0 {
		p.Section("Capacity and its price")
		costed.On(p, cost.Capacity)
	}
	if len(cost.Usage) > 0 {
		p.Section("Prices of the app's use")
		rated.On(p, cost.Usage)
	}
}

var costed = command.Table[gql.PlannedCost]{
	Heading: []string{"EFFECT", "COUNT", "CAPACITY", "AN HOUR"},
	Row: func(line *gql.PlannedCost) []string {
		price := noPrice
		if line.Hourly != nil {
			price = line.Hourly.Amount + " " + line.Hourly.Currency
		}
		return []string{string(line.Effect), fmt.Sprint(line.Count), render.Joined(" ", string(line.Shape),
			render.Plural(line.GpuCount, "GPU"), line.Sku, line.Region), price}
	},
}

var rated = command.Table[gql.PlannedRate]{
	Heading: []string{"DIMENSION", "UNIT", "PRICE"},
	Row: func(rate *gql.PlannedRate) []string {
		if rate.Price == nil {
			return []string{rate.Dimension, rate.Unit, noPrice}
		}
		var steps []string
		for _, tier := range rate.Price.Tiers {
			text := tier.Price
			if tier.UpTo != nil {
				text += " up to " + *tier.UpTo
			}
			steps = append(steps, text)
		}
		return []string{rate.Dimension, rate.Unit, fmt.Sprintf("%s %s for %s", strings.Join(steps, ", then "),
			rate.Price.Currency, rate.Price.Per)}
	},
}

// accepted returns whether a plan would be.
func accepted(allowed bool) string {
	if allowed {
		return "would be accepted"
	}
	return "would be refused"
}

// LaunchPlanView shows what a launch would do.
func LaunchPlanView(plan *gql.LaunchPlan) command.View {
	return command.Detail(plan, plan.Hash, func(p *render.Page) {
		p.Fields("Plan", "launch", "Verdict", accepted(plan.Allowed), "Version", plan.Version, "Cost",
			hourly(plan.Cost), "Hash", plan.Hash)
		p.Section("New members")
		touched.On(p, plan.Members)
		pageVolumes(p, plan.Members)
		pageCost(p, plan.Cost)
		p.Section("Verdicts")
		p.Table([]string{"BY", "OUTCOME", "REASON"}, verdictRows(plan.Verdicts))
	})
}

// ReleasePlanView shows what giving an allocation back would do.
func ReleasePlanView(plan *gql.ReleasePlan) command.View {
	return command.Detail(plan, plan.Hash, func(p *render.Page) {
		stops := "no instance"
		if plan.Instance != nil {
			stops = fmt.Sprintf("%s (%s)", plan.Instance.Name, plan.Instance.Id)
		}
		p.Fields("Plan", fmt.Sprintf("release of %s (%s)", plan.Allocation.Name, plan.Allocation.Id), "Verdict",
			accepted(plan.Allowed),
			"Tears down", stops, "Cost", hourly(plan.Cost), "Hash", plan.Hash)
		pageCost(p, plan.Cost)
		if !plan.Allowed {
			p.Section("Why not")
			p.Table([]string{"CODE", "REASON"}, reasonRows(plan.Reasons))
		}
	})
}

func reasonRows(reasons []gql.Reason) (rows [][]string) {
	for _, reason := range reasons {
		rows = append(rows, []string{reason.Code, reason.Message})
	}
	return rows
}
