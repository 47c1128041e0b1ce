package exchangesim_test

import (
	"io"
	"net/http"
	"testing"

	"exchange-gateway/internal/exchangesim"
)

// BenchmarkBook is what one book costs the simulator, so that a benchmark of something before it can be read.
func BenchmarkBook(b *testing.B) {
	sim, err := exchangesim.New(exchangesim.Config{Unlimited: true})
	if err != nil {
		b.Fatal(err)
	}
	defer sim.Close()
	for venue, path := range bookPaths {
		c := &http.Client{Transport: sim.Venue(venue).Transport()}
		b.Run(venue, func(b *testing.B) {
			for b.Loop() {
				res, err := c.Get("http://venue" + path)
				if err != nil {
					b.Fatal(err)
				}
				if _, err := io.Copy(io.Discard, res.Body); err != nil {
					b.Fatal(err)
				}
				if err := res.Body.Close(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
