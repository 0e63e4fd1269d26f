// Package record holds the objects of the transports' test schema.
package record

import "strconv"

// Item is a node that has children of its own, without end.
type Item struct {
	ID   string
	Name string
}

// IsNode marks Item as a Node.
func (Item) IsNode() {}

// GetID implements the generated Node interface.
func (i Item) GetID() string { return i.ID }

// Parent returns none.
func (Item) Parent() *Item { return nil }

// Tags returns two.
func (Item) Tags() []string { return []string{"red", "blue"} }

// Peers returns one.
func (i Item) Peers() []*Item { return Items(i.ID, 1) }

// Children returns a page of items below this one.
func (i Item) Children(first, last *int) *Connection { return Page(i.ID, first, last) }

// Edge is one entry of a page.
type Edge struct {
	Cursor string
	Node   *Item
}

// Connection is a page of items.
type Connection struct{ Nodes []*Item }

// Edges returns the page's entries.
func (c Connection) Edges() []*Edge {
	edges := make([]*Edge, len(c.Nodes))
	for i, node := range c.Nodes {
		edges[i] = &Edge{node.ID, node}
	}
	return edges
}

// TotalCount is the length of the page.
func (c Connection) TotalCount() int { return len(c.Nodes) }

// Items makes n items below an id.
func Items(below string, n int) []*Item {
	items := make([]*Item, n)
	for i := range items {
		id := below + "." + strconv.Itoa(i)
		items[i] = &Item{ID: id, Name: "item " + id}
	}
	return items
}

// Page returns as many items as requested, two by default.
func Page(below string, first, last *int) *Connection {
	n := 2
	if first != nil {
		n = *first
	}
	if last != nil {
		n = *last
	}
	return &Connection{Nodes: Items(below, n)}
}
