package standin

import "sync"

// Fate is what happens to a node task.
type Fate int

// The fates: a task is carried out; held until its rule is lifted; failed at once; or lost, as on a
// node that is away, until its rule is lifted.
const (
	Pass Fate = iota
	Hold
	Fail
	Lose
)

// Rule decides the fate of node tasks of an instance from now on.
type Rule struct {
	// Instance is the instance whose tasks the rule is for; empty for all. Member narrows it to one member where
	// it is not empty, Operation to one operation.
	Instance, Member, Operation string
	// Fate is what happens to the tasks.
	Fate Fate
	// Skip is the number of acting tasks that pass before.
	Skip int
	// Looks makes the rule catch tasks that only look as well.
	Looks bool

	platform *Platform
	seen     int
	caught   []*task
	first    chan struct{}
	once     sync.Once
	lifted   bool
	closed   bool
}

// Add puts the rule into force, before all older ones.
func (p *Platform) Add(r *Rule) *Rule {
	p.mu.Lock()
	defer p.mu.Unlock()
	r.platform, r.first = p, make(chan struct{})
	p.rules = append(p.rules, r)
	return r
}

// Caught is closed when the rule has caught its first task.
func (r *Rule) Caught() <-chan struct{} { return r.first }

// Count returns how many tasks the rule has caught.
func (r *Rule) Count() int {
	r.platform.mu.Lock()
	defer r.platform.mu.Unlock()
	return len(r.caught)
}

// Lift ends the rule: the tasks that it holds back go on. Safe to call twice.
func (r *Rule) Lift() {
	r.platform.mu.Lock()
	defer r.platform.mu.Unlock()
	if r.lifted {
		return
	}
	r.lifted = true
	for _, t := range r.caught {
		close(t.free)
	}
}

// fateLocked returns the fate of a new task: the newest rule that fits decides.
func (p *Platform) fateLocked(t *task) Fate {
	for i := len(p.rules) - 1; i >= 0; i-- {
		r := p.rules[i]
		if !r.fits(t) {
			continue
		}
		if r.seen++; r.seen <= r.Skip {
			continue
		}
		r.caught = append(r.caught, t)
		r.once.Do(func() { close(r.first) })
		return r.Fate
	}
	return Pass
}

func (r *Rule) fits(t *task) bool {
	return !r.lifted && !r.closed && (r.Instance == "" || r.Instance == t.grant.instance) &&
		(r.Member == "" || r.Member == t.input.MemberID) &&
		(r.Operation == "" || r.Operation == t.grant.operation) && (r.Looks || Acts(t.input.Kind))
}

// Close makes the rule catch nothing more; the tasks that it holds back stay held until Lift.
func (r *Rule) Close() {
	r.platform.mu.Lock()
	defer r.platform.mu.Unlock()
	r.closed = true
}

// Forget drops lifted rules, so that a long run does not grow without end.
func (p *Platform) Forget() {
	p.mu.Lock()
	defer p.mu.Unlock()
	var kept []*Rule
	for _, r := range p.rules {
		if !r.lifted {
			kept = append(kept, r)
		}
	}
	p.rules = kept
}
