package main

import (
	"bufio"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/weirgate/weir/host/devkit"
	"github.com/weirgate/weir/sdk/wire"
)

// pluginAdd is what add was asked for.
type pluginAdd struct {
	g                     *gateway
	file, mode, signature string
	grant                 []string
	yes                   bool
	content               []byte
	name                  string
	permissions           wire.Permissions
}

func pluginAddCommand(g *gateway) *cobra.Command {
	p := &pluginAdd{g: g}
	c := &cobra.Command{
		Use: "add FILE", Short: "Give a plugin to a running gateway", Args: cobra.ExactArgs(1),
		Example: "  weir plugin add acme-quirks.yaml\n  weir plugin add acme.wasm --mode shadow --grant kv,http",
		Long: "Give a plugin, or a new version of one, to a running gateway, which checks it first and keeps it over restarts. FILE is a\n" +
			"pack's source (.yaml) or a module (.wasm). What its manifest asks for is shown with the reasons, and granted after a\n" +
			"question; where nobody can be asked, --grant or --yes must say it. With --mode shadow it runs beside the active version\n" +
			"and decides nothing, until weir plugin promote. FILE.minisig is sent along when it is there. Exit 1 when the gateway\n" +
			"refuses the file. (Without a running gateway, put the file into the plugin folder.)",
		RunE: func(c *cobra.Command, args []string) error {
			p.file = args[0]
			return p.run(c.Context())
		},
	}
	c.Flags().StringVar(&p.mode, "mode", "active", "active, or shadow: a candidate beside the active version")
	c.Flags().StringSliceVar(&p.grant, "grant", nil, "what to grant of what it asks for: http, kv, secrets, terminate, providers, or all, or none")
	c.Flags().BoolVar(&p.yes, "yes", false, "grant all that it asks for, without a question")
	c.Flags().StringVar(&p.signature, "signature", "", "file with its signature (default: FILE.minisig, when it is there)")
	return c
}

func (p *pluginAdd) run(ctx context.Context) error {
	if p.mode != "active" && p.mode != "shadow" {
		return fail(exitUsage, "--mode %s is unknown; say active or shadow", p.mode)
	}
	if _, _, err := p.g.find(); err != nil { // before anybody is asked anything
		return err
	}
	if err := p.read(ctx); err != nil {
		return err
	}
	g, err := p.granted()
	if err != nil {
		return err
	}
	query := url.Values{"mode": {p.mode}, "source": {filepath.Base(p.file)}}
	if g != nil {
		b, err := json.Marshal(g)
		if err != nil {
			return err
		}
		query.Set("grants", string(b))
	}
	r := request{
		method: http.MethodPut, path: "/api/plugins/" + url.PathEscape(p.name) + "?" + query.Encode(), raw: p.content, slow: true,
		status: http.StatusUnprocessableEntity, header: map[string]string{"Content-Type": "application/octet-stream"},
	}
	signature, err := p.signed()
	if err != nil {
		return err
	}
	if signature != nil {
		r.header["X-Weir-Plugin-Signature"] = base64.StdEncoding.EncodeToString(signature)
	}
	var answer putReport
	show, err := p.g.call(ctx, r, &answer)
	if err != nil {
		return err
	}
	return p.report(&answer, show)
}

// putReport is the gateway's answer to a plugin.
type putReport struct {
	OK            bool
	Name, Version string
	Steps         []struct {
		Step, Code, Message string
		OK                  bool
	}
	Warnings []string
	Fault    *pluginFault
}

func (p *pluginAdd) report(a *putReport, show bool) error {
	if show {
		for _, s := range a.Steps {
			line := fmt.Sprintf("%-11s  %s", "ok", s.Step)
			if !s.OK {
				where := p.file
				if f := a.Fault; f != nil && f.Line > 0 {
					where = fmt.Sprintf("%s:%d:%d", p.file, f.Line, f.Column)
				}
				line = fmt.Sprintf("%-11s  %-11s  %s: %s (%s)", "fault", s.Step, where, sentences(s.Message), s.Code)
			}
			if err := p.g.app.say("%s", line); err != nil {
				return err
			}
		}
		for _, w := range a.Warnings {
			if err := p.g.app.say("%-11s  %s", "warning", sentences(w)); err != nil {
				return err
			}
		}
	}
	if !a.OK {
		return fail(exitFaulty, "the gateway did not take %s, and goes on as before; mend the fault above", p.file)
	}
	if !show {
		return nil
	}
	if p.mode == "shadow" {
		return p.g.app.say("%s %s runs in shadow. Next: weir plugin show %s, then weir plugin promote %s", a.Name, a.Version, a.Name, a.Name)
	}
	return p.g.app.say("%s %s is active.", a.Name, a.Version)
}

