package host

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/weirgate/weir/host/plugin"
	"github.com/weirgate/weir/store"
)

// docPluginKV is the kind of the documents that hold the keys of plugins, one for each, so that a write costs what changed.
const docPluginKV = "plugin-kv"

// pluginKV keeps the keys of plugins as documents (ABI-6). The plugin runtime batches behind the calls and retries; nothing is
// kept back here.
type pluginKV struct {
	store store.Documents
	now   func() time.Time
	log   *slog.Logger
}

func newPluginKV(s store.Documents, now func() time.Time, log *slog.Logger) plugin.KVStore {
	return &pluginKV{store: s, now: now, log: log}
}

type kvDocument struct {
	Value []byte `json:"value"`
	Ends  int64  `json:"ends,omitempty"` // Unix milliseconds, 0: never
}

// kvID has the name of the plugin, which holds no slash, and the key, which may be any bytes.
func kvID(name, key string) string {
	return name + "/" + base64.RawURLEncoding.EncodeToString([]byte(key))
}

// Load leaves out what cannot be read: one bad record does not keep a plugin from the others.
func (k *pluginKV) Load(ctx context.Context, name string) ([]plugin.KVEntry, error) {
	var list []plugin.KVEntry
	for doc, err := range k.store.List(ctx, docPluginKV) {
		if err != nil {
			return nil, fmt.Errorf("read the keys of plugins: %w", err)
		}
		coded, mine := strings.CutPrefix(doc.ID, name+"/")
		if !mine {
			continue
		}
		key, err := base64.RawURLEncoding.DecodeString(coded)
		var d kvDocument
		if err == nil {
			err = json.Unmarshal(doc.Data, &d)
		}
		if err != nil {
			k.log.Warn("a kept key of a plugin cannot be read and is left out", "plugin", name, "document", doc.ID, "error", err.Error())
			continue
		}
		e := plugin.KVEntry{Key: string(key), Value: d.Value}
		if d.Ends != 0 {
			e.Ends = time.UnixMilli(d.Ends)
		}
		list = append(list, e)
	}
	return list, nil
}

// Save writes changes as one change of the store.
func (k *pluginKV) Save(ctx context.Context, name string, changes []plugin.KVEntry) error {
	at := k.now().UnixMilli()
	ws := make([]store.Write, len(changes))
	for i, c := range changes {
		ws[i] = store.Write{Kind: docPluginKV, ID: kvID(name, c.Key), Delete: c.Gone, At: at}
		if c.Gone {
			continue
		}
		d := kvDocument{Value: c.Value}
		if !c.Ends.IsZero() {
			d.Ends = c.Ends.UnixMilli()
		}
		b, err := json.Marshal(d)
		if err != nil {
			return err
		}
		ws[i].Data = b
	}
	if _, err := k.store.Change(ctx, ws...); err != nil {
		return fmt.Errorf("write the keys of the plugin %s: %w", name, err)
	}
	return nil
}
