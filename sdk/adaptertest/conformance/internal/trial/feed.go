package trial

import (
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/gpuaas/app-platform/sdk/adapter"
)

// ReadPage reads one page of the feed.
func (c *Check) ReadPage(cursor string, wait time.Duration) adapter.OperationsPage {
	target := adapter.ChangesPath(cursor, wait)
	answer := c.Call(Letter{Method: http.MethodGet, Target: target, Patience: wait + c.Bounds.Request})
	c.Require(answer.Status == http.StatusOK, "the feed returned %s", answer.Say())
	var page adapter.OperationsPage
	c.Decode(answer, "the feed", &page)
	return page
}

// DecodePage decodes an answer of the feed.
func DecodePage(answer Reply, page *adapter.OperationsPage) error {
	if answer.Status != http.StatusOK {
		return fmt.Errorf("the feed returned %s", answer.Say())
	}
	return json.Unmarshal(answer.Body, page)
}
