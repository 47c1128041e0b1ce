package ops

// Rebuild builds the overview although the last one is young.
func (b *Board) Rebuild() {
	b.building.Lock()
	defer b.building.Unlock()
	b.build()
}
