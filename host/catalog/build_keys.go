package catalog

import (
	"crypto/sha256"
	"fmt"
	"slices"
	"unicode/utf8"
)

// EnvKey is the variable that holds a client key, so that a container needs no file, and EnvKeyID that key's id (CFG-2).
const (
	EnvKey   = "WEIR_CLIENT_KEY"
	EnvKeyID = "env"
)

func (b *builder) keys() {
	pick := func(in *Input) []Entry[KeyInput] { return in.Keys }
	for _, it := range items(b, "key", pick, func(k KeyInput) string { return k.ID }) {
		if it.Object.Key == "" && it.Object.Hash == nil && it.Meta.ManagedBy == ByFile {
			b.warn("the key %q in %s is empty and is skipped", it.id, it.place())
			continue
		}
		b.s.needKey = true // also when it turns out to be faulty: leaving out the last key must not open the gateway
		k := b.key(it)
		if other, taken := b.s.keys[k.Hash]; taken && len(it.faults) == 0 {
			it.fault("key", "has the same text as the key %q", other.ID)
		}
		if b.settle(it.owner(), it.faults) {
			b.addKey(k)
		}
	}
	text, _ := b.in.Env(EnvKey)
	if text == "" {
		return
	}
	hash := HashKey(text)
	if _, taken := b.s.keys[hash]; taken || slices.ContainsFunc(b.s.Keys, func(k *Key) bool { return k.ID == EnvKeyID }) {
		return // the file reads the same variable, or has an entry in its place
	}
	it := &item[KeyInput]{Entry: Entry[KeyInput]{
		Object: KeyInput{ID: EnvKeyID, Name: EnvKey, Key: text}, Meta: Meta{Revision: 1, ManagedBy: ByEnv}, Saving: true, Path: EnvKey,
	}, kind: "key", id: EnvKeyID}
	k := b.key(it)
	for i := range it.faults {
		it.faults[i].Path = EnvKey
	}
	if b.settle(it.owner(), it.faults) {
		b.addKey(k)
		b.s.Found = append(b.s.Found, EnvKey)
	}
}

func (b *builder) addKey(k *Key) {
	b.s.Keys = append(b.s.Keys, k)
	b.s.keys[k.Hash] = k
	b.s.needKey = true
}

func (b *builder) key(it *item[KeyInput]) *Key {
	o := &it.Object
	k := &Key{
		ID: o.ID, Name: orText(o.Name, o.ID), Hint: o.Hint, Active: true, Scopes: slices.Clone(o.Scopes),
		AllowedModels: slices.Clone(o.AllowedModels), AllowedConnections: slices.Clone(o.AllowedConnections),
		PreferredConnections: slices.Clone(o.PreferredConnections), Meta: it.Meta,
	}
	set(&k.Active, o.IsActive)
	set(&k.ExpiresAt, o.ExpiresAt)
	if len(k.Scopes) == 0 {
		k.Scopes = []string{ScopeInference}
	}
	if !connectionID.MatchString(o.ID) {
		it.fault("id", "must be 1 to 128 of letters, digits, dot, _ and -, and begin with a letter or digit")
	}
	for i, scope := range o.Scopes {
		if known := []string{ScopeInference, ScopeLease, ScopeManage, ScopeManageRead}; !slices.Contains(known, scope) {
			it.fault(fmt.Sprintf("scopes[%d]", i), "is not a scope%s", didYouMean(scope, known))
		}
	}
	b.keyConnections(it, "allowedConnections", o.AllowedConnections)
	b.keyConnections(it, "preferredConnections", o.PreferredConnections)
	switch {
	case o.Key != "" && utf8.RuneCountInString(o.Key) < MinKeyLength:
		it.fault("key", "has fewer than %d characters; make one with weir keys create", MinKeyLength)
	case o.Key != "":
		k.Hash, k.Hint = HashKey(o.Key), Hint(o.Key)
	case len(o.Hash) != sha256.Size:
		it.fault("key", "is missing")
	default:
		k.Hash = [32]byte(o.Hash)
	}
	return k
}

// keyConnections checks the ids of a list. A stored list may name accounts that are gone: it then allows fewer.
func (b *builder) keyConnections(it *item[KeyInput], field string, ids []string) {
	if it.Meta.ManagedBy == ByAPI && !it.Saving {
		return
	}
	for i, id := range ids {
		if b.s.connections[id] == nil && !b.dropped["connection/"+id] {
			it.fault(fmt.Sprintf("%s[%d]", field, i), "there is no connection %q%s", id, didYouMean(id, b.connectionIDs()))
		}
	}
}

func (b *builder) connectionIDs() []string {
	out := make([]string, 0, len(b.s.connections))
	for id := range b.s.connections {
		out = append(out, id)
	}
	slices.Sort(out)
	return out
}
