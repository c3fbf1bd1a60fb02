package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/weirgate/weir/host/config"
)

// gateway is the running gateway that a command talks to (CLI-1).
type gateway struct {
	app                  *app
	addr, adminKey, data string
	asJSON               bool
}

// command adds the flags that every talking command has.
func (g *gateway) command(build func(*gateway) *cobra.Command) *cobra.Command {
	c := build(g)
	g.flags(c)
	return c
}

func (g *gateway) group(build func(*gateway) *cobra.Command) *cobra.Command {
	c := build(g)
	c.Args = cobra.NoArgs
	c.RunE = func(c *cobra.Command, _ []string) error { return c.Help() }
	g.flags(c)
	return c
}

func (g *gateway) flags(c *cobra.Command) {
	f := c.PersistentFlags()
	f.StringVar(&g.addr, "addr", "", "address of the gateway (default: $WEIR_ADDR, then the data folder's addr file)")
	f.StringVar(&g.adminKey, "admin-key", "", "admin key (default: $WEIR_ADMIN_KEY, then the data folder's admin.key)")
	f.StringVar(&g.data, "data", "", "data folder (default: $WEIR_DATA, then data_dir of the configuration file, then ./weir-data)")
	f.BoolVar(&g.asJSON, "json", false, "print JSON")
}

func (g *gateway) folder() string {
	if d := g.app.lookup(g.data, "WEIR_DATA"); d != "" {
		return d
	}
	exists := func(path string) bool { _, err := os.Stat(path); return err == nil }
	if path := config.FindPath(config.Flags{}, g.app.env, exists); path != "" {
		// Faults are not our business, nor are variables that only the shell of serve has.
		if f, _ := config.LoadPart(path, g.app.env); f != nil && f.DataDir != "" {
			return f.DataDir
		}
	}
	return defaultData
}

const defaultData = "weir-data"

// find returns the base address, and the addr file that named it, if one did.
func (g *gateway) find() (base, file string, err error) {
	addr := g.app.lookup(g.addr, "WEIR_ADDR")
	if addr == "" {
		file = filepath.Join(g.folder(), "addr")
		b, err := os.ReadFile(file)
		if err != nil {
			return "", "", fail(exitUnreachable, "no gateway found: neither --addr nor WEIR_ADDR is set, and there is no %s; "+
				"start one with weir serve", file)
		}
		addr = strings.TrimSpace(string(b))
	}
	if !strings.Contains(addr, "://") {
		addr = "http://" + addr
	}
	return strings.TrimRight(addr, "/"), file, nil
}

func (g *gateway) key() string {
	if k := g.app.lookup(g.adminKey, "WEIR_ADMIN_KEY"); k != "" {
		return k
	}
	b, err := os.ReadFile(filepath.Join(g.folder(), "admin.key"))
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}

// request is one call of the management API.
type request struct {
	method, path string
	body         any
	raw          []byte // in place of body: what is no JSON
	header       map[string]string
	accept       string
	slow         bool // no time limit: a feed, a test of a connection, or a module that is compiled
	status       int  // beside the good ones, the status of an answer that is read all the same; 0: none
}

// do sends r and returns the answer's body, open, when its status is good.
func (g *gateway) do(ctx context.Context, r request) (io.ReadCloser, error) {
	base, file, err := g.find()
	if err != nil {
		return nil, err
	}
	var body io.Reader
	if r.body != nil {
		b, err := json.Marshal(r.body)
		if err != nil {
			return nil, err
		}
		body = bytes.NewReader(b)
	}
	if r.raw != nil {
		body = bytes.NewReader(r.raw)
	}
	req, err := http.NewRequestWithContext(ctx, r.method, base+r.path, body)
	if err != nil {
		return nil, fail(exitUsage, "the address %q of the gateway is not valid; write one such as 127.0.0.1:8787", base)
	}
	if k := g.key(); k != "" {
		req.Header.Set("Authorization", "Bearer "+k)
	}
	if r.accept != "" {
		req.Header.Set("Accept", r.accept)
	}
	for name, value := range r.header {
		req.Header.Set(name, value)
	}
	client := &http.Client{Timeout: 10 * time.Second, CheckRedirect: func(*http.Request, []*http.Request) error {
		return http.ErrUseLastResponse // the admin key never follows a redirect
	}}
	if r.slow {
		client.Timeout = 0
	}
	resp, err := client.Do(req)
	if err != nil {
		return nil, unreachable(err, base, file)
	}
	if resp.StatusCode >= 200 && resp.StatusCode < 300 || resp.StatusCode == r.status {
		return resp.Body, nil
	}
	defer resp.Body.Close()
	return nil, g.refusal(resp)
}

