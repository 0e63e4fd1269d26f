package calls

import (
	"math/big"
	"slices"

	"github.com/gpuaas/app-platform/sdk/adapter"
	"github.com/gpuaas/app-platform/sdk/adaptertest/conformance/internal/trial"
)

// maxUsagePages bounds how far the suite follows usage.
const maxUsagePages = 50

// Usage returns the clauses on usage.
func Usage() []trial.Clause {
	return []trial.Clause{
		{ID: "usage.valid", Section: trial.InUsage, Needs: []string{trial.Created}, Run: usageValid,
			Rule: "usage records have a described dimension, a decimal quantity and a span of time",
			Fix:  "answer UsagePage as in the OpenAPI document; an app that meters nothing returns no records"},
		{ID: "usage.cursor", Section: trial.InUsage, Needs: []string{"usage.valid"}, Run: usageCursor,
			Rule: "the cursor continues: no record is sent twice, none that is counted is skipped, and the pages end",
			Fix:  "derive a record's id from what it counts, and return the cursor after the last record sent"},
		{ID: "usage.stable", Section: trial.InUsage, Needs: []string{"usage.valid"}, Run: usageStable,
			Rule: "the same cursor returns the same records again",
			Fix:  "keep records after they have been read: the reader may have crashed"},
	}
}

// usageValid checks the records of the first page.
func usageValid(c *trial.Check) {
	page := c.Usage(c.Shared(), "")
	c.Require(len(page.Records) <= adapter.MaxUsageRecords,
		"a page has %d records, more than %d", len(page.Records), adapter.MaxUsageRecords)
	for n, record := range page.Records {
		known := slices.ContainsFunc(
			c.App.UsageDimensions, func(d adapter.UsageDimension) bool { return d.Name == record.Dimension },
		)
		c.Require(known, "records[%d].dimension is %q, which is not described", n, record.Dimension)
		_, decimal := new(big.Rat).SetString(record.Quantity)
		c.Require(decimal && record.ID != "", "records[%d] has id %q and quantity %q", n, record.ID, record.Quantity)
		c.Require(!record.To.Before(record.From) && !record.From.IsZero(),
			"records[%d] is from %s to %s", n, record.From, record.To)
	}
}

// usageCursor follows usage to its end, within a bound on the pages.
func usageCursor(c *trial.Check) {
	i := c.Metered()
	seen, cursor := map[string]bool{}, ""
	for range maxUsagePages {
		page := c.Usage(i, cursor)
		for _, record := range page.Records {
			c.Require(!seen[record.ID], "record %s was sent twice", record.ID)
			seen[record.ID] = true
		}
		c.Require(page.Count == 0 || page.Count == len(seen),
			"the cursor is after %d records, of which %d were sent", page.Count, len(seen))
		if len(page.Records) == 0 {
			return
		}
		c.Require(page.Cursor != cursor, "a page with records has the same cursor %q as its request", cursor)
		cursor = page.Cursor
	}
	c.Fail("after %d pages the usage had still not ended", maxUsagePages)
}

func usageStable(c *trial.Check) {
	i := c.Metered()
	first, second := c.Usage(i, ""), c.Usage(i, "")
	for n, record := range first.Records {
		c.Require(n < len(second.Records) && second.Records[n].ID == record.ID,
			"record %s is not in the same place when the same cursor is read again", record.ID)
	}
}
