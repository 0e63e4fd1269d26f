package conformance

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/gpuaas/app-platform/sdk/adapter"
)

const inFeed = "GET /v1/operations"

// maxDrain is how many pages are read at most until a feed must be at its end.
const maxDrain = 200

func feedClauses() []Clause {
	return []Clause{
		{ID: "feed.first", Section: inFeed, Rule: "without a cursor the answer comes at once, with everything that has not ended, an epoch and a cursor", Needs: []string{created},
			Fix: "answer an empty cursor without waiting, from the operations under way", run: feedFirst},
		{ID: "feed.continues", Section: inFeed, Rule: "a cursor continues the feed: what has not changed since is not sent again", Needs: []string{"feed.first"},
			Fix: "give every change a rising version and send what is above the cursor's", run: feedContinues},
		{ID: "feed.foreign", Section: inFeed, Rule: "a cursor of another epoch is answered like none, with a cursor of this epoch", Needs: []string{"feed.first"},
			Fix: "keep the epoch in the cursor; when it is not yours, send everything that has not ended", run: feedForeign},
		{ID: "feed.waits", Section: inFeed, Rule: "with nothing new the answer waits as long as it was asked to, and no longer", Needs: []string{"feed.continues"},
			Fix: "hold the request until something changes or the wait is over, then answer 200 with an empty page", run: feedWaits},
		{ID: "feed.wakes", Section: inFeed, Rule: "a change answers a waiting request at once", Needs: []string{"feed.continues"},
			Fix: "wake the waiting requests when a status changes", run: feedWakes},
		{ID: "feed.lossless", Section: inFeed, Rule: "who follows the cursors sees the end of every operation", Needs: []string{"feed.continues"},
			Fix: "publish the end of an operation like every other change, and never give a cursor beyond what was sent", run: feedLossless},
		{ID: "feed.page", Section: inFeed, Rule: "a page holds at most 500 operations, and the cursor of a full page loses none of the rest", Needs: []string{"feed.continues", "decommission.unborn"},
			Fix: "cut the page at 500, and let its cursor stand at the last operation on it", run: feedPage},
	}
}

// page reads one page of the feed.
func (c *check) page(cursor string, wait time.Duration) adapter.OperationsPage {
	target := adapter.ChangesPath(cursor, wait)
	answer := c.call(letter{method: http.MethodGet, target: target, patience: wait + c.bounds.Request})
	c.unless(answer.status == http.StatusOK, "the feed was answered %s", answer.say())
	var page adapter.OperationsPage
	c.decode(answer, "the feed", &page)
	return page
}

// drain follows the feed until a page is empty and returns the cursor.
func (c *check) drain(cursor string) string {
	for range maxDrain {
		page := c.page(cursor, 0)
		if len(page.Operations) == 0 {
			return page.Cursor
		}
		cursor = page.Cursor
	}
	c.fail("after %d pages the feed was still not at its end, though nothing changed", maxDrain)
	return ""
}

func holds(page adapter.OperationsPage, id string) bool {
	return slices.ContainsFunc(page.Operations, func(s adapter.Status) bool { return s.OperationID == id })
}

func feedFirst(c *check) {
	_, d, rule := c.middle()
	began := time.Now()
	page := c.page("", 5*time.Second)
	c.unless(time.Since(began) < 4*time.Second, "an empty cursor was kept waiting %s", time.Since(began).Round(time.Millisecond))
	c.unless(page.Epoch != "" && page.Cursor != "", "epoch is %q and cursor %q", page.Epoch, page.Cursor)
	c.unless(holds(page, d.OperationID), "the page does not hold the operation that is under way")
	rule.Lift()
	c.succeed(d.OperationID)
}

func feedContinues(c *check) {
	cursor := c.drain("")
	_, d := c.create()
	page := c.page(cursor, 0)
	c.unless(holds(page, d.OperationID), "an operation that ran after the cursor is not on the page that continues it")
	c.drain(page.Cursor)
}

func feedForeign(c *check) {
	_, d, rule := c.middle()
	first := c.page("", 0)
	turned := []rune(first.Epoch)
	slices.Reverse(turned)
	foreign := strings.ReplaceAll(first.Cursor, first.Epoch, string(turned))
	if foreign == first.Cursor {
		c.skip("the cursor %q does not hold the epoch, so the suite cannot make one of another", clip(first.Cursor, 40))
	}
	began := time.Now()
	page := c.page(foreign, 5*time.Second)
	c.unless(time.Since(began) < 4*time.Second, "a foreign cursor was kept waiting %s", time.Since(began).Round(time.Millisecond))
	c.unless(page.Epoch == first.Epoch, "the answer's epoch is %q instead of %q", page.Epoch, first.Epoch)
	c.unless(holds(page, d.OperationID), "the page after a foreign cursor does not hold the operation that is under way")
	rule.Lift()
	c.succeed(d.OperationID)
}

