package event

import "context"

// Send sends what was woken, for a hub that another goroutine may run too, and reports whether somebody else listens.
func (h *Hub) Send(ctx context.Context) (heard bool, err error) {
	own := &Hub{pool: h.pool, log: h.log, self: h.self, queued: map[string]struct{}{"x": {}}}
	own.ear.Store(h.ear.Load())
	err = own.send(ctx)
	return own.alone.IsZero(), err
}
