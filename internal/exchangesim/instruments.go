package exchangesim

import "time"

// binanceInstruments are the default pairs of Binance: 13 that trade, one halted, one delisted.
func binanceInstruments() []Instrument {
	return []Instrument{
		{Symbol: "BTCUSDT", Base: "BTC", Quote: "USDT", Tick: "0.01", Lot: "0.00001", Price: "64000", Size: "0.4", Gap: 3, Levels: 5000},
		{Symbol: "ETHUSDT", Base: "ETH", Quote: "USDT", Tick: "0.01", Lot: "0.0001", Price: "3200", Size: "5", Levels: 5000},
		{Symbol: "SOLUSDT", Base: "SOL", Quote: "USDT", Tick: "0.01", Lot: "0.001", Price: "150", Size: "40"},
		{Symbol: "ETHBTC", Base: "ETH", Quote: "BTC", Tick: "0.00001", Lot: "0.0001", Price: "0.05", Size: "8", MinNotional: "0.0001"},
		{Symbol: "BTCUSDC", Base: "BTC", Quote: "USDC", Tick: "0.01", Lot: "0.00001", Price: "64000", Size: "0.2", Gap: 3},
		{Symbol: "BNBUSDT", Base: "BNB", Quote: "USDT", Tick: "0.1", Lot: "0.001", Price: "600", Size: "12"},
		{Symbol: "XRPUSDT", Base: "XRP", Quote: "USDT", Tick: "0.0001", Lot: "0.1", Price: "0.62", Size: "9000"},
		{Symbol: "1INCHUSDT", Base: "1INCH", Quote: "USDT", Tick: "0.0001", Lot: "0.1", Price: "0.41", Size: "3000"},
		{Symbol: "USDCUSDT", Calm: 40, Base: "USDC", Quote: "USDT", Tick: "0.0001", Lot: "1", Price: "1", Size: "500000"},
		{Symbol: "SHIBUSDT", Base: "SHIB", Quote: "USDT", Tick: "0.00000001", Lot: "1", Price: "0.00001842", Size: "60000000", MinNotional: "1"},
		{Symbol: "USDTTRY", Calm: 40, Base: "USDT", Quote: "TRY", Tick: "0.01", Lot: "1", Price: "34.2", Size: "20000", MinNotional: "10"},
		{Symbol: "RUNEEUR", Base: "RUNE", Quote: "EUR", Tick: "0.001", Lot: "0.1", Price: "6.25", Size: "120", Spread: 18, Gap: 9, Levels: 9, Every: 20 * time.Second},
		{Symbol: "DUSTETH", Base: "DUST", Quote: "ETH", Tick: "0.00000001", Lot: "1", Price: "0.00000312", Size: "9000", Shape: BidsOnly, Every: 5 * time.Second, MinNotional: "0.001"},
		{Symbol: "HALTUSDT", Base: "HALT", Quote: "USDT", Tick: "0.0001", Lot: "0.1", Price: "2.5", Size: "300", State: Paused},
		{Symbol: "GONEUSDT", Base: "GONE", Quote: "USDT", Tick: "0.0001", Lot: "0.1", Price: "1.25", Size: "300", State: Delisted},
	}
}

// okxInstruments are the default pairs of OKX: 13 that trade, one suspended, one that is gone.
func okxInstruments() []Instrument {
	return []Instrument{
		{Symbol: "BTC-USDT", Base: "BTC", Quote: "USDT", Tick: "0.1", Lot: "0.00000001", Price: "64000", Size: "0.5", Levels: 5000},
		{Symbol: "ETH-USDT", Base: "ETH", Quote: "USDT", Tick: "0.01", Lot: "0.000001", Price: "3200", Size: "6"},
		{Symbol: "SOL-USDT", Base: "SOL", Quote: "USDT", Tick: "0.01", Lot: "0.000001", Price: "150", Size: "30"},
		{Symbol: "ETH-BTC", Base: "ETH", Quote: "BTC", Tick: "0.00001", Lot: "0.000001", Price: "0.05", Size: "8", MinNotional: "0.00001"},
		{Symbol: "BTC-USDC", Base: "BTC", Quote: "USDC", Tick: "0.1", Lot: "0.00000001", Price: "64000", Size: "0.3"},
		{Symbol: "BTC-USD", Base: "BTC", Quote: "USD", Tick: "0.1", Lot: "0.00000001", Price: "64000", Size: "0.3"},
		{Symbol: "XRP-USDT", Base: "XRP", Quote: "USDT", Tick: "0.0001", Lot: "0.000001", Price: "0.62", Size: "9000"},
		{Symbol: "1INCH-USDT", Base: "1INCH", Quote: "USDT", Tick: "0.0001", Lot: "0.000001", Price: "0.41", Size: "3000"},
		{Symbol: "USDC-USDT", Calm: 40, Base: "USDC", Quote: "USDT", Tick: "0.0001", Lot: "0.0001", Price: "1", Size: "400000"},
		{Symbol: "USDT-SGD", Calm: 40, Base: "USDT", Quote: "SGD", Tick: "0.0001", Lot: "0.0001", Price: "1.34", Size: "9000"},
		{Symbol: "BABYDOGE-USDT", Base: "BABYDOGE", Quote: "USDT", Tick: "0.000000000001", Lot: "1000000", Price: "0.000000001731", Size: "900000000000"},
		{Symbol: "LTC-EUR", Base: "LTC", Quote: "EUR", Tick: "0.01", Lot: "0.000001", Price: "83.8", Size: "4", Spread: 12, Gap: 7, Levels: 9, Every: 60 * time.Second},
		{Symbol: "DUST-ETH", Base: "DUST", Quote: "ETH", Tick: "0.00000001", Lot: "1", Price: "0.00000312", Size: "9000", Shape: BidsOnly, Every: 5 * time.Second},
		{Symbol: "HALT-USDT", Base: "HALT", Quote: "USDT", Tick: "0.0001", Lot: "0.1", Price: "2.5", Size: "300", State: Paused},
		{Symbol: "GONE-USDT", Base: "GONE", Quote: "USDT", Tick: "0.0001", Lot: "0.1", Price: "1.25", Size: "300", State: Delisted},
	}
}