func feedWaits(c *check) {
	cursor := c.drain("")
	const asked = time.Second
	began := time.Now()
	page := c.page(cursor, asked)
	took := time.Since(began)
	c.unless(len(page.Operations) == 0, "nothing had changed, and the page holds %d operations", len(page.Operations))
	c.unless(took >= asked*8/10, "it was asked to wait %s, and answered after %s", asked, took.Round(time.Millisecond))
	c.unless(took <= asked+c.bounds.Grace, "it was asked to wait %s, and answered after %s", asked, took.Round(time.Millisecond))
}

func feedWakes(c *check) {
	cursor := c.drain("")
	i := c.instance()
	d := c.dispatch(i, adapter.InstanceCreate)
	rule := c.hold(i, d, 0)
	const asked = 10 * time.Second
	pages := make(chan adapter.OperationsPage, 1)
	var failed error
	go func() {
		defer close(pages)
		answer, err := c.try(letter{method: http.MethodGet, target: adapter.ChangesPath(cursor, asked), patience: asked + c.bounds.Request})
		var page adapter.OperationsPage
		if failed = err; err == nil {
			failed = decodePage(answer, &page)
		}
		if failed == nil {
			pages <- page
		}
	}()
	c.pause(c.bounds.Settle / 2)
	began := time.Now()
	c.accept(d)
	page, ok := <-pages
	took := time.Since(began)
	rule.Lift()
	c.unless(ok, "the waiting request was not answered: %v", failed)
	c.unless(holds(page, d.OperationID), "the waiting request was answered after %s without the new operation", took.Round(time.Millisecond))
	c.unless(took < asked/2, "a change answered the waiting request only after %s", took.Round(time.Millisecond))
	c.succeed(d.OperationID)
}

func feedLossless(c *check) {
	cursor := c.drain("")
	const many = 6
	left := map[string]bool{}
	var dispatches []adapter.Dispatch
	for range many {
		i := c.instance()
		d := c.dispatch(i, adapter.InstanceCreate)
		left[d.OperationID] = true
		dispatches = append(dispatches, d)
	}
	c.opened = append(c.opened, ids(dispatches)...)
	c.together(many, func(n int) error { return c.putOne(dispatches[n]) })
	c.follow(cursor, left)
	for _, d := range dispatches {
		status := c.status(d.OperationID)
		c.unless(status.State == adapter.StateSucceeded, "the feed said that operation %s had ended; its status is %q", d.OperationID, status.State)
	}
}

func ids(dispatches []adapter.Dispatch) (list []string) {
	for _, d := range dispatches {
		list = append(list, d.OperationID)
	}
	return list
}

// together calls work for 0 to n-1, sixteen at a time, and fails with the first error.
func (c *check) together(n int, work func(int) error) {
	slots, failures := make(chan struct{}, 16), make([]error, n)
	var group sync.WaitGroup
	for at := range n {
		slots <- struct{}{}
		group.Go(func() {
			defer func() { <-slots }()
			failures[at] = work(at)
		})
	}
	group.Wait()
	for _, err := range failures {
		c.unless(err == nil, "%v", err)
	}
}

func (c *check) putOne(d adapter.Dispatch) error {
	answer, err := c.try(letter{method: http.MethodPut, target: adapter.OperationPath(d.OperationID), body: c.encode(d)})
	switch {
	case err != nil:
		return fmt.Errorf("a dispatch was not answered: %w", err)
	case answer.status != http.StatusOK && answer.status != http.StatusAccepted:
		return fmt.Errorf("a dispatch was answered %s", answer.say())
	}
	return nil
}

// follow reads the feed from cursor until it has shown the end of all operations.
func (c *check) follow(cursor string, left map[string]bool) {
	end := time.Now().Add(c.bounds.Operation)
	for len(left) > 0 {
		page := c.page(cursor, time.Second)
		c.unless(len(page.Operations) <= adapter.MaxPage, "a page holds %d operations, more than %d", len(page.Operations), adapter.MaxPage)
		for _, status := range page.Operations {
			if status.State.Terminal() {
				delete(left, status.OperationID)
			}
		}
		cursor = page.Cursor
		c.unless(len(left) == 0 || time.Now().Before(end), "after %s the feed had not shown the end of %d operations", c.bounds.Operation, len(left))
	}
}

// feedPage makes more changes than fit a page. Decommissions of what never was are the cheapest
// operations there are.
func feedPage(c *check) {
	if c.bounds.Burst <= adapter.MaxPage {
		c.notRun("a burst of %d operations fills no page of %d", c.bounds.Burst, adapter.MaxPage)
	}
	cursor := c.drain("")
	dispatches := make([]adapter.Dispatch, c.bounds.Burst)
	left := map[string]bool{}
	for n := range dispatches {
		i := c.instance()
		dispatches[n] = c.dispatch(i, adapter.InstanceDecommission)
		left[dispatches[n].OperationID] = true
	}
	c.together(len(dispatches), func(n int) error { return c.putOne(dispatches[n]) })
	for _, d := range dispatches {
		c.await(d.OperationID)
	}
	c.follow(cursor, left)
}
