package account

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"maps"
	"slices"

	"github.com/weirgate/weir/host/catalog"
	"github.com/weirgate/weir/host/resilience"
	"github.com/weirgate/weir/store"
)

// A state was earned by credentials, and newer ones lift it (COOL-50, COOL-52, COOL-43). Within a process the
// connection's CredentialRevision tells them apart. Over a restart it cannot, where the credentials come from the file or
// the environment and are counted anew; there the mark does.

// For is the state as it holds for the credentials of c: newer ones than those that earned it lift everything.
func (s State) For(c *catalog.Connection) State {
	if s.Outdated(c) {
		return State{Revision: s.Revision, Credentials: c.CredentialRevision}
	}
	return s
}

// Outdated says whether For would lift the state.
func (s *State) Outdated(c *catalog.Connection) bool {
	return c.CredentialRevision > s.Credentials && !s.Resting()
}

// EarnedBy notes that the state is earned by the credentials of c.
func (s State) EarnedBy(c *catalog.Connection) State {
	s.Credentials, s.Mark = c.CredentialRevision, mark(c)
	return s
}

// mark is 16 bits of a hash of the secrets of c: enough to see that they were changed, and too little to tell anything
// about them. 0 stands for a connection without secrets, and for not known.
func mark(c *catalog.Connection) uint16 {
	if len(c.Secrets) == 0 {
		return 0
	}
	h := sha256.New()
	enc := json.NewEncoder(h) // so that the borders between the texts count
	for _, name := range slices.Sorted(maps.Keys(c.Secrets)) {
		_ = enc.Encode([2]string{name, c.Secrets[name].Reveal()}) // a hash takes everything
	}
	return max(1, binary.BigEndian.Uint16(h.Sum(nil)))
}

// Renew compares the record of c with its present credentials and lifts a state whose credentials were changed (COOL-52).
// It is called for each connection after a restore and after each swap of the catalog. Without it, the gates still see a
// new revision when a request comes, but a change that was made while the process was down stays unseen.
func (b *Book) Renew(at resilience.Moment, c *catalog.Connection) []store.Event {
	if s := b.Peek(c.ID); s == nil || s.Resting() || s.Credentials == c.CredentialRevision && s.Mark == mark(c) {
		return nil
	}
	return b.Change(at, About{Connection: c.ID, Provider: c.Provider}, func(s State) (State, string) {
		switch {
		case s.Resting():
		case s.Outdated(c), s.Mark != 0 && s.Mark != mark(c):
			return State{Credentials: c.CredentialRevision}, KindCleared
		case s.Credentials > c.CredentialRevision:
			// Counted anew: the same credentials under a lower number, above which the next ones will be.
			return s.EarnedBy(c), s.kind()
		}
		return s, ""
	})
}

// kind is the event that tells of s as it is.
func (s State) kind() string {
	switch {
	case s.TestStatus.Terminal():
		return KindTerminal
	case s.Until != 0:
		return KindCooldown
	}
	return KindError
}
