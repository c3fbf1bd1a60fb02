package main

import (
	"crypto/rand"
	"time"

	"github.com/spf13/cobra"

	"github.com/weirgate/weir/host/devkit"
)

// passwordEnv names the variable with the password of a secret key. A flag would be seen by everybody on the machine.
const passwordEnv = "WEIR_SIGN_PASSWORD"

func (a *app) pluginKeygen() *cobra.Command {
	return &cobra.Command{
		Use: "keygen FILE", Short: "Make a pair of keys to sign plugins with", Args: cobra.ExactArgs(1),
		Example: "  weir plugin keygen my-plugins.key",
		Long: "Make a pair of keys in the format of minisign: the secret one in FILE, encrypted with the password in WEIR_SIGN_PASSWORD when\n" +
			"that is set, and the public one in FILE.pub. Keep FILE to yourself.",
		RunE: func(_ *cobra.Command, args []string) error {
			password, _ := a.env(passwordEnv)
			public, err := devkit.Keygen(args[0], password, rand.Reader)
			if err != nil {
				return fail(exitFaulty, "%v", err)
			}
			if err := a.say("The secret key is in %s, the public one in %s.pub. Who trusts you writes into the configuration file:", args[0], args[0]); err != nil {
				return err
			}
			return a.say("plugins: {trust: signed, trusted_keys: [%s]}", public)
		},
	}
}

func (a *app) pluginSign() *cobra.Command {
	var key string
	c := &cobra.Command{
		Use: "sign FILE --key KEY", Short: "Sign a plugin file", Args: cobra.ExactArgs(1),
		Example: "  weir plugin sign acme-quirks.wasm --key my-plugins.key",
		Long: "Sign a pack's source or a module with a secret key of weir plugin keygen or minisign, and write the signature into FILE.minisig.\n" +
			"Hand on both files; minisign -V verifies them too.",
		RunE: func(_ *cobra.Command, args []string) error {
			password, _ := a.env(passwordEnv)
			out, err := devkit.Sign(args[0], key, password, time.Now())
			if err != nil {
				return fail(exitFaulty, "%v", err)
			}
			return a.say("%s is signed: %s", args[0], out)
		},
	}
	c.Flags().StringVar(&key, "key", "", "file with the secret key")
	_ = c.MarkFlagRequired("key") // the flag is there
	return c
}
