package conformance

import "fmt"

// Version is the version of this suite. It rises when a clause is added, changed or deleted.
const Version = "1.2"

// checkOptions returns what is wrong with the options, before anything is started.
func checkOptions(o Options) error {
	if err := o.Check(); err != nil {
		return err
	}
	return knownClauses(o.Only)
}

func optionf(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrOptions, fmt.Sprintf(format, args...))
}
