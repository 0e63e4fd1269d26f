package together

// Waiting returns how many jobs wait for the next transaction.
func (w *Writer) Waiting() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.waiting)
}
