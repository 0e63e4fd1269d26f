package transport

import (
	"container/list"
	"sync"

	"github.com/vektah/gqlparser/v2/ast"

	"github.com/gpuaas/app-platform/transport/guard"
)

// document is a parsed, validated document with its price plan. It is never modified.
type document struct {
	ast   *ast.QueryDocument
	plan  *guard.Plan
	plain bool // it selects a field of Config.Uncompressed
}

// Bounds of the document cache. A syntax tree takes some tens of times its text, so the
// text is what must be bounded.
const (
	cacheDocuments     = 1000
	cacheBytes         = 2 << 20
	cacheDocumentBytes = 16 << 10
)

// cache keeps the least recently used documents by their text.
type cache struct {
	mu      sync.Mutex
	entries map[string]*list.Element
	order   *list.List // of *entry, most recent first
	bytes   int
}

type entry struct {
	text string
	doc  *document
}

func newCache() *cache {
	return &cache{entries: map[string]*list.Element{}, order: list.New()}
}

func (c *cache) get(text string) *document {
	c.mu.Lock()
	defer c.mu.Unlock()
	at := c.entries[text]
	if at == nil {
		return nil
	}
	c.order.MoveToFront(at)
	return at.Value.(*entry).doc
}

func (c *cache) add(text string, doc *document) {
	if len(text) > cacheDocumentBytes {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.entries[text] != nil {
		return
	}
	c.entries[text] = c.order.PushFront(&entry{text, doc})
	c.bytes += len(text)
	for c.order.Len() > cacheDocuments || c.bytes > cacheBytes {
		oldest := c.order.Remove(c.order.Back()).(*entry)
		delete(c.entries, oldest.text)
		c.bytes -= len(oldest.text)
	}
}
