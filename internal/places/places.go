// Package places bounds what is open at once for each key, such as the streams of a tenant.
package places

import "sync"

// Counter counts what is open by key. Its zero value is ready; it keeps only keys that have something open. It is safe
// for concurrent use.
type Counter[K comparable] struct {
	mu   sync.Mutex
	open map[K]int
}

// Take takes a place of a key, which leave gives back however often it is called; not ok when most are taken.
func (c *Counter[K]) Take(key K, most int) (leave func(), ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.open[key] >= most {
		return nil, false
	}
	if c.open == nil {
		c.open = make(map[K]int)
	}
	c.open[key]++
	return sync.OnceFunc(func() { c.leave(key) }), true
}

func (c *Counter[K]) leave(key K) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.open[key]--; c.open[key] == 0 {
		delete(c.open, key)
	}
}
