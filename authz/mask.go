package authz

// Mask is a set of permission keys, one bit for each.
type Mask [4]uint64

// MaskOf is the set of the keys given.
func MaskOf(keys ...Key) Mask {
	var mask Mask
	for _, key := range keys {
		mask.add(key)
	}
	return mask
}

// Has reports whether the key is in the set; the zero Key never is.
func (m *Mask) Has(key Key) bool { return m[key>>6]&(1<<(key&63)) != 0 && key != 0 }

// Union is the keys of either set.
func (m Mask) Union(other Mask) Mask {
	for i := range m {
		m[i] |= other[i]
	}
	return m
}

// Intersect is the keys of both sets.
func (m Mask) Intersect(other Mask) Mask {
	for i := range m {
		m[i] &= other[i]
	}
	return m
}

// Minus is the keys of this set that are not in the other.
func (m Mask) Minus(other Mask) Mask {
	for i := range m {
		m[i] &^= other[i]
	}
	return m
}

// Empty reports whether the set holds no key.
func (m Mask) Empty() bool { return m == Mask{} }

// Keys lists the set's keys in the order of the catalogue.
func (m Mask) Keys() []Key {
	var keys []Key
	for _, key := range Keys() {
		if m.Has(key) {
			keys = append(keys, key)
		}
	}
	return keys
}

// Names lists the set's keys by name, in the order of the catalogue.
func (m Mask) Names() []string {
	keys := m.Keys()
	out := make([]string, len(keys))
	for i, key := range keys {
		out[i] = key.String()
	}
	return out
}

// add puts a key into the set.
func (m *Mask) add(key Key) { m[key>>6] |= 1 << (key & 63) }
