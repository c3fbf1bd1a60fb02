package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/spf13/cobra"

	"github.com/weirgate/weir/host/devkit"
)

const moduleLine = "module github.com/weirgate/weir"

func (a *app) pluginNew() *cobra.Command {
	var n devkit.New
	var dir string
	c := &cobra.Command{
		Use: "new NAME", Short: "Write a folder to start a plugin from", Args: cobra.ExactArgs(1),
		Example: "  weir plugin new acme-quirks --kind restatement\n  weir plugin new acme --kind executor --lang go",
		Long: "Write a folder with a plugin that builds, passes its own tests and loads as it is. In YAML (--lang pack) no compiler is\n" +
			"needed: edit the file and save it into the plugin folder.",
		RunE: func(_ *cobra.Command, args []string) error {
			n.Name = args[0]
			if dir == "" {
				dir = n.Name
			}
			if err := a.sdkOf(&n); err != nil {
				return err
			}
			files, err := n.Write(dir)
			if err != nil {
				return fail(exitFaulty, "%v", err)
			}
			for _, f := range files {
				if err := a.say("%s", f); err != nil {
					return err
				}
			}
			if n.Lang == devkit.LangGo {
				return a.say("Next: weir plugin build %s", dir)
			}
			return a.say("Next: weir plugin check %s", filepath.Join(dir, n.Name+".yaml"))
		},
	}
	c.Flags().StringVar(&n.Kind, "kind", "", "executor, restatement or classifier")
	c.Flags().StringVar(&n.Lang, "lang", devkit.LangPack, "pack (YAML) or go")
	c.Flags().StringVar(&dir, "dir", "", "folder to write (default: NAME)")
	c.Flags().StringVar(&n.Sources, "sdk", "", "folder with the sources of Weir, for --lang go (default: the released module of this version; for a development build $WEIR_SDK, or the checkout around)")
	_ = c.MarkFlagRequired("kind") // the flag is there
	return c
}

var released = regexp.MustCompile(`^v?[0-9]+\.[0-9]+\.[0-9]+$`)

// sourcesHere is where the sources of Weir are for a development build: WEIR_SDK, or the checkout that this is called in; empty: not
// known.
func (a *app) sourcesHere() string {
	if dir, ok := a.env("WEIR_SDK"); ok && dir != "" {
		return dir
	}
	dir, err := os.Getwd()
	for err == nil {
		b, _ := os.ReadFile(filepath.Join(dir, "go.mod"))
		if first, _, _ := strings.Cut(string(b), "\n"); strings.TrimSpace(first) == moduleLine {
			return dir
		}
		above := filepath.Dir(dir)
		if above == dir {
			break
		}
		dir = above
	}
	return ""
}

// sdkOf says where a Go plugin finds the sdk: in the folder that is named, else in the release of this program, and for a
// development build in the checkout around.
func (a *app) sdkOf(n *devkit.New) error {
	if n.Sources == "" && !released.MatchString(version) {
		n.Sources = a.sourcesHere()
	}
	if n.Sources != "" {
		dir, err := filepath.Abs(n.Sources)
		if err != nil {
			return fail(exitUsage, "--sdk %s is no folder (%v); name the sources of Weir", n.Sources, err)
		}
		b, _ := os.ReadFile(filepath.Join(dir, "go.mod"))
		if first, _, _ := strings.Cut(string(b), "\n"); strings.TrimSpace(first) != moduleLine {
			return fail(exitUsage, "--sdk %s does not hold the sources of Weir; name the folder with its go.mod", n.Sources)
		}
		n.Sources, n.Require = dir, "v0.0.0"
		return nil
	}
	if released.MatchString(version) {
		n.Require = "v" + strings.TrimPrefix(version, "v")
	}
	return nil
}
