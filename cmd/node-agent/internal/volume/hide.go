package volume

import "strings"

// pathless is an error whose text names a storage by its name: a reader of it learns no path of the node.
type pathless struct {
	error
	text string
}

// Error returns the text.
func (p pathless) Error() string { return p.text }

// Unwrap returns the error as it was.
func (p pathless) Unwrap() error { return p.error }

// hide takes the storage's folder out of what an error says.
func (s Storage) hide(err error) error {
	if err == nil {
		return nil
	}
	return pathless{err, strings.ReplaceAll(err.Error(), s.Dir, s.Name)}
}

// hide takes the folder of a volume's storage out of what an error says.
func (s *Store) hide(volume Volume, err error) error {
	for _, one := range s.order {
		if one.Name == volume.Storage {
			return one.hide(err)
		}
	}
	return err
}
