package resilience

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/weirgate/weir/host/catalog"
	"github.com/weirgate/weir/store"
)

// Ladder asks its gates in one order and is the only caller that lets them learn (OV-1, OV-2). All methods are safe for
// concurrent use.
type Ladder struct {
	gates   []Gate
	tickets sync.Pool // of *pass: a ticket costs no allocation
}

// NewLadder puts gates in the order in which they are asked. A new mechanism is a folder and one argument here.
func NewLadder(gates ...Gate) *Ladder {
	l := &Ladder{gates: slices.Clone(gates)}
	l.tickets.New = func() any { return &pass{permits: make([]Permit, len(gates))} }
	return l
}

// Ticket is what Admit gave out for one attempt: the permits of all gates. It ends exactly once, by Settle or Cancel
// (OV-3); whatever comes after that does nothing. It is a small value and may be copied; the zero Ticket has ended.
type Ticket struct {
	pass *pass
	turn uint64
}

// pass holds what a ticket stands for. It is used again after its ticket ended, and turn tells its uses apart.
type pass struct {
	turn    atomic.Uint64
	target  catalog.Target
	permits []Permit
}

// end claims the one ending of the ticket.
func (t Ticket) end() bool { return t.pass != nil && t.pass.turn.CompareAndSwap(t.turn, t.turn+1) }

// Gates returns the gates in the order in which they are asked.
func (l *Ladder) Gates() []Gate { return slices.Clone(l.gates) }

// Admit asks every gate whether an attempt may go to t now: all say yes, or none keeps a permit and the first refusal is
// returned. The returned ticket must be settled, or cancelled when the attempt never left.
//
// For several nodes this is the first of two steps: what passed here in memory is then reserved in the shared store
// (caps, windows, fences and probes as one value) before the attempt is sent, and released with the ticket.
func (l *Ladder) Admit(at Moment, t catalog.Target) (Ticket, *Refusal) {
	p := l.tickets.Get().(*pass)
	for i, g := range l.gates {
		permit, refusal := g.Admit(at, t)
		if refusal != nil {
			for j := i - 1; j >= 0; j-- {
				l.gates[j].Cancel(at, t, p.permits[j])
			}
			l.tickets.Put(p)
			return Ticket{}, refusal
		}
		p.permits[i] = permit
	}
	p.target = t
	return Ticket{pass: p, turn: p.turn.Load()}, nil
}

// Peek is the refusal that Admit would give now, or nil. It changes nothing (OBJ-25).
func (l *Ladder) Peek(at Moment, t catalog.Target) *Refusal {
	for _, g := range l.gates {
		if refusal := g.Peek(at, t); refusal != nil {
			return refusal
		}
	}
	return nil
}

// Cancel gives back the permits of an attempt that never left, the last gate first.
func (l *Ladder) Cancel(at Moment, tk Ticket) {
	if !tk.end() {
		return
	}
	for i, g := range slices.Backward(l.gates) {
		g.Cancel(at, tk.pass.target, tk.pass.permits[i])
	}
	l.recycle(tk.pass)
}

// Begun tells the gates that want to know it that the attempt of tk brought the first useful event of a stream, and returns what
// changed, for the journal. Only probes are told of; the ticket stays to be settled.
func (l *Ladder) Begun(at Moment, tk Ticket) (changed []store.Event) {
	if tk.pass == nil || tk.pass.turn.Load() != tk.turn {
		return nil
	}
	for i, g := range l.gates {
		if !tk.pass.permits[i].Probe {
			continue
		}
		if s, ok := g.(Starter); ok {
			changed = append(changed, s.Begun(at, tk.pass.target, tk.pass.permits[i])...)
		}
	}
	return changed
}

// Settle lets every gate learn from how the attempt of tk ended and returns what changed, for the journal. A ticket that
// has ended changes nothing and returns nothing (OV-3).
func (l *Ladder) Settle(at Moment, tk Ticket, o Outcome) []store.Event {
	if !tk.end() {
		return nil
	}
	var changed []store.Event
	for i, g := range l.gates {
		changed = append(changed, g.Settle(at, tk.pass.target, tk.pass.permits[i], o)...)
	}
	l.recycle(tk.pass)
	return changed
}

// recycle drops what p pointed at, so that an old catalog is not kept alive, and makes it available to a later Admit.
func (l *Ladder) recycle(p *pass) {
	p.target = catalog.Target{}
	clear(p.permits)
	l.tickets.Put(p)
}

// Apply brings one event of the journal to the gate that owns its kind; the others ignore it.
func (l *Ladder) Apply(e store.Event) error {
	var faults []error
	for _, g := range l.gates {
		if err := g.Apply(e); err != nil {
			faults = append(faults, fmt.Errorf("gate %s: event %d (%s): %w", g.Name(), e.Seq, e.Kind, err))
		}
	}
	return errors.Join(faults...)
}
