package calls

import (
	"math/big"
	"net/http"
	"slices"

	"github.com/gpuaas/app-platform/sdk/adapter"
	"github.com/gpuaas/app-platform/sdk/adaptertest/conformance/internal/trial"
)

const inUsage = "GET /v1/instances/{id}/usage"

// maxUsagePages bounds how far the suite follows usage.
const maxUsagePages = 50

// Usage returns the clauses on usage.
func Usage() []trial.Clause {
	return []trial.Clause{
		{ID: "usage.valid", Section: inUsage, Needs: []string{trial.Created}, Run: usageValid,
			Rule: "usage is records of described dimensions with a decimal quantity and a stretch of time",
			Fix:  "answer UsagePage as in the OpenAPI document; an app that meters nothing answers no records"},
		{ID: "usage.cursor", Section: inUsage, Needs: []string{"usage.valid"}, Run: usageCursor,
			Rule: "the cursor continues: no record comes twice, and there is an end",
			Fix:  "give records ids that are derived from what they count, and let the cursor stand behind the last one sent"},
		{ID: "usage.stable", Section: inUsage, Needs: []string{"usage.valid"}, Run: usageStable,
			Rule: "the same cursor answers the same records again",
			Fix:  "do not forget records when they have been read: the reader may have crashed"},
	}
}

// readUsage reads one page of usage.
func readUsage(c *trial.Check, i *trial.Instance, cursor string) adapter.UsagePage {
	answer := c.Call(trial.Letter{
		Method: http.MethodGet, Target: adapter.UsagePath(i.Wire.ID, cursor),
		Access: c.Grant(i, trial.NewID("call")).Token(),
	})
	c.Require(answer.Status == http.StatusOK, "it was answered %s", answer.Say())
	var page adapter.UsagePage
	c.Decode(answer, "the usage", &page)
	return page
}

// usageValid checks the records of the first page.
func usageValid(c *trial.Check) {
	page := readUsage(c, c.Shared(), "")
	c.Require(len(page.Records) <= adapter.MaxUsageRecords,
		"a page holds %d records, more than %d", len(page.Records), adapter.MaxUsageRecords)
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

// metered skips the clause for apps without usage.
func metered(c *trial.Check) *trial.Instance {
	if len(c.App.UsageDimensions) == 0 {
		c.Skip("the app describes no usage dimensions")
	}
	return c.Shared()
}

// usageCursor follows usage to its end, within a bound on the pages.
func usageCursor(c *trial.Check) {
	i := metered(c)
	seen, cursor := map[string]bool{}, ""
	for range maxUsagePages {
		page := readUsage(c, i, cursor)
		for _, record := range page.Records {
			c.Require(!seen[record.ID], "record %s came twice", record.ID)
			seen[record.ID] = true
		}
		if len(page.Records) == 0 {
			return
		}
		c.Require(page.Cursor != cursor, "a page with records has the cursor %q that it was asked with", cursor)
		cursor = page.Cursor
	}
	c.Fail("after %d pages the usage was still not at its end", maxUsagePages)
}

func usageStable(c *trial.Check) {
	i := metered(c)
	first, second := readUsage(c, i, ""), readUsage(c, i, "")
	for n, record := range first.Records {
		c.Require(n < len(second.Records) && second.Records[n].ID == record.ID,
			"record %s is not at its place when the same cursor is asked again", record.ID)
	}
}
