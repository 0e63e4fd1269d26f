package live

// subjects counts, for each subject, its subscriptions in each group by the group's key. The server's lock guards it.
type subjects map[string]map[string]int

// full reports whether the subject would use more groups than the limit with one more subscription.
func (s subjects) full(whose, key string, limit int) bool {
	return whose != "" && s[whose][key] == 0 && len(s[whose]) >= limit
}

// add counts one more subscription of a subject in a group.
func (s subjects) add(whose, key string) {
	if whose == "" {
		return
	}
	if s[whose] == nil {
		s[whose] = make(map[string]int)
	}
	s[whose][key]++
}

// remove stops counting one.
func (s subjects) remove(whose, key string) {
	if s[whose] == nil {
		return
	}
	if s[whose][key]--; s[whose][key] <= 0 {
		delete(s[whose], key)
	}
	if len(s[whose]) == 0 {
		delete(s, whose)
	}
}
