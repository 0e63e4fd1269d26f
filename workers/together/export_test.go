package together

// Waiting returns how many jobs wait for the next transaction.
func (w *Writer) Waiting() int { return w.group.Waiting() }
