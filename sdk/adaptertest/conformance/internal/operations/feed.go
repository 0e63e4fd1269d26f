package operations

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/gpuaas/app-platform/sdk/adapter"
	"github.com/gpuaas/app-platform/sdk/adaptertest/conformance/internal/text"
	"github.com/gpuaas/app-platform/sdk/adaptertest/conformance/internal/trial"
)

const inFeed = "GET /v1/operations"

// maxDrain bounds the pages that are read until a feed must be at its end.
const maxDrain = 200

// Feed returns the clauses on the feed of changes.
func Feed() []trial.Clause {
	return []trial.Clause{
		{ID: "feed.first", Section: inFeed, Needs: []string{trial.Created}, Run: feedFirst,
			Rule: "without a cursor the answer is immediate, with everything that has not ended, an epoch and a cursor",
			Fix:  "answer an empty cursor without waiting, from the operations under way"},
		{ID: "feed.continues", Section: inFeed, Needs: []string{"feed.first"}, Run: feedContinues,
			Rule: "a cursor continues the feed: what has not changed since is not sent again",
			Fix:  "give every change a rising version and send what is above the cursor's"},
		{ID: "feed.foreign", Section: inFeed, Needs: []string{"feed.first"}, Run: feedForeign,
			Rule: "a cursor of another epoch is answered like an empty one, with a cursor of this epoch",
			Fix:  "keep the epoch in the cursor; when it is not yours, send everything that has not ended"},
		{ID: "feed.waits", Section: inFeed, Needs: []string{"feed.continues"}, Run: feedWaits,
			Rule: "with nothing new the answer waits as long as the request says, and no longer",
			Fix:  "keep the request open until a change or the end of the wait, then answer 200 with an empty page"},
		{ID: "feed.wakes", Section: inFeed, Needs: []string{"feed.continues"}, Run: feedWakes,
			Rule: "a change answers a waiting request at once",
			Fix:  "wake the waiting requests when a status changes"},
		{ID: "feed.lossless", Section: inFeed, Needs: []string{"feed.continues"}, Run: feedLossless,
			Rule: "a reader that follows the cursors receives the end of every operation",
			Fix: "publish the end of an operation like every other change, and never give a cursor beyond " +
				"what was sent"},
		{ID: "feed.page", Section: inFeed, Needs: []string{"feed.continues", "decommission.unborn"}, Run: feedPage,
			Rule: "a page has at most 500 operations, and the cursor of a full page skips none of the rest",
			Fix:  "end the page at 500 operations, with the cursor of the last one on it"},
	}
}

// drainFeed follows the feed until a page is empty and returns the cursor.
func drainFeed(c *trial.Check, cursor string) string {
	for range maxDrain {
		page := c.ReadPage(cursor, 0)
		if len(page.Operations) == 0 {
			return page.Cursor
		}
		cursor = page.Cursor
	}
	c.Fail("after %d pages the feed had still not ended, although nothing changed", maxDrain)
	return ""
}

func holds(page adapter.OperationsPage, id string) bool {
	return slices.ContainsFunc(page.Operations, func(s adapter.Status) bool { return s.OperationID == id })
}

// feedFirst reads the feed without a cursor while an operation is under way.
func feedFirst(c *trial.Check) {
	_, d, rule := c.Middle()
	began := time.Now()
	page := c.ReadPage("", 5*time.Second)
	c.Require(time.Since(began) < 4*time.Second,
		"an empty cursor was kept waiting %s", time.Since(began).Round(time.Millisecond))
	c.Require(page.Epoch != "" && page.Cursor != "", "epoch is %q and cursor %q", page.Epoch, page.Cursor)
	c.Require(holds(page, d.OperationID), "the page does not contain the operation under way")
	rule.Lift()
	c.Succeed(d.OperationID)
}

func feedContinues(c *trial.Check) {
	cursor := drainFeed(c, "")
	_, d := c.Create()
	page := c.ReadPage(cursor, 0)
	c.Require(holds(page, d.OperationID), "an operation that ran after the cursor is not on the page that continues it")
	drainFeed(c, page.Cursor)
}

// feedForeign reverses the epoch within a cursor and reads the feed with it, as with a cursor of an
// earlier life of the adapter.
func feedForeign(c *trial.Check) {
	_, d, rule := c.Middle()
	first := c.ReadPage("", 0)
	turned := []rune(first.Epoch)
	slices.Reverse(turned)
	foreign := strings.ReplaceAll(first.Cursor, first.Epoch, string(turned))
	if foreign == first.Cursor {
		c.Skip("the cursor %q has no epoch in it: the suite cannot build a foreign one", text.Clip(first.Cursor, 40))
	}
	began := time.Now()
	page := c.ReadPage(foreign, 5*time.Second)
	c.Require(time.Since(began) < 4*time.Second,
		"a foreign cursor was kept waiting %s", time.Since(began).Round(time.Millisecond))
	c.Require(page.Epoch == first.Epoch, "the answer's epoch is %q instead of %q", page.Epoch, first.Epoch)
	c.Require(holds(page, d.OperationID), "the page after a foreign cursor does not contain the operation under way")
	rule.Lift()
	c.Succeed(d.OperationID)
}