// coinbaseInstruments are the default products of Coinbase. BTC-USDC and ETH-USDC show the USD books under another name.
func coinbaseInstruments() []Instrument {
	return []Instrument{
		{Symbol: "BTC-USD", Base: "BTC", Quote: "USD", Tick: "0.01", Lot: "0.00000001", Price: "64000", Size: "0.3", Gap: 3, Levels: 5000, MinNotional: "1"},
		{Symbol: "ETH-USD", Base: "ETH", Quote: "USD", Tick: "0.01", Lot: "0.00000001", Price: "3200", Size: "4", MinNotional: "1"},
		{Symbol: "SOL-USD", Base: "SOL", Quote: "USD", Tick: "0.01", Lot: "0.00000001", Price: "150", Size: "30", MinNotional: "1"},
		{Symbol: "BTC-USDC", Base: "BTC", Quote: "USDC", Tick: "0.01", Lot: "0.00000001", Price: "64000", Size: "0.3", Gap: 3, Levels: 5000, MinNotional: "1", Alias: "BTC-USD"},
		{Symbol: "ETH-USDC", Base: "ETH", Quote: "USDC", Tick: "0.01", Lot: "0.00000001", Price: "3200", Size: "4", MinNotional: "1", Alias: "ETH-USD"},
		{Symbol: "BTC-USDT", Base: "BTC", Quote: "USDT", Tick: "0.01", Lot: "0.00000001", Price: "64000", Size: "0.1", MinNotional: "1"},
		{Symbol: "ETH-USDT", Base: "ETH", Quote: "USDT", Tick: "0.01", Lot: "0.00000001", Price: "3200", Size: "2", MinNotional: "1"},
		{Symbol: "SOL-USDT", Base: "SOL", Quote: "USDT", Tick: "0.01", Lot: "0.00000001", Price: "150", Size: "20", MinNotional: "1"},
		{Symbol: "ETH-BTC", Base: "ETH", Quote: "BTC", Tick: "0.00001", Lot: "0.00000001", Price: "0.05", Size: "5", MinNotional: "0.000016"},
		{Symbol: "1INCH-USD", Base: "1INCH", Quote: "USD", Tick: "0.001", Lot: "0.01", Price: "0.41", Size: "3000", MinNotional: "1"},
		{Symbol: "USDT-USDC", Calm: 40, Base: "USDT", Quote: "USDC", Tick: "0.00001", Lot: "0.01", Price: "0.9998", Size: "300000", MinNotional: "1"},
		{Symbol: "PEPE-USD", Base: "PEPE", Quote: "USD", Tick: "0.00000001", Lot: "1", Price: "0.00000712", Size: "70000000", MinNotional: "1"},
		{Symbol: "CRV-EUR", Base: "CRV", Quote: "EUR", Tick: "0.0001", Lot: "0.01", Price: "3.2985", Size: "400", Spread: 45, Gap: 9, Levels: 9, Every: 30 * time.Second, MinNotional: "1"},
		{Symbol: "DUST-BTC", Base: "DUST", Quote: "BTC", Tick: "0.00000001", Lot: "1", Price: "0.00000312", Size: "9000", Shape: BidsOnly, Every: 5 * time.Second},
		{Symbol: "HALT-USD", Base: "HALT", Quote: "USD", Tick: "0.0001", Lot: "0.1", Price: "2.5", Size: "300", State: Paused},
		{Symbol: "GONE-USD", Base: "GONE", Quote: "USD", Tick: "0.0001", Lot: "0.1", Price: "1.25", Size: "300", State: Delisted},
	}
}
