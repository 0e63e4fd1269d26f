package policy

import "github.com/gpuaas/app-platform/domain/isolation"

// ClassAllowed reports whether every level allows an isolation class.
func (e *Effective) ClassAllowed(class isolation.Class) bool {
	return e.word(classes, string(class), "") == nil
}

// Classes checks that one of some isolation classes is allowed, the weakest first: it refuses when all are denied.
func (e *Effective) Classes(some []isolation.Class, path string) error {
	var answers []error
	for _, class := range some {
		err := e.word(classes, string(class), path)
		if err == nil {
			return nil
		}
		answers = append(answers, err)
	}
	return Join(answers...)
}

// Profile checks a profile of members.
func (e *Effective) Profile(profile isolation.Profile, path string) error {
	return e.word(profiles, string(profile), path)
}