// feedWaits lets a request wait at the end of the feed while nothing changes.
func feedWaits(c *trial.Check) {
	cursor := drainFeed(c, "")
	const asked = time.Second
	began := time.Now()
	page := c.ReadPage(cursor, asked)
	took := time.Since(began)
	c.Require(len(page.Operations) == 0, "nothing had changed, but the page has %d operations", len(page.Operations))
	c.Require(took >= asked*8/10, "the wait was %s, but the answer came after %s", asked, took.Round(time.Millisecond))
	c.Require(took <= asked+c.Bounds.Grace,
		"the wait was %s, but the answer came after %s", asked, took.Round(time.Millisecond))
}

// feedWakes lets a request wait at the end of the feed and dispatches meanwhile.
func feedWakes(c *trial.Check) {
	cursor := drainFeed(c, "")
	i := c.NewInstance()
	d := c.Dispatch(i, adapter.InstanceCreate)
	rule := c.Hold(i, d, 0)
	const asked = 10 * time.Second
	pages := make(chan adapter.OperationsPage, 1)
	var failed error
	go func() {
		defer close(pages)
		answer, err := c.Try(trial.Letter{
			Method: http.MethodGet, Target: adapter.ChangesPath(cursor, asked), Patience: asked + c.Bounds.Request,
		})
		var page adapter.OperationsPage
		failed = err
		if err == nil {
			failed = trial.DecodePage(answer, &page)
		}
		if failed == nil {
			pages <- page
		}
	}()
	c.Pause(c.Bounds.Settle / 2)
	began := time.Now()
	c.Accept(d)
	page, ok := <-pages
	took := time.Since(began)
	rule.Lift()
	c.Require(ok, "the waiting request was not answered: %v", failed)
	c.Require(holds(page, d.OperationID),
		"the waiting request was answered after %s without the new operation", took.Round(time.Millisecond))
	c.Require(took < asked/2, "a change answered the waiting request only after %s", took.Round(time.Millisecond))
	c.Succeed(d.OperationID)
}

// feedLossless runs several creates at once and follows the cursors until the end of each was on a
// page.
func feedLossless(c *trial.Check) {
	cursor := drainFeed(c, "")
	const many = 6
	left := map[string]bool{}
	var dispatches []adapter.Dispatch
	for range many {
		i := c.NewInstance()
		d := c.Dispatch(i, adapter.InstanceCreate)
		left[d.OperationID] = true
		dispatches = append(dispatches, d)
	}
	c.Opened = append(c.Opened, ids(dispatches)...)
	together(c, many, func(n int) error { return putOne(c, dispatches[n]) })
	followFeed(c, cursor, left)
	for _, d := range dispatches {
		status := c.Status(d.OperationID)
		c.Require(status.State == adapter.StateSucceeded,
			"the feed reported that operation %s had ended; its status is %q", d.OperationID, status.State)
	}
}

func ids(dispatches []adapter.Dispatch) (list []string) {
	for _, d := range dispatches {
		list = append(list, d.OperationID)
	}
	return list
}

// together calls work for 0 to n-1, sixteen at a time, and fails with the first error.
func together(c *trial.Check, n int, work func(int) error) {
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
		c.Require(err == nil, "%v", err)
	}
}

func putOne(c *trial.Check, d adapter.Dispatch) error {
	answer, err := c.Try(trial.Letter{
		Method: http.MethodPut, Target: adapter.OperationPath(d.OperationID), Body: c.Encode(d),
	})
	switch {
	case err != nil:
		return fmt.Errorf("a dispatch was not answered: %w", err)
	case answer.Status != http.StatusOK && answer.Status != http.StatusAccepted:
		return fmt.Errorf("a dispatch returned %s", answer.Say())
	}
	return nil
}

// followFeed reads the feed from cursor until it has shown the end of all operations.
func followFeed(c *trial.Check, cursor string, left map[string]bool) {
	end := time.Now().Add(c.Bounds.Operation)
	for len(left) > 0 {
		page := c.ReadPage(cursor, time.Second)
		c.Require(len(page.Operations) <= adapter.MaxPage,
			"a page has %d operations, more than %d", len(page.Operations), adapter.MaxPage)
		for _, status := range page.Operations {
			if status.State.Terminal() {
				delete(left, status.OperationID)
			}
		}
		cursor = page.Cursor
		c.Require(len(left) == 0 || time.Now().Before(end),
			"after %s the feed had not shown the end of %d operations", c.Bounds.Operation, len(left))
	}
}

// feedPage makes more changes than fit a page. Decommissions of instances that never were are the
// cheapest operations.
func feedPage(c *trial.Check) {
	if c.Bounds.Burst <= adapter.MaxPage {
		c.NotRun("a burst of %d operations fills no page of %d", c.Bounds.Burst, adapter.MaxPage)
	}
	cursor := drainFeed(c, "")
	dispatches := make([]adapter.Dispatch, c.Bounds.Burst)
	left := map[string]bool{}
	for n := range dispatches {
		i := c.NewInstance()
		dispatches[n] = c.Dispatch(i, adapter.InstanceDecommission)
		left[dispatches[n].OperationID] = true
	}
	together(c, len(dispatches), func(n int) error { return putOne(c, dispatches[n]) })
	for _, d := range dispatches {
		c.Await(d.OperationID)
	}
	followFeed(c, cursor, left)
}
