package conformance

import (
	"math/big"
	"net/http"
	"slices"

	"github.com/gpuaas/app-platform/sdk/adapter"
)

const inUsage = "GET /v1/instances/{id}/usage"

// maxUsagePages bounds how far the suite follows usage.
const maxUsagePages = 50

func usageClauses() []Clause {
	return []Clause{
		{ID: "usage.valid", Section: inUsage, Rule: "usage is records of described dimensions with a decimal quantity and a stretch of time", Needs: []string{created},
			Fix: "answer UsagePage as in the OpenAPI document; an app that meters nothing answers no records", run: usageValid},
		{ID: "usage.cursor", Section: inUsage, Rule: "the cursor continues: no record comes twice, and there is an end", Needs: []string{"usage.valid"},
			Fix: "give records ids that are derived from what they count, and let the cursor stand behind the last one sent", run: usageCursor},
		{ID: "usage.stable", Section: inUsage, Rule: "the same cursor answers the same records again", Needs: []string{"usage.valid"},
			Fix: "do not forget records when they have been read: the reader may have crashed", run: usageStable},
	}
}

// usage reads one page.
func (c *check) usage(i *instance, cursor string) adapter.UsagePage {
	answer := c.call(letter{method: http.MethodGet, target: adapter.UsagePath(i.as.ID, cursor), access: c.grant(i, newID("call")).Token()})
	c.unless(answer.status == http.StatusOK, "it was answered %s", answer.say())
	var page adapter.UsagePage
	c.decode(answer, "the usage", &page)
	return page
}

func usageValid(c *check) {
	page := c.usage(c.shared(), "")
	c.unless(len(page.Records) <= adapter.MaxUsageRecords, "a page holds %d records, more than %d", len(page.Records), adapter.MaxUsageRecords)
	for n, record := range page.Records {
		known := slices.ContainsFunc(c.app.UsageDimensions, func(d adapter.UsageDimension) bool { return d.Name == record.Dimension })
		c.unless(known, "records[%d].dimension is %q, which is not described", n, record.Dimension)
		_, decimal := new(big.Rat).SetString(record.Quantity)
		c.unless(decimal && record.ID != "", "records[%d] has id %q and quantity %q", n, record.ID, record.Quantity)
		c.unless(!record.To.Before(record.From) && !record.From.IsZero(), "records[%d] is from %s to %s", n, record.From, record.To)
	}
}

// metered skips the clause for apps without usage.
func (c *check) metered() *instance {
	if len(c.app.UsageDimensions) == 0 {
		c.skip("the app describes no usage dimensions")
	}
	return c.shared()
}

func usageCursor(c *check) {
	i := c.metered()
	seen, cursor := map[string]bool{}, ""
	for range maxUsagePages {
		page := c.usage(i, cursor)
		for _, record := range page.Records {
			c.unless(!seen[record.ID], "record %s came twice", record.ID)
			seen[record.ID] = true
		}
		if len(page.Records) == 0 {
			return
		}
		c.unless(page.Cursor != cursor, "a page with records has the cursor %q that it was asked with", cursor)
		cursor = page.Cursor
	}
	c.fail("after %d pages the usage was still not at its end", maxUsagePages)
}

func usageStable(c *check) {
	i := c.metered()
	first, second := c.usage(i, ""), c.usage(i, "")
	for n, record := range first.Records {
		c.unless(n < len(second.Records) && second.Records[n].ID == record.ID, "record %s is not at its place when the same cursor is asked again", record.ID)
	}
}
