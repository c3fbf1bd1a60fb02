package plugin

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/weirgate/weir/host/catalog"
)

// Trial is a candidate beside all that is in force, which no request sees: what replay asks (PLG-9). Nothing it does is counted or
// kept. Safe for concurrent use until Close.
type Trial struct {
	set    *Set
	own    *version
	failed atomic.Int64
}

// Trial loads a module, or the YAML of a pack, for a trial. The error is the Fault of the step that failed.
func (r *Runtime) Trial(ctx context.Context, module []byte) (*Trial, error) {
	v, f := r.aside().load(ctx, source{origin: OriginAPI, file: "the module", yaml: isText(module), bytes: module, untrusted: true})
	if f != nil {
		return nil, fmt.Errorf("the candidate cannot be tried: %w", f)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	on := members{active: []*version{v}}
	for _, other := range r.enabled().active {
		if other.name != v.name {
			on.active = append(on.active, other)
		}
	}
	return &Trial{set: newSet(on, owners{}, r.o.Now), own: v}, nil
}

// Name is the candidate's.
func (t *Trial) Name() string { return t.own.name }

// Digest is the candidate's.
func (t *Trial) Digest() string { return t.own.digest }

// Judge is the chain of the provider as it would be with the candidate in force.
func (t *Trial) Judge(p *catalog.Provider) *Judge {
	return t.set.Judge(p).asking(quiet{failed: func() { t.failed.Add(1) }})
}

// Failed is how many hooks, of the candidate or beside it, have failed in the judges of this trial so far.
func (t *Trial) Failed() int64 { return t.failed.Load() }

// Close gives the candidate up. It is called once.
func (t *Trial) Close() {
	t.set.Release()
	t.own.release()
}

// Present is the plugins in force as replay asks them: nothing they do is counted or kept (PLG-9). Safe for concurrent use until
// Close.
type Present struct{ set *Set }

// Present holds the set in force, until its Close.
func (r *Runtime) Present() *Present { return &Present{r.Acquire()} }

// Judge is the chain of the provider.
func (p *Present) Judge(of *catalog.Provider) *Judge { return p.set.Judge(of).asking(quiet{}) }

// Close gives the set back. It is called once.
func (p *Present) Close() { p.set.Release() }
