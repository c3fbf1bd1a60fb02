package catalog

import (
	"crypto/sha256"
	"slices"
	"strings"
	"time"
)

// The scopes of keys (OBJ-15).
const (
	ScopeInference  = "inference"
	ScopeLease      = "lease:exclusive"
	ScopeManage     = "manage"
	ScopeManageRead = "manage:read"
)

// MinKeyLength is how many characters a client key has at least (OBJ-14).
const MinKeyLength = 16

// HashKey is what is kept of a key's text.
func HashKey(text string) [32]byte { return sha256.Sum256([]byte(text)) }

// Hint is the end of a secret, for people who have several: the last four characters of those with 20 or more (OBJ-6).
func Hint(text string) string {
	runes := []rune(text)
	if len(runes) < 20 {
		return ""
	}
	return "…" + string(runes[len(runes)-4:])
}

// KeyByText returns the key of that text. Comparing hashes leaks nothing about the text through time.
func (s *Snapshot) KeyByText(text string) (*Key, bool) {
	k, ok := s.keys[HashKey(text)]
	return k, ok
}

// NeedKey says whether inference needs a key because one exists (SEC-2). An inactive or expired one counts: otherwise
// disabling the last key would open the gateway.
func (s *Snapshot) NeedKey() bool { return s.needKey }

// AllowsModel says whether the key may ask for that name, as the client sends it. An empty list allows all.
func (k *Key) AllowsModel(name string) bool {
	return len(k.AllowedModels) == 0 || matchesAny(k.AllowedModels, name)
}

// AllowsConnection says whether the key may use that account. An empty list allows all (CMB-6).
func (k *Key) AllowsConnection(id string) bool {
	return len(k.AllowedConnections) == 0 || slices.Contains(k.AllowedConnections, id)
}

// HasScope says whether the key has the scope; manage includes manage:read.
func (k *Key) HasScope(scope string) bool {
	return slices.Contains(k.Scopes, scope) || scope == ScopeManageRead && slices.Contains(k.Scopes, ScopeManage)
}

// Expired says whether the key's time has ended.
func (k *Key) Expired(now time.Time) bool { return !k.ExpiresAt.IsZero() && !now.Before(k.ExpiresAt) }

func matchesAny(patterns []string, name string) bool {
	for _, p := range patterns {
		if match(p, name) {
			return true
		}
	}
	return false
}

// match compares with a pattern in which * stands for any text, / included.
func match(pattern, name string) bool {
	first, rest, wild := strings.Cut(pattern, "*")
	if !wild {
		return pattern == name
	}
	name, ok := strings.CutPrefix(name, first)
	if !ok {
		return false
	}
	for {
		part, more, again := strings.Cut(rest, "*")
		if !again {
			return strings.HasSuffix(name, part)
		}
		i := strings.Index(name, part)
		if i < 0 {
			return false
		}
		name, rest = name[i+len(part):], more
	}
}
