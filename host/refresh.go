package host

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/weirgate/weir/host/catalog"
	"github.com/weirgate/weir/host/document"
	"github.com/weirgate/weir/host/record"
	"github.com/weirgate/weir/host/resilience"
	"github.com/weirgate/weir/store"
)

// refresher turns changes of the store into snapshots. Snapshots are rebuilt only from what the store reports, own writes
// included, so that several nodes would behave alike.
type refresher struct {
	mu      sync.Mutex
	seen    store.Seq     // newest change reported; guarded by mu
	reached store.Seq     // newest change that was built; guarded by mu
	fault   error         // why the last build is not in force; guarded by mu
	moved   chan struct{} // closed and replaced after each build; guarded by mu
	wake    chan struct{}
}

func newRefresher() *refresher {
	return &refresher{moved: make(chan struct{}), wake: make(chan struct{}, 1)}
}

// startAt notes that changes up to from are in force.
func (r *refresher) startAt(from store.Seq) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.seen, r.reached = max(r.seen, from), from
}

// forget drops a report that nobody has acted on yet.
func (r *refresher) forget() {
	select {
	case <-r.wake:
	default:
	}
}

// watchPause is how long a failed watch of the store rests before the next.
const watchPause = time.Second

// follow reports changes until ctx ends. The notes that the host itself writes behind are no configuration.
func (h *Host) follow(ctx context.Context) {
	r := h.refresh
	for {
		for doc, err := range h.store.Watch(ctx, r.position()) {
			if errors.Is(err, store.ErrClosed) {
				return
			}
			if err != nil {
				if ctx.Err() == nil {
					h.o.Log.Error("the store stopped reporting changes; it is asked again", "error", err.Error())
				}
				break
			}
			if slices.Contains(catalog.DocKinds(), doc.Kind) {
				r.report(doc.Seq)
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(watchPause):
		}
	}
}

func (r *refresher) position() store.Seq {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.reached
}

func (r *refresher) report(seq store.Seq) {
	r.mu.Lock()
	r.seen = max(r.seen, seq)
	r.mu.Unlock()
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// built notes that changes up to target were built, and tells those who wait for them.
func (r *refresher) built(target store.Seq, fault error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.reached, r.fault = max(r.reached, target), fault
	close(r.moved)
	r.moved = make(chan struct{})
}

// rebuildOnChange makes a new snapshot for what was reported, many changes at once when they come fast.
func (h *Host) rebuildOnChange(ctx context.Context) {
	r := h.refresh
	for {
		select {
		case <-ctx.Done():
			return
		case <-r.wake:
		}
		r.mu.Lock()
		target := r.seen
		r.mu.Unlock()
		err := h.rebuild(ctx, nil)
		if err != nil && ctx.Err() == nil {
			h.o.Log.Error("the configuration in the store could not be put in force; the one before stays", "fault", err.Error())
		}
		r.built(target, err)
	}
}

// change writes documents and returns when the snapshot with them is in force, so that the next request sees them (OV-26). An
// error that comes with documents says that they are stored and not in force.
func (h *Host) change(ctx context.Context, ws ...store.Write) ([]store.Document, error) {
	now := h.o.Now().UnixMilli()
	for i := range ws {
		if ws[i].At == 0 {
			ws[i].At = now
		}
	}
	if err := h.checkVault(ctx); err != nil {
		return nil, err
	}
	docs, err := h.store.Change(ctx, ws...)
	if err != nil {
		return nil, err
	}
	var last store.Seq
	for i, d := range docs {
		if slices.Contains(catalog.DocKinds(), d.Kind) {
			last = max(last, d.Seq)
		}
		if d.Kind == catalog.DocSettings {
			h.record.Append(store.Event{Kind: record.KindSettingsChanged, Key: d.ID, At: ws[i].At, Data: ws[i].Data})
		}
	}
	if last == 0 {
		return docs, nil
	}
	return docs, h.refresh.await(ctx, h.life, last)
}

func (r *refresher) await(ctx, life context.Context, seq store.Seq) error {
	for {
		r.mu.Lock()
		reached, fault, moved := r.reached, r.fault, r.moved
		r.mu.Unlock()
		switch {
		case reached >= seq && fault != nil:
			return fmt.Errorf("the change is stored, but the configuration with it cannot be put in force: %w", fault)
		case reached >= seq:
			return nil
		}
		select {
		case <-moved:
		case <-life.Done():
			return errors.New("the change is stored, and the gateway is stopping")
		case <-ctx.Done():
			return fmt.Errorf("the change is stored but not yet in force: %w", context.Cause(ctx))
		}
	}
}

// rebuild makes a snapshot of everything and puts it in force. File replaces the configuration file's objects, all or nothing:
// with any fault the snapshot before stays and the faults are returned (CLI-5).
func (h *Host) rebuild(ctx context.Context, file *fileState) error {
	h.building.Lock()
	defer h.building.Unlock()
	inForce := file == nil
	if inForce {
		file = h.file.Load()
	}
	stored, _, err := h.loadStored(ctx)
	if err != nil {
		return err
	}
	next, faults := h.build(file, stored, inForce)
	if len(faults) > 0 {
		return faultList(faults)
	}
	// requests with the old ones still run
	h.redact.Know(append(h.secrets(next, file), h.secrets(h.catalog.Current(), h.file.Load())...))
	h.file.Store(file)
	h.putInForce(h.catalog.Swap(next), next)
	return nil
}

// build makes a snapshot. A file that is in force already stays so when a plugin that it relies on goes away.
func (h *Host) build(file *fileState, stored *catalog.Input, inForce bool) (*catalog.Snapshot, []document.Fault) {
	set := h.plugins.Acquire()
	defer set.Release()
	return catalog.Build(catalog.Sources{
		File: file.input, Stored: stored, Discovered: h.discovered, Env: h.o.Env, Described: set.Described(), Demo: h.o.Demo,
		Previous: h.catalog.Current(), FileInForce: inForce,
	})
}

// loadStored reads the documents, and how far in the order of writes they go.
func (h *Host) loadStored(ctx context.Context) (*catalog.Input, store.Seq, error) {
	in := &catalog.Input{Name: "the store"}
	var last store.Seq
	for _, kind := range catalog.DocKinds() {
		for doc, err := range h.store.List(ctx, kind) {
			if err != nil {
				return nil, 0, fmt.Errorf("read the stored %ss: %w", kind, err)
			}
			in.Add(doc, h.vault)
			last = max(last, doc.Seq)
		}
	}
	return in, last, nil
}

// putInForce does what a new snapshot entails: states that new credentials lift, and records of connections that are gone
// (OBJ-7, COOL-52).
func (h *Host) putInForce(previous, next *catalog.Snapshot) {
	at := resilience.Moment{Now: h.o.Now(), Catalog: next}
	for c := range next.Connections() {
		h.record.Append(h.book.Renew(at, c)...)
	}
	if previous == nil {
		return
	}
	h.hintsInForce(at, previous)
	for c := range previous.Connections() {
		now := next.Connection(c.ID)
		if now == nil && c.ManagedBy != catalog.ByEnv {
			h.record.Append(h.book.Forget(at, c.ID)...)
		}
		if now == nil || now.CredentialRevision != c.CredentialRevision { // another account's models are not locked
			_, cleared := h.lockouts.ClearConnection(at, c.ID)
			h.record.Append(cleared...)
		}
	}
	for _, w := range next.Warnings {
		if !slices.Contains(previous.Warnings, w) {
			h.o.Log.Warn(w)
		}
	}
}

// secrets lists every text that must never be shown (DATA-1).
func (h *Host) secrets(s *catalog.Snapshot, fs *fileState) []string {
	out := []string{h.vault.AdminKey()}
	for _, p := range fs.pluginSettings() {
		for _, x := range p.Grants.Secrets {
			out = append(out, x.Reveal())
		}
	}
	for c := range s.Connections() {
		for _, x := range c.Secrets {
			out = append(out, x.Reveal())
		}
	}
	return out
}

// faultList is many faults as one error, a line each.
type faultList []document.Fault

// Faults are the single ones, for callers that show them apart.
func (fs faultList) Faults() []document.Fault { return fs }

func (fs faultList) Error() string {
	var text string
	for i, f := range fs {
		if i > 0 {
			text += "\n"
		}
		text += f.String()
	}
	return text
}
