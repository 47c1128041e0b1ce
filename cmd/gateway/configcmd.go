package main

import (
	"context"
	"errors"
	"fmt"

	"exchange-gateway/cmd/gateway/app"
	"exchange-gateway/cmd/gateway/config"
)

type configCmd struct {
	Check configCheckCmd `cmd:"" help:"Read and check the configuration; say what is wrong."`
	Print configPrintCmd `cmd:"" help:"Print the settings in force, secrets hidden."`
}

type configCheckCmd struct {
	settings `embed:""`
}

// Run says everything that is wrong and can be found without opening a socket: names and types, ranges, how the values fit
// together, the shape of every credential, the files that are named, and what would be open to a network. A keys file that
// cannot be read is a mistake here, though serve lives with it.
func (c configCheckCmd) Run(ctx context.Context, sys system) error {
	conf, loaded := c.load(sys)
	if err := errors.Join(app.Check(conf, loaded, sys.program), app.CheckKeys(conf, loaded)); err != nil {
		return err
	}
	a, err := app.New(conf, app.Options{Program: sys.program})
	if err != nil {
		return err
	}
	if err := a.Close(ctx); err != nil {
		return err
	}
	_, err = fmt.Fprintln(sys.out, "the configuration is good")
	return err
}

type configPrintCmd struct {
	settings `embed:""`
}

// Run prints the settings in force.
func (c configPrintCmd) Run(sys system) error {
	conf, err := c.load(sys)
	if err != nil {
		return err
	}
	return config.Print(sys.out, app.InForce(conf))
}
