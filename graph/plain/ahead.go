package plain

import (
	"fmt"

	"golang.org/x/sync/errgroup"
)

// resolved holds the values of the fields of several objects that are read before any of the objects is written: a
// loader reads in one query all that is requested of it at once.
type resolved struct{ steps []taken }

// taken holds the values of one field of the objects; the zero value for a field that is not read ahead.
type taken struct {
	values []any
	// below is of the objects in values together, where some of their fields are read ahead too. The n-th value's
	// objects are those from firsts[n] on.
	below  *resolved
	firsts []int
}

// first returns which of the objects below is the first of the n-th value.
func (t *taken) first(n int) int {
	if t.firsts == nil {
		return 0
	}
	return t.firsts[n]
}

// resolve reads the gathered fields of objects, and those below them level by level. The fields of one level are read
// concurrently, a goroutine for each, as a loader reads at once for all goroutines that wait for it. The limit of a
// document's cost bounds the objects of a level and their fields, as it bounds those of the executor.
func (w *writer) resolve(selected *selection, objects []any) (*resolved, error) {
	out := &resolved{steps: make([]taken, len(selected.steps))}
	var together errgroup.Group
	for i := range selected.steps {
		s := &selected.steps[i]
		if !s.ahead {
			continue
		}
		values := make([]any, len(objects))
		out.steps[i].values = values
		for n, obj := range objects {
			take := func() error {
				return guarded(func() (err error) {
					values[n], err = w.take(s, obj)
					return err
				})
			}
			if s.gathered {
				together.Go(take)
			} else if err := take(); err != nil {
				_ = together.Wait()
				return nil, err
			}
		}
	}
	if err := together.Wait(); err != nil {
		return nil, err
	}
	for i := range selected.steps {
		if s := &selected.steps[i]; s.below != nil && s.below.ahead {
			if err := w.resolveBelow(s, &out.steps[i]); err != nil {
				return nil, err
			}
		}
	}
	return out, nil
}

// resolveBelow reads the gathered fields of the objects that a step's field has.
func (w *writer) resolveBelow(s *step, at *taken) (err error) {
	var objects []any
	at.firsts = make([]int, len(at.values))
	for n, value := range at.values {
		at.firsts[n] = len(objects)
		objects = s.objects(objects, value)
	}
	at.below, err = w.resolve(s.below, objects)
	return err
}

// objects appends the objects that a value of the step's field is or holds.
func (s *step) objects(to []any, value any) []any {
	switch {
	case s.field.many:
		list := value.(List)
		for i := range list.Len() {
			to = append(to, list.At(i))
		}
	case value != nil:
		to = append(to, value)
	}
	return to
}

// guarded calls a function and returns its panic as an error: the executor, which answers the query then, says where.
func guarded(call func() error) (err error) {
	defer func() {
		if cause := recover(); cause != nil {
			err = fmt.Errorf("%w: %v", ErrNot, cause)
		}
	}()
	return call()
}
