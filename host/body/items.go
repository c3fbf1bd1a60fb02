package body

// Items returns the number of items of the last top-level member of that name; false when it is missing or no array.
func (s *Scan) Items(name string) (int, bool) {
	i := s.find(s.src.Bytes(), name)
	if i < 0 || s.list[i].kind != Array {
		return 0, false
	}
	return int(s.list[i].items), true
}
