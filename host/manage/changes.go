package manage

import (
	"fmt"
	"net/http"
	"time"

	"github.com/weirgate/weir/host/catalog"
	"github.com/weirgate/weir/host/settings"
	"github.com/weirgate/weir/store"
)

// change is what one call writes: objects of one kind, or the stored settings.
type change struct {
	put      catalog.Input   // entries with Saving set
	settings settings.Stored // nil: unchanged
	expect   *uint64         // revision that must be present; 0: none may be
}

// isNew expects that there is no such object yet.
func isNew() *uint64 { return new(uint64) }

// apply checks the objects against the whole catalogue, then writes them. When it returns nil they are in force.
func (s *Server) apply(c *call, ch change) error {
	if faults := s.ports.Check(ch.put); len(faults) > 0 {
		return faulty(faults)
	}
	writes, err := s.encode(c, ch)
	if err != nil {
		return err
	}
	for i := range writes {
		writes[i].If, writes[i].At = ch.expect, c.now.UnixMilli()
	}
	_, err = s.ports.Change(c.ctx(), writes...)
	return err
}

func (s *Server) encode(c *call, ch change) (ws []store.Write, err error) {
	add := func(kind, id string, data []byte, e error) {
		if e != nil && err == nil {
			err = e
		}
		ws = append(ws, store.Write{Kind: kind, ID: id, Data: data})
	}
	for _, e := range ch.put.Connections {
		data, err := catalog.EncodeConnection(e.Object, max(e.CredentialRevision, 1), s.ports.Sealer)
		add(catalog.DocConnection, e.Object.ID, data, err)
	}
	for _, e := range ch.put.Combos {
		data, err := catalog.EncodeCombo(e.Object)
		add(catalog.DocCombo, e.Object.Name, data, err)
	}
	for _, e := range ch.put.Keys {
		data, err := catalog.EncodeKey(e.Object)
		add(catalog.DocKey, e.Object.ID, data, err)
	}
	for _, e := range ch.put.Providers {
		data, err := catalog.EncodeProvider(e.Object)
		add(catalog.DocProvider, e.Object.ID, data, err)
	}
	for _, e := range ch.put.Aliases {
		data, err := catalog.EncodeAlias(e.Object)
		add(catalog.DocAlias, e.Object.Alias, data, err)
	}
	if ch.settings != nil {
		data, err := catalog.EncodeSettings(ch.settings)
		add(catalog.DocSettings, catalog.SettingsID, data, err)
	}
	return ws, err
}

// stored reads the objects of the store, secrets in clear text.
func (s *Server) stored(c *call) (*catalog.Input, error) {
	return catalog.LoadStored(c.ctx(), s.ports.Documents, s.ports.Sealer)
}

// storedObject finds the stored object of that id, which may be one that the catalogue leaves out for a fault: it can still be
// mended or deleted. An object that is only in the catalogue belongs to somebody else; present says what the catalogue has.
func storedObject[T any](entries []catalog.Entry[T], is func(*T) bool, what, id string, present *catalog.Meta) (*catalog.Entry[T], error) {
	for i := range entries {
		if is(&entries[i].Object) {
			return &entries[i], nil
		}
	}
	if present == nil {
		return nil, notFound(what, id)
	}
	if err := owned(what, id, *present); err != nil {
		return nil, err
	}
	return nil, notFound(what, id)
}

// remove deletes one stored object.
func (s *Server) remove(c *call, kind, what, id string, revision uint64) error {
	expect, err := c.expected()
	if err != nil {
		return err
	}
	if expect != nil && *expect != revision {
		return stale(what, id, revision)
	}
	_, err = s.ports.Change(c.ctx(), store.Write{Kind: kind, ID: id, Delete: true, If: expect, At: c.now.UnixMilli()})
	return err
}

// fresh compares If-Match with the present revision, and returns that revision as what the write expects (OBJ-4).
func (c *call) fresh(what, id string, present uint64) (*uint64, error) {
	given, err := c.expected()
	if err != nil {
		return nil, err
	}
	if given != nil && *given != present {
		return nil, stale(what, id, present)
	}
	return &present, nil
}

// absent is fresh for an object that is not there: a caller who saw one saw what was deleted since.
func (c *call) absent(what, id string) (*uint64, error) {
	given, err := c.expected()
	if err != nil {
		return nil, err
	}
	if given != nil {
		return nil, problem(http.StatusConflict, "The %s %q was deleted meanwhile; leave out If-Match to make it anew.", what, id)
	}
	return isNew(), nil
}

func stale(what, id string, present uint64) *Problem {
	p := problem(http.StatusConflict, "The %s %q was changed meanwhile: its revision is %d now; read it again and repeat the change.",
		what, id, present)
	p.Details = []Detail{{"revision", fmt.Sprint(present)}}
	return p
}

// owned refuses to change what belongs to somebody else (OBJ-5, CFG-1).
func owned(what, id string, m catalog.Meta) error {
	if m.ManagedBy == catalog.ByAPI {
		return nil
	}
	where := map[catalog.ManagedBy]string{
		catalog.ByFile:   "change it in the configuration file",
		catalog.ByEnv:    "it comes from an environment variable; change that, or make an object of your own in its place",
		catalog.ByDemo:   "it belongs to --demo; start the gateway without that flag to lose it",
		catalog.ByPlugin: "a plugin describes it; override its fields with PUT, or remove the plugin",
	}[m.ManagedBy]
	return problem(http.StatusConflict, "The %s %q is not managed by the API: %s.", what, id, where).
		coded("managed_by_" + string(m.ManagedBy))
}

func inUse(what, id, by string) error {
	return problem(http.StatusConflict, "The %s %q is in use: %s.", what, id, by).coded("in_use")
}

func millis(d *time.Duration) *catalog.Millis {
	if d == nil {
		return nil
	}
	m := catalog.Millis(d.Milliseconds())
	return &m
}
