package host

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/weirgate/weir/host/plugin"
	"github.com/weirgate/weir/host/signatures"
	"github.com/weirgate/weir/host/vault"
	"github.com/weirgate/weir/plugins"
	"github.com/weirgate/weir/rules/packs"
	"github.com/weirgate/weir/store"
	"github.com/weirgate/weir/store/badger"
)

// openStore opens the data folder: the keys first, since a folder that was written with a secret key must not get a new one
// (DATA-1), then the store.
func (h *Host) openStore(ctx context.Context) error {
	env := func(name string) string {
		v, _ := h.o.Env(name)
		return v
	}
	dir := ""
	if h.keepsFiles() {
		dir = h.process.DataDir
	}
	v, err := vault.Open(dir, h.vaultKeys(env))
	if err != nil {
		return err
	}
	h.vault, h.store = v, h.o.Store
	if h.store == nil {
		st, err := badger.Open(filepath.Join(dir, "badger"), badger.Options{
			Log: h.o.Log, Now: h.o.Now, Free: h.o.FreeSpace, Reserve: h.process.Reserve,
		})
		if err != nil {
			return err
		}
		h.store, h.ownStore = st, true
	}
	if err := h.checkVault(ctx); errors.Is(err, store.ErrDegraded) {
		h.o.Log.Error("the store has no room to write, so nothing is stored until there is; inference goes on", "error", err.Error())
	} else if err != nil {
		return err
	}
	h.signatures = signatures.New(h.store, h.o.Now, h.o.Log.Warn)
	if err := h.signatures.Load(ctx); err != nil {
		return fmt.Errorf("read the signatures of tool calls: %w", err)
	}
	h.notes, err = loadNotes(ctx, h.store, h.o.Log.Warn)
	if err != nil {
		return fmt.Errorf("read the notes of earlier runs: %w", err)
	}
	return nil
}

// checkVault makes sure that the store was written with this secret key, or notes the key in a new store, once (DATA-1). A new
// folder on a full disk cannot have it noted yet: then the next write asks again.
func (h *Host) checkVault(ctx context.Context) error {
	if h.vaultChecked.Load() {
		return nil
	}
	if err := h.vault.Check(ctx, h.store); err != nil {
		return err
	}
	h.vaultChecked.Store(true)
	return nil
}

// vaultKeys are the keys of the environment. Without a data folder to keep them in, keys that are not given live as long as
// this host: what a store that outlives it holds sealed needs WEIR_SECRET_KEY.
func (h *Host) vaultKeys(env func(string) string) vault.Options {
	o := vault.Options{SecretKey: env("WEIR_SECRET_KEY"), AdminKey: env("WEIR_ADMIN_KEY")}
	if h.keepsFiles() {
		return o
	}
	if o.SecretKey == "" {
		key := make([]byte, 32)
		_, _ = rand.Read(key) // never fails
		o.SecretKey = base64.StdEncoding.EncodeToString(key)
	}
	if o.AdminKey == "" {
		o.AdminKey = "weir-admin-" + rand.Text()
	}
	return o
}

// builtinPlugins are the shipped ones: packs and guests, embedded. Their order is that in which providers are owned.
func builtinPlugins() ([]plugin.Builtin, error) {
	list, err := plugin.Packs(plugins.Packs, "*/plugin.yaml")
	if err != nil {
		return nil, err
	}
	rulePacks, err := plugin.Packs(packs.Files, "*.yaml")
	if err != nil {
		return nil, err
	}
	list = append(list, rulePacks...)
	return append(list, plugin.Builtin{Name: "demo", Wasm: plugins.Demo, DemoOnly: true}), nil
}

// pluginsChanged builds a snapshot with the providers of the new set.
func (h *Host) pluginsChanged() {
	h.refresh.report(0)
	if h.plugins != nil { // else they are being loaded, and read after that
		h.readPrices()
	}
}

// pluginEvent journals what happened to a plugin. That the shipped ones were loaded is no news.
func (h *Host) pluginEvent(e plugin.Event) {
	if e.Origin == plugin.OriginBuiltin && e.Fault == nil && e.Kind == "plugin.loaded" {
		return
	}
	data := map[string]any{"name": e.Name, "version": e.Version, "digest": e.Digest, "file": e.File, "origin": e.Origin}
	if e.Fault != nil {
		data["fault"] = map[string]any{"step": e.Fault.Step, "code": e.Fault.Code, "message": e.Fault.Message}
	}
	if e.Quarantine != nil {
		data["quarantine"] = e.Quarantine
	}
	if v := e.Violation; v != nil { // its stderr is in the log: it may be long, and what a guest writes is its own
		data["violation"] = map[string]any{"op": v.Op, "kind": v.Kind, "cause": h.redact.Text(v.Cause), "at": v.At}
	}
	b, err := json.Marshal(data)
	if err != nil {
		return
	}
	h.record.Append(store.Event{Kind: e.Kind, Key: e.Name, At: e.At.UnixMilli(), Data: b})
}

// jsonObject is an object of one text.
func jsonObject(name, text string) []byte {
	b, err := json.Marshal(map[string]string{name: text})
	if err != nil {
		return []byte("{}")
	}
	return b
}