func unreachable(err error, base, file string) error {
	if errors.Is(err, context.Canceled) {
		return fail(exitKilled, "")
	}
	why := "no answer"
	if t, ok := errors.AsType[net.Error](err); ok && t.Timeout() {
		why = "no answer in time"
	} else if op, ok := errors.AsType[*net.OpError](err); ok {
		why = op.Err.Error()
	}
	if file != "" {
		return fail(exitUnreachable, "the gateway that %s names (%s) no longer answers (%s): the file is stale; "+
			"start the gateway with weir serve", file, base, why)
	}
	return fail(exitUnreachable, "no gateway answers at %s (%s); start one with weir serve, or name another with --addr", base, why)
}

// refusal turns an error answer into one sentence.
func (g *gateway) refusal(resp *http.Response) error {
	b, _ := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	var answer struct {
		Error json.RawMessage `json:"error"`
	}
	_ = json.Unmarshal(b, &answer) // an answer that is none of ours has no message
	var problem struct {
		Message string `json:"message"`
		Details []struct{ Field, Message string }
	}
	if json.Unmarshal(answer.Error, &problem) != nil {
		_ = json.Unmarshal(answer.Error, &problem.Message)
	}
	sentence := problem.Message
	for i, d := range problem.Details {
		sep := "; "
		if i == 0 {
			sentence, sep = strings.TrimSuffix(sentence, "."), ": "
		}
		sentence += sep + d.Field + ": " + d.Message
	}
	if sentence == "" {
		sentence = fmt.Sprintf("the gateway answered %s", resp.Status)
	}
	switch resp.StatusCode {
	case http.StatusUnauthorized:
		return fail(exitRefused, "%s Give it with --admin-key or WEIR_ADMIN_KEY, or name the gateway's data folder with --data.",
			sentence)
	case http.StatusForbidden, http.StatusTooManyRequests:
		return fail(exitRefused, "%s", sentence)
	}
	return &failure{code: exitFaulty, sentence: sentence, status: resp.StatusCode}
}

// call sends r and decodes the answer into dst. With --json it also prints the answer, and show is false.
func (g *gateway) call(ctx context.Context, r request, dst any) (show bool, err error) {
	body, err := g.do(ctx, r)
	if err != nil {
		return false, err
	}
	defer body.Close()
	b, err := io.ReadAll(body)
	if err != nil {
		return false, fail(exitUnreachable, "the gateway's answer broke off; try again")
	}
	if err := json.Unmarshal(b, dst); err != nil {
		return false, unreadable()
	}
	if !g.asJSON {
		return true, nil
	}
	var out bytes.Buffer
	if err := json.Indent(&out, bytes.TrimSpace(b), "", "  "); err != nil {
		return false, err
	}
	_, err = fmt.Fprintln(g.app.out, out.String())
	return false, err
}

// listPage is how many objects one call of list asks for, the most that the API gives.
const listPage = 1000

// list reads all pages of a list into dst, a slice of the objects under the name plural. With --json it prints them, and show
// is false.
func (g *gateway) list(ctx context.Context, path, plural string, query url.Values, dst any) (show bool, err error) {
	if query == nil {
		query = url.Values{}
	}
	query.Set("limit", fmt.Sprint(listPage))
	all := []json.RawMessage{}
	for {
		query.Set("offset", fmt.Sprint(len(all)))
		var answer map[string]json.RawMessage
		if err := g.get(ctx, path+"?"+query.Encode(), &answer); err != nil {
			return false, err
		}
		var part []json.RawMessage
		if err := json.Unmarshal(answer[plural], &part); err != nil {
			return false, unreadable()
		}
		if all = append(all, part...); len(part) < listPage {
			break
		}
	}
	if g.asJSON {
		return false, g.app.printJSON(map[string]any{plural: all, "total": len(all)})
	}
	b, err := json.Marshal(all)
	if err != nil {
		return false, err
	}
	return true, json.Unmarshal(b, dst)
}

func unreadable() error {
	return fail(exitFaulty, "the gateway's answer cannot be read; is there something else at that address?")
}
