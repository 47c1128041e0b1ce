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

// Params are the parameters of each path that is answered.
func Params() map[string][]string {
	all := map[string][]string{}
	for _, e := range endpoints {
		all[e.path] = e.params
	}
	return all
}
