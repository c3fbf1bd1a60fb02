package manage

import (
	"encoding/base64"
	"io"
	"net/http"
	"time"

	"github.com/weirgate/weir/host/catalog"
)

// Key is an API key of a client as the API shows it (OBJ-14). Its text is in no answer but the one that made it.
type Key struct {
	ID                   string   `json:"id"`
	Name                 string   `json:"name"`
	Key                  string   `json:"key,omitempty"` // create and regenerate only
	Hint                 *string  `json:"hint"`
	IsActive             bool     `json:"isActive"`
	Scopes               []string `json:"scopes"`
	AllowedModels        []string `json:"allowedModels"`
	AllowedConnections   []string `json:"allowedConnections"`
	PreferredConnections []string `json:"preferredConnections"`
	ExpiresAt            *string  `json:"expiresAt"`
	LastUsedAt           *string  `json:"lastUsedAt"`
	meta
}

type keyList struct {
	Keys  []Key `json:"keys"`
	Total int   `json:"total"`
}

func (s *Server) showKey(k *catalog.Key) Key {
	v := Key{
		ID: k.ID, Name: k.Name, Hint: orNull(k.Hint), IsActive: k.Active, Scopes: listOf(k.Scopes),
		AllowedModels: listOf(k.AllowedModels), AllowedConnections: listOf(k.AllowedConnections),
		PreferredConnections: listOf(k.PreferredConnections), ExpiresAt: stamp(k.ExpiresAt), meta: shownMeta(k.Meta),
	}
	if f := s.ports.KeyUsed; f != nil {
		v.LastUsedAt = stamp(f(k.ID))
	}
	return v
}

func keyByID(snap *catalog.Snapshot, id string) *catalog.Key {
	for _, k := range snap.Keys {
		if k.ID == id {
			return k
		}
	}
	return nil
}

func listKeys(s *Server, c *call) (any, error) {
	p, err := c.page()
	if err != nil {
		return nil, err
	}
	a := keyList{Keys: []Key{}, Total: len(c.catalog.Keys)}
	for _, k := range cut(c.catalog.Keys, p) {
		a.Keys = append(a.Keys, s.showKey(k))
	}
	return a, nil
}

func getKey(s *Server, c *call) (any, error) {
	k := keyByID(c.catalog, c.id)
	if k == nil {
		return nil, notFound("API key", c.id)
	}
	return s.showKey(k), nil
}

// newKeyText makes the text of a key: weir- and 43 characters of base64url, which are 32 random bytes.
func (s *Server) newKeyText() (string, error) {
	var b [32]byte
	if _, err := io.ReadFull(s.ports.Random, b[:]); err != nil {
		return "", err
	}
	return "weir-" + base64.RawURLEncoding.EncodeToString(b[:]), nil
}

// give puts a new text into in.
func (s *Server) give(in *catalog.KeyInput) (string, error) {
	text, err := s.newKeyText()
	if err != nil {
		return "", err
	}
	hash := catalog.HashKey(text)
	in.Hash, in.Hint = hash[:], catalog.Hint(text)
	return text, nil
}

func createKey(s *Server, c *call) (any, error) {
	var in catalog.KeyInput
	if err := c.read(&in); err != nil {
		return nil, err
	}
	var err error
	if in.ID == "" {
		if in.ID, err = s.newID("k-"); err != nil {
			return nil, err
		}
	} else if keyByID(c.catalog, in.ID) != nil {
		return nil, problem(http.StatusConflict, "There is an API key %q already; choose another id.", in.ID)
	}
	if err := expiry(in.ExpiresAt, c.now); err != nil {
		return nil, err
	}
	text, err := s.give(&in)
	if err != nil {
		return nil, err
	}
	return s.saveKey(c, in, isNew(), text)
}

func expiry(at *time.Time, now time.Time) error {
	if at != nil && !at.After(now) {
		return invalid(Detail{"expiresAt", "must be in the future"})
	}
	return nil
}

func (s *Server) saveKey(c *call, in catalog.KeyInput, expect *uint64, text string) (any, error) {
	var ch change
	ch.put.Keys = []catalog.Entry[catalog.KeyInput]{{Object: in, Saving: true}}
	ch.expect = expect
	if err := s.apply(c, ch); err != nil {
		return nil, err
	}
	k := keyByID(s.ports.Catalog(), in.ID)
	if k == nil {
		return nil, notFound("API key", in.ID)
	}
	v := s.showKey(k)
	v.Key = text
	return v, nil
}

func patchKey(s *Server, c *call) (any, error) {
	n, err := c.body()
	if err != nil {
		return nil, err
	}
	return s.changeKey(c, func(in *catalog.KeyInput) (string, error) {
		old := in.ExpiresAt
		if err := merge(n, in); err != nil {
			return "", err
		}
		if in.ExpiresAt != nil && (old == nil || !old.Equal(*in.ExpiresAt)) {
			return "", expiry(in.ExpiresAt, c.now)
		}
		return "", nil
	})
}

// regenerateKey gives a key a new text; the old one ends with the answer.
func regenerateKey(s *Server, c *call) (any, error) {
	return s.changeKey(c, s.give)
}

func (s *Server) changeKey(c *call, edit func(*catalog.KeyInput) (string, error)) (any, error) {
	entry, err := s.storedKey(c)
	if err != nil {
		return nil, err
	}
	expect, err := c.fresh("API key", c.id, entry.Meta.Revision)
	if err != nil {
		return nil, err
	}
	in := entry.Object
	text, err := edit(&in)
	if err != nil {
		return nil, err
	}
	if in.ID != c.id {
		return nil, invalid(Detail{"id", "cannot be changed; make another key"})
	}
	return s.saveKey(c, in, expect, text)
}

func (s *Server) storedKey(c *call) (*catalog.Entry[catalog.KeyInput], error) {
	stored, err := s.stored(c)
	if err != nil {
		return nil, err
	}
	var present *catalog.Meta
	if k := keyByID(c.catalog, c.id); k != nil {
		present = &k.Meta
	}
	is := func(in *catalog.KeyInput) bool { return in.ID == c.id }
	return storedObject(stored.Keys, is, "API key", c.id, present)
}

func deleteKey(s *Server, c *call) (any, error) {
	entry, err := s.storedKey(c)
	if err != nil {
		return nil, err
	}
	if err := s.remove(c, catalog.DocKey, "API key", c.id, entry.Meta.Revision); err != nil {
		return nil, err
	}
	return okAnswer{true}, nil
}
