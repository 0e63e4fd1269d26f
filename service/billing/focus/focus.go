// Package focus writes charges as FOCUS has them: the FinOps Open Cost and Usage Specification.
package focus

import (
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/metering"
)

// issuer is who provides, publishes and invoices.
const issuer = "GPUaaS App Platform"

// Charge is a line of a statement, as text.
type Charge struct {
	// Tenant and Project are ids, TenantName and ProjectName what they are called.
	Tenant, TenantName, Project, ProjectName, Currency string
	// PeriodStart and PeriodEnd are the statement's, Start and End those of the usage.
	PeriodStart, PeriodEnd, Start, End string
	// Invoice names the statement; empty until it is final.
	Invoice string
	// Cost is the amount; empty when nothing is priced.
	Cost                                                string
	Correction                                          bool
	Meter, Unit, SKU, Region, Price, Consumed, Quantity string
}

// Column is a column of FOCUS as the specification has it.
type Column struct {
	Name string
	// Kind is string, decimal, time or one of Values.
	Kind   string
	Values []string
	// Null is true when the specification lets the column be null.
	Null bool
	// Since and Until are the versions in which it is; empty for both.
	Since, Until string
	cell         func(c *Charge) string
}

func fixed(text string) func(*Charge) string {
	return func(*Charge) string { return text }
}

func cost(c *Charge) string {
	if c.Cost == "" {
		return "0" // a charge without a price costs nothing yet, which its description says
	}
	return c.Cost
}

// Columns is what is exported, in order, with the rules that a row is held to: docs/guides/billing.md names their
// source.
var Columns = []Column{
	{Name: "BilledCost", Kind: "decimal", cell: cost},
	{Name: "BillingAccountId", Kind: "string", cell: func(c *Charge) string { return c.Tenant }},
	{Name: "BillingAccountName", Kind: "string", cell: func(c *Charge) string { return c.TenantName }},
	{Name: "BillingCurrency", Kind: "currency", cell: func(c *Charge) string { return c.Currency }},
	{Name: "BillingPeriodEnd", Kind: "time", cell: func(c *Charge) string { return c.PeriodEnd }},
	{Name: "BillingPeriodStart", Kind: "time", cell: func(c *Charge) string { return c.PeriodStart }},
	{Name: "ChargeCategory", Kind: "enum", Values: []string{"Usage", "Purchase", "Tax", "Credit", "Adjustment"},
		cell: fixed("Usage")},
	{Name: "ChargeClass", Kind: "enum", Values: []string{"Correction"}, Null: true, cell: correctionClass},
	{Name: "ChargeDescription", Kind: "string", Null: true, cell: described},
	{Name: "ChargeFrequency", Kind: "enum", Values: []string{"One-Time", "Recurring", "Usage-Based"},
		cell: fixed("Usage-Based")},
	{Name: "ChargePeriodEnd", Kind: "time", cell: func(c *Charge) string { return c.End }},
	{Name: "ChargePeriodStart", Kind: "time", cell: func(c *Charge) string { return c.Start }},
	{Name: "ConsumedQuantity", Kind: "decimal", Null: true, cell: func(c *Charge) string { return c.Consumed }},
	{Name: "ConsumedUnit", Kind: "string", Null: true, cell: func(c *Charge) string { return c.Unit }},
	{Name: "ContractedCost", Kind: "decimal", cell: cost},
	{Name: "EffectiveCost", Kind: "decimal", cell: cost},
	{Name: "HostProviderName", Kind: "string", Null: true, Since: "1.3", cell: fixed(issuer)},
	{Name: "InvoiceId", Kind: "string", Null: true, cell: func(c *Charge) string { return c.Invoice }},
	{Name: "InvoiceIssuerName", Kind: "string", cell: fixed(issuer)},
	{Name: "ListCost", Kind: "decimal", cell: cost},
	{Name: "PricingCategory", Kind: "enum", Values: []string{"Standard", "Dynamic", "Committed", "Other"}, Null: true,
		cell: fixed("Standard")},
	{Name: "PricingQuantity", Kind: "decimal", Null: true, cell: func(c *Charge) string { return c.Quantity }},
	{Name: "PricingUnit", Kind: "string", Null: true, cell: func(c *Charge) string { return c.Unit }},
	{Name: "ProviderName", Kind: "string", cell: fixed(issuer)},
	{Name: "PublisherName", Kind: "string", cell: fixed(issuer)},
	{Name: "RegionId", Kind: "string", Null: true, cell: func(c *Charge) string { return c.Region }},
	{Name: "RegionName", Kind: "string", Null: true, cell: func(c *Charge) string { return c.Region }},
	{Name: "ServiceCategory", Kind: "enum", Values: []string{"AI and Machine Learning", "Compute", "Storage", "Other"},
		cell: category},
	{Name: "ServiceName", Kind: "string", cell: func(c *Charge) string { return c.Meter }},
	{Name: "ServiceProviderName", Kind: "string", Since: "1.3", cell: fixed(issuer)},
	{Name: "SkuId", Kind: "string", Null: true, cell: sku},
	{Name: "SkuMeter", Kind: "string", Null: true, cell: func(c *Charge) string { return c.Meter }},
	{Name: "SkuPriceId", Kind: "string", Null: true, cell: func(c *Charge) string { return c.Price }},
	{Name: "SubAccountId", Kind: "string", Null: true, cell: func(c *Charge) string { return c.Project }},
	{Name: "SubAccountName", Kind: "string", Null: true, cell: func(c *Charge) string { return c.ProjectName }},
}

func correctionClass(c *Charge) string {
	if c.Correction {
		return "Correction"
	}
	return ""
}

func described(c *Charge) string {
	switch {
	case c.Cost == "":
		return c.Meter + ": no price is set"
	case c.Correction:
		return c.Meter + ": correction of an earlier period"
	}
	return c.Meter
}

func category(c *Charge) string {
	switch c.Meter {
	case metering.GPUSeconds, metering.NodeSeconds:
		return "Compute"
	case metering.VolumeGiBSeconds:
		return "Storage"
	}
	return "AI and Machine Learning"
}

func sku(c *Charge) string {
	if c.SKU == "" {
		return c.Meter
	}
	return c.SKU
}

// Version reads a version that is written. INVALID_ARGUMENT at focus otherwise.
func Version(text string) (string, error) {
	if text != "1.2" && text != "1.3" {
		return "", fault.New(fault.InvalidArgument, "%.10q is not a supported version of FOCUS: use 1.2 or 1.3",
			text).At("focus")
	}
	return text, nil
}

// In reports whether the column is in a version.
func (c *Column) In(version string) bool {
	return (c.Since == "" || version >= c.Since) && (c.Until == "" || version <= c.Until)
}

// Table is charges as FOCUS has them, below their heading.
func Table(charges []Charge, version string) [][]string {
	rows := make([][]string, len(charges)+1)
	for i := range Columns {
		column := &Columns[i]
		if !column.In(version) {
			continue
		}
		rows[0] = append(rows[0], column.Name)
		for n := range charges {
			rows[n+1] = append(rows[n+1], column.cell(&charges[n]))
		}
	}
	return rows
}
