package read

// Value returns what a nullable argument holds, or the zero value.
func Value[T any](v *T) T {
	if v == nil {
		var zero T
		return zero
	}
	return *v
}
