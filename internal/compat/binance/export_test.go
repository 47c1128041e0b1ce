package binance

// Variants is how many filtered lists are kept.
func (f *Facade) Variants() int {
	i := f.info.Load()
	if i == nil {
		return 0
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	return len(i.variants)
}
