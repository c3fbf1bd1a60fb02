package plugin

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"strings"

	"github.com/weirgate/weir/host/plugin/trust"
)

// Grant sets what the version in force may do, in place of what was granted before; it belongs to the name and the digest, so that
// other bytes of the name have it not (PLG-12, PLG-16). What the configuration file grants stays beside it. The version is loaded
// again with it.
func (r *Runtime) Grant(ctx context.Context, name string, g Grants) error {
	r.shelving.Lock()
	r.mu.Lock()
	s := r.winners()[name]
	if s == nil {
		s = r.slots[slotKey(OriginAPI, name, asCandidate)]
	}
	var v *version
	if s != nil && s.active != nil {
		v = s.active
		v.hold()
	}
	r.mu.Unlock()
	if v == nil {
		r.shelving.Unlock()
		return notFound(name)
	}
	defer v.release()
	err := error(nil)
	switch p := tooWide(g, v); {
	case v.origin == OriginBuiltin:
		err = problem(http.StatusConflict, CodeBuiltin, "%s is built in and has what its manifest asks for; only what other plugins may do is granted", name)
	case p != nil:
		err = p
	default:
		if fail := r.lock.Put(lockEntry(v, string(v.origin), &g, r.lock)); fail != nil {
			err = problem(http.StatusInsufficientStorage, CodeNotKept, "%v", fail)
		}
	}
	if err != nil {
		r.shelving.Unlock()
		return err
	}
	r.mu.Lock()
	stale := r.stale(func(o *slot) bool {
		return o.active != nil && o.active.name == name && o.active.digest == v.digest && o.origin != OriginBuiltin
	})
	r.mu.Unlock()
	r.shelving.Unlock()
	r.reload(ctx, stale)
	return nil
}

// lockEntry is the version's line of the lock file. Without grants it keeps those of its digest.
func lockEntry(v *version, source string, g *Grants, l *trust.Lock) trust.Entry {
	e := trust.Entry{
		Name: v.name, Version: v.manifest.Version, ABI: v.manifest.ABI, SHA256: v.digest, Size: v.size, Source: source, SignedBy: v.signedBy,
		Granted: json.RawMessage("{}"),
	}
	if before, ok := l.Find(v.name, v.digest); ok {
		e.Granted, e.Source = before.Granted, cmp.Or(before.Source, source)
	}
	if g != nil {
		e.Granted, _ = json.Marshal(g) // texts and numbers always encode
	}
	return e
}

// tooWide refuses grants that the manifest does not ask for.
func tooWide(g Grants, v *version) *Problem {
	if more := g.beyond(v.manifest.Permissions); len(more) > 0 {
		return problem(http.StatusBadRequest, CodeGrantTooWide, "the manifest of %s does not ask for %s; grant what it asks for at most", v.name, strings.Join(more, ", "))
	}
	return nil
}
