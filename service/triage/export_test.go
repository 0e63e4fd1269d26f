package triage

// Mutations are those of the table of actions.
func Mutations() []string {
	all := make([]string, len(actions))
	for i, one := range actions {
		all[i] = one.mutation
	}
	return all
}
