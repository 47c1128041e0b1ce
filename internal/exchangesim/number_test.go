package exchangesim

import "testing"

func TestUnit_prints(t *testing.T) {
	f := func(step string, n int64, plain, eight string) {
		t.Helper()
		u, err := parseUnit(step)
		if err != nil {
			t.Fatal(err)
		}
		if got := u.plain(n); got != plain {
			t.Errorf("%d x %s: plain %s, want %s", n, step, got, plain)
		}
		if got := u.eight(n); got != eight {
			t.Errorf("%d x %s: eight %s, want %s", n, step, got, eight)
		}
	}
	f("0.01", 6400000, "64000", "64000.00000000")
	f("0.01", 5, "0.05", "0.05000000")
	f("0.5", 3, "1.5", "1.50000000")
	f("10", 7, "70", "70.00000000")
	f("1", 0, "0", "0.00000000")
	f("0.00000001", 1842, "0.00001842", "0.00001842")
	f("0.000000000001", 1731, "0.000000001731", "0.000000001731")
	f("0.01", -250, "-2.5", "-2.50000000")
	f("1000000", 9223372036854, "9223372036854000000", "9223372036854000000.00000000")
	f("1000000", 92233720368547758, "92233720368547758000000", "92233720368547758000000.00000000") // past an int64
}

func TestAmount_isExact(t *testing.T) {
	must := func(s string) amount {
		a, err := parseAmount(s)
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	for _, tc := range []struct{ got, want string }{
		{must("123456789012").add(must("0.00000001")).plain(), "123456789012.00000001"},
		{must("1.5").sub(must("2.75")).plain(), "-1.25"},
		{must("0.1").mul(must("0.2")).plain(), "0.02"},
		{must("1").div(must("3"), 4).fixed(4), "0.3333"},
		{must("1").div(must("0"), 4).fixed(4), "0.0000"},
		{must("1.23456").fixed(2), "1.23"},
		{must("-0.5").fixed(16), "-0.5000000000000000"},
		{must("7").fixed(40), "7.0000000000000000000000000000000000000000"},
		{must("").plain(), "0"},
	} {
		if tc.got != tc.want {
			t.Errorf("got %s, want %s", tc.got, tc.want)
		}
	}
	for _, bad := range []string{"1e5", "+1", "1_000", "x", "1.-5", ".", "--1", "0x10"} {
		if a, err := parseAmount(bad); err == nil {
			t.Errorf("%q was read as %s", bad, a.plain())
		}
	}
}
