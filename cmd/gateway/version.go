package main

import (
	"encoding/json"
	"fmt"
	"runtime/debug"
)

// build says which program this is.
type build struct {
	Version  string `json:"version"`
	Revision string `json:"revision"`
	Go       string `json:"go"`
}

// thisBuild reads what the Go toolchain wrote into the binary.
func thisBuild() build {
	b := build{Version: "devel", Revision: "unknown", Go: "unknown"}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return b
	}
	b.Go = info.GoVersion
	if v := info.Main.Version; v != "" && v != "(devel)" {
		b.Version = v
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			b.Revision = s.Value
		}
	}
	return b
}

type versionCmd struct {
	JSON bool `help:"Print JSON."`
}

// Run prints the version.
func (v versionCmd) Run(sys system) error {
	b := thisBuild()
	if v.JSON {
		return json.NewEncoder(sys.out).Encode(b)
	}
	_, err := fmt.Fprintf(sys.out, "exchange-gateway %s (revision %s, %s)\n", b.Version, b.Revision, b.Go)
	return err
}
