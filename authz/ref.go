package authz

// Ref names who did something, as it was then: what rows and answers keep of an actor.
type Ref struct {
	// Kind is the subject's kind.
	Kind string
	// ID is the subject's id.
	ID string
	// Name is the name it had then.
	Name string
}

// Ref is what rows keep of the actor.
func (a *Actor) Ref() Ref { return Ref{Kind: string(a.Kind), ID: string(a.ID), Name: a.Name} }
