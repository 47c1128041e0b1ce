package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"exchange-gateway/internal/exchangesim"
)

// run serves until ctx ends; that is success.
func run(ctx context.Context, args []string, getenv func(string) string, stdout io.Writer) (err error) {
	f, err := parse(args, getenv, stdout)
	if errors.Is(err, errHelp) {
		return nil
	}
	if err != nil {
		return err
	}
	cfg, err := configure(f)
	if err != nil {
		return err
	}
	sim, err := exchangesim.New(cfg)
	if err != nil {
		return err
	}
	var servers []*exchangesim.Server
	defer func() {
		sim.Close()
		for _, s := range servers {
			err = errors.Join(err, s.Close())
		}
	}()
	urls := map[string]string{}
	for _, v := range sim.Venues() {
		addr, aerr := f.address(v.ID())
		if aerr != nil {
			return aerr
		}
		if addr == "" {
			continue
		}
		srv, url, serr := start(ctx, sim, v, addr, f)
		if serr != nil {
			return serr
		}
		servers, urls[v.ID()] = append(servers, srv), url
	}
	if f.Control != "" {
		srv, serr := sim.StartHandler(ctx, sim.Control(), f.Control)
		if serr != nil {
			return fmt.Errorf("control endpoint: %w", serr)
		}
		servers, urls["control"] = append(servers, srv), srv.URL()
	}
	if f.Schedule != "" {
		sc, serr := exchangesim.ReadSchedule(f.Schedule)
		if serr != nil {
			return serr
		}
		if serr := sim.StartSchedule(sc); serr != nil {
			return serr
		}
	}
	if err := announce(sim, cfg, f, urls, stdout); err != nil {
		return err
	}
	<-ctx.Done()
	return nil
}

// start serves a venue, behind a relay if asked, and gives the URL for clients.
func start(ctx context.Context, sim *exchangesim.Sim, v *exchangesim.Venue, addr string, f flags) (*exchangesim.Server, string, error) {
	opt := exchangesim.StartOptions{TLS: f.TLS}
	if !f.Relay {
		srv, err := sim.Start(ctx, v, addr, opt)
		if err != nil {
			return nil, "", err
		}
		return srv, srv.URL(), nil
	}
	srv, err := sim.Start(ctx, v, "127.0.0.1:0", opt)
	if err != nil {
		return nil, "", err
	}
	relay, err := sim.StartRelay(ctx, v, addr, srv.Addr())
	if err != nil {
		return nil, "", errors.Join(err, srv.Close())
	}
	scheme := "http://"
	if f.TLS {
		scheme = "https://"
	}
	return srv, scheme + relay.Addr(), nil
}

// configure reads the files that the flags name.
func configure(f flags) (exchangesim.Config, error) {
	cfg := exchangesim.Config{Seed: f.Seed, Unlimited: f.NoLimits, OKXRegion: f.Region, OKXLimitAs200: f.OKX200}
	switch {
	case f.Keys != "":
		data, err := os.ReadFile(f.Keys)
		if err != nil {
			return cfg, fmt.Errorf("keys: %w", err)
		}
		if err := json.Unmarshal(data, &cfg.Credentials); err != nil {
			return cfg, fmt.Errorf("keys %s: %w", f.Keys, err)
		}
		if cfg.Credentials == nil {
			cfg.Credentials = []exchangesim.Credential{} // an empty list: nobody is known
		}
	case f.KeysOut != "":
		rsa, err := exchangesim.NewRSACredential()
		if err != nil {
			return cfg, err
		}
		cfg.Credentials = append(exchangesim.ExampleCredentials(), rsa)
	default:
		cfg.Credentials = exchangesim.ExampleCredentials()
	}
	if f.Replay != "" {
		m, err := exchangesim.ReadManifest(f.Replay)
		if err != nil {
			return cfg, err
		}
		cfg.Replay = m
	}
	return cfg, nil
}

// announce writes the files that clients wait for, the ready file last, and prints the URLs.
func announce(sim *exchangesim.Sim, cfg exchangesim.Config, f flags, urls map[string]string, stdout io.Writer) error {
	if f.CAFile != "" {
		pem, err := sim.CertPEM()
		if err != nil {
			return err
		}
		if err := os.WriteFile(f.CAFile, pem, 0o644); err != nil {
			return fmt.Errorf("CA file: %w", err)
		}
	}
	if f.KeysOut != "" {
		if err := writeJSON(f.KeysOut, cfg.Credentials, 0o600); err != nil {
			return err
		}
	}
	line := "exchangesim ready:"
	for _, name := range []string{"binance", "okx", "coinbase", "control"} {
		if url, ok := urls[name]; ok {
			line += " " + name + "=" + url
		}
	}
	if _, err := fmt.Fprintln(stdout, line); err != nil {
		return err
	}
	if f.Ready != "" {
		return writeJSON(f.Ready, urls, 0o644)
	}
	return nil
}

// writeJSON writes a file whole: others may be waiting for it.
func writeJSON(path string, v any, mode os.FileMode) error {
	data, err := json.MarshalIndent(v, "", " ")
	if err != nil {
		return err
	}
	tmp := path + ".tmp"
	if err := os.WriteFile(tmp, append(data, '\n'), mode); err != nil {
		return err
	}
	return os.Rename(tmp, path)
}