// read looks into the file for its name and what it asks for.
func (p *pluginAdd) read(ctx context.Context) error {
	k, err := p.g.app.kit()
	if err != nil {
		return err
	}
	n, err := k.Inspect(ctx, p.file)
	if err != nil {
		return fail(exitFaulty, "%v", err)
	}
	var m struct {
		Name        string
		Permissions wire.Permissions
	}
	if json.Unmarshal(n.Manifest, &m) != nil || m.Name == "" {
		for _, f := range n.Refused {
			if err := p.g.app.say("%s", f); err != nil {
				return err
			}
		}
		return fail(exitFaulty, "%s cannot be read as a plugin; mend the faults above", p.file)
	}
	p.name, p.permissions = m.Name, m.Permissions
	if p.content, err = os.ReadFile(p.file); err != nil {
		return fail(exitFaulty, "%s cannot be read; name a file that is there", p.file)
	}
	return nil
}

// signed is the signature that goes along, nil when there is none.
func (p *pluginAdd) signed() ([]byte, error) {
	file := p.signature
	if file == "" {
		file = p.file + ".minisig"
	}
	b, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) && p.signature == "" {
		return nil, nil
	}
	if err != nil {
		return nil, fail(exitFaulty, "the signature %s cannot be read; name a file that is there", file)
	}
	return b, nil
}

// granted is what the plugin may do, nil when it asks for nothing: then what was granted to these bytes before stays.
func (p *pluginAdd) granted() (*devkit.Grants, error) {
	asked := devkit.Asked(p.permissions)
	if len(asked) == 0 {
		if len(p.grant) > 0 && p.grant[0] != "none" && p.grant[0] != "all" {
			return nil, fail(exitUsage, "%s asks for no permission, so there is nothing to grant; leave out --grant", p.name)
		}
		return nil, nil
	}
	if !p.g.asJSON {
		if err := p.g.app.say("%s asks for:", p.name); err != nil {
			return nil, err
		}
		for _, a := range asked {
			if err := p.g.app.say("  %-10s %s", a.Name, a); err != nil {
				return nil, err
			}
		}
	}
	names := p.grant
	switch {
	case p.yes && len(names) > 0:
		return nil, fail(exitUsage, "--yes grants all, and --grant says what; give one of them")
	case p.yes:
		names = []string{"all"}
	case len(names) == 0:
		all, err := p.ask()
		if err != nil {
			return nil, err
		}
		names = []string{all}
	}
	g, err := devkit.Grant(p.permissions, names)
	if err != nil {
		return nil, fail(exitUsage, "%v", err)
	}
	return &g, nil
}

// ask has a person decide; a pipe is nobody.
func (p *pluginAdd) ask() (string, error) {
	nobody := fail(exitUsage, "%s asks for permissions and there is nobody to ask; say --grant with their names, --grant none, or --yes for all", p.name)
	f, ok := p.g.app.in.(*os.File)
	if !ok {
		return "", nobody
	}
	if info, err := f.Stat(); err != nil || info.Mode()&os.ModeCharDevice == 0 {
		return "", nobody
	}
	if _, err := fmt.Fprint(p.g.app.err, "Grant all of this? [y: yes, n: add it without, anything else: leave] "); err != nil {
		return "", err
	}
	answer, err := bufio.NewReader(f).ReadString('\n')
	if err != nil && answer == "" { // no terminal after all, such as /dev/null
		return "", nobody
	}
	if names := meant(answer); names != "" {
		return names, nil
	}
	return "", fail(exitFaulty, "%s was not added", p.name)
}

// meant is what an answer grants; empty: nothing is to be added.
func meant(answer string) string {
	switch strings.ToLower(strings.TrimSpace(answer)) {
	case "y", "yes":
		return "all"
	case "n", "no":
		return "none"
	}
	return ""
}
