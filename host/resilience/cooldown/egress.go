package cooldown

import (
	"github.com/weirgate/weir/host/catalog"
	"github.com/weirgate/weir/host/resilience"
	"github.com/weirgate/weir/host/resilience/account"
	"github.com/weirgate/weir/host/resilience/egress"
	"github.com/weirgate/weir/store"
)

// siblings cools the connections that leave by the same address as t, whose refusal has just been written: as long as t itself, or
// shorter where it is not sure that they still do (OTH-2, OTH-7, OTH-8).
func (g *Gate) siblings(at resilience.Moment, t catalog.Target, o resilience.Outcome) (changed []store.Event) {
	now := at.Now.UnixMilli()
	own := g.book.Peek(t.Connection.ID)
	if own == nil || own.TestStatus.Terminal() || !own.Cooling(now) {
		return nil
	}
	address, all := g.egress.Siblings(at, t)
	for _, sib := range all {
		longest := int64(0)
		if sib.Stale {
			longest = at.Now.Add(egress.Shortened).UnixMilli()
		}
		c := sib.Target.Connection
		changed = append(changed, g.book.Learn(at, sib.Target, newest, o, func(s account.State) (account.State, string) {
			return s.For(c).EarnedBy(c).Locked(now, t.Connection.ID, *own, address, longest)
		})...)
	}
	return changed
}

// reopened ends the cooldowns of the connections behind an address when the test of one of them was answered (COOL-24): the quota
// of the address is back.
func (g *Gate) reopened(at resilience.Moment, t catalog.Target) (changed []store.Event) {
	address, all := g.egress.Siblings(at, t)
	for _, sib := range all {
		about := account.About{Connection: sib.Target.Connection.ID, Provider: sib.Target.Provider.ID}
		if s := g.book.Peek(about.Connection); s == nil || s.Sibling == nil {
			continue
		}
		changed = append(changed, g.book.Change(at, about, func(s account.State) (account.State, string) {
			if s.TestStatus.Terminal() || s.Sibling == nil || s.Sibling.Egress != address || s.LastErrorType != account.EgressSibling {
				return s, ""
			}
			level := s.LevelAt(at.Now.UnixMilli())
			s = s.Rest()
			s.Level = level
			return s, account.KindCleared
		})...)
	}
	return changed
}

// outlasts says whether a cooldown stays although an attempt that began before it was answered: one whose end the upstream named
// (COOL-5), and one of a sibling, which only a success by another address ends (OTH-8).
func outlasts(s account.State, now int64, p resilience.Permit, t catalog.Target) bool {
	if !s.Cooling(now) || s.Fence <= p.Generation || p.Probe {
		return false
	}
	if s.Sibling != nil {
		return s.Sibling.Egress == t.Egress()
	}
	return s.Explicit
}
