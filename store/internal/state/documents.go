// Package state keeps in memory what a store holds: documents with their revisions and watchers, a journal, locks. The
// memory store is made of nothing else; the embedded store reads its documents from here and goes on here when its disk
// is full.
package state

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/weirgate/weir/store"
)

// page is how many entries an iterator takes at a time, so that no lock is held while a caller works on them.
const page = 256

// Name says which document.
type Name struct{ Kind, ID string }

// Documents is a table of documents. Reading and watching are safe for concurrent use; writers hold Writing from Stage to
// Commit.
type Documents struct {
	// Writing is held by a writer from Stage to Commit.
	Writing sync.Mutex

	mu      sync.RWMutex
	docs    map[Name]store.Document // deleted ones included, until Forget
	order   []place                 // ascending; a place whose document has moved on is stale
	last    store.Seq
	bytes   int64
	changed chan struct{} // closed and replaced by every commit
	closed  bool
}

type place struct {
	seq  store.Seq
	name Name
}

// NewDocuments returns an empty table.
func NewDocuments() *Documents {
	return &Documents{docs: map[Name]store.Document{}, changed: make(chan struct{})}
}

// Load puts documents that are already stored into the table, and makes last the least Seq of a later write.
func (d *Documents) Load(docs []store.Document, last store.Seq) {
	slices.SortFunc(docs, func(a, b store.Document) int { return cmp.Compare(a.Seq, b.Seq) })
	d.Commit(docs)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.last = max(d.last, last)
}

// Stage returns the documents as ws would leave them, or why they cannot be written. Nothing changes until Commit. now is
// the time of writes that carry none.
func (d *Documents) Stage(ws []store.Write, now int64) ([]store.Document, error) {
	d.mu.RLock()
	defer d.mu.RUnlock()
	if d.closed {
		return nil, store.ErrClosed
	}
	if err := checkSize(ws); err != nil {
		return nil, err
	}
	staged, last := map[Name]store.Document{}, d.last
	out := make([]store.Document, 0, len(ws))
	for _, w := range ws {
		name := Name{w.Kind, w.ID}
		old, seen := staged[name]
		if !seen {
			old = d.docs[name]
		}
		doc, err := next(old, w, now)
		if err != nil {
			return nil, err
		}
		if old.Revision != doc.Revision {
			last++
			doc.Seq = last
		}
		staged[name] = doc
		out = append(out, doc)
	}
	return out, nil
}

func checkSize(ws []store.Write) error {
	if len(ws) > store.MaxWrites {
		return fmt.Errorf("a change of %d documents is %w: the limit is %d", len(ws), store.ErrTooLarge, store.MaxWrites)
	}
	total := 0
	for _, w := range ws {
		if w.Kind == "" || w.ID == "" || strings.ContainsRune(w.Kind, 0) {
			return fmt.Errorf("document %q/%q cannot be written: it needs a kind and an id", w.Kind, w.ID)
		}
		if len(w.Kind)+len(w.ID) > store.MaxName {
			return fmt.Errorf("the name of a document of kind %.40q is %w: the limit is %d bytes", w.Kind, store.ErrTooLarge, store.MaxName)
		}
		if len(w.Data) > store.MaxDocument {
			return fmt.Errorf("document %s/%s with %d bytes is %w: the limit is %d", w.Kind, w.ID, len(w.Data), store.ErrTooLarge, store.MaxDocument)
		}
		total += len(w.Kind) + len(w.ID) + len(w.Data)
	}
	if total > store.MaxChange {
		return fmt.Errorf("a change with %d bytes is %w: the limit is %d", total, store.ErrTooLarge, store.MaxChange)
	}
	return nil
}

// next is old after w. A document that comes back after its deletion goes on counting, as long as the deletion is
// remembered, so that whoever holds the old revision cannot write over the new document.
func next(old store.Document, w store.Write, now int64) (store.Document, error) {
	exists := old.Revision > 0 && !old.Deleted
	present := uint64(0)
	if exists {
		present = old.Revision
	}
	if w.If != nil && *w.If != present {
		return store.Document{}, fmt.Errorf("document %s/%s has revision %d, not %d: %w", w.Kind, w.ID, present, *w.If, store.ErrConflict)
	}
	at := w.At
	if at == 0 {
		at = now
	}
	doc := store.Document{Kind: w.Kind, ID: w.ID, Revision: old.Revision + 1, Created: at, Updated: at}
	if exists {
		doc.Created = old.Created
	}
	switch {
	case w.Delete && !exists:
		old.Kind, old.ID, old.Deleted = w.Kind, w.ID, true
		return old, nil
	case w.Delete:
		doc.Deleted = true
	default:
		doc.Data = append([]byte{}, w.Data...)
	}
	return doc, nil
}

// Written are those of the staged documents that have to be stored: a deletion of nothing has not.
func (d *Documents) Written(staged []store.Document) []store.Document {
	d.mu.RLock()
	defer d.mu.RUnlock()
	out := make([]store.Document, 0, len(staged))
	for _, doc := range staged {
		if doc.Seq > d.last {
			out = append(out, doc)
		}
	}
	return out
}

// Commit makes staged documents visible and wakes the watchers.
func (d *Documents) Commit(docs []store.Document) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, doc := range docs {
		if doc.Seq <= d.last {
			continue
		}
		name := Name{doc.Kind, doc.ID}
		d.bytes += int64(len(doc.Data) - len(d.docs[name].Data))
		d.docs[name] = doc
		d.order = append(d.order, place{doc.Seq, name})
		d.last = doc.Seq
	}
	if len(d.order) > 64 && len(d.order) > 2*len(d.docs) {
		d.order = slices.DeleteFunc(d.order, func(p place) bool { return d.docs[p.name].Seq != p.seq })
	}
	close(d.changed)
	d.changed = make(chan struct{})
}

// Get returns a copy of one document, or ErrNotFound.
func (d *Documents) Get(kind, id string) (store.Document, error) {
	d.mu.RLock()
	defer d.mu.RUnlock()
	if d.closed {
		return store.Document{}, store.ErrClosed
	}
	doc, ok := d.docs[Name{kind, id}]
	if !ok || doc.Deleted {
		return store.Document{}, fmt.Errorf("document %s/%s: %w", kind, id, store.ErrNotFound)
	}
	return clone(doc), nil
}

// List yields the documents of one kind by id, as they are at the moment of the call.
func (d *Documents) List(ctx context.Context, kind string) iter.Seq2[store.Document, error] {
	return func(yield func(store.Document, error) bool) {
		docs, err := d.ofKind(kind)
		if err != nil {
			yield(store.Document{}, err)
			return
		}
		for _, doc := range docs {
			if err := ctx.Err(); err != nil {
				yield(store.Document{}, err)
				return
			}
			if !yield(clone(doc), nil) {
				return
			}
		}
	}
}

func (d *Documents) ofKind(kind string) ([]store.Document, error) {
	d.mu.RLock()
	defer d.mu.RUnlock()
	if d.closed {
		return nil, store.ErrClosed
	}
	var docs []store.Document
	for name, doc := range d.docs {
		if name.Kind == kind && !doc.Deleted {
			docs = append(docs, doc)
		}
	}
	slices.SortFunc(docs, func(a, b store.Document) int { return cmp.Compare(a.ID, b.ID) })
	return docs, nil
}

// Watch yields each document that changed after after, then waits for the next, until ctx ends or the table closes.
func (d *Documents) Watch(ctx context.Context, after store.Seq) iter.Seq2[store.Document, error] {
	return func(yield func(store.Document, error) bool) {
		for ctx.Err() == nil {
			docs, changed, err := d.since(after)
			if err != nil {
				yield(store.Document{}, err)
				return
			}
			for _, doc := range docs {
				if ctx.Err() != nil || !yield(clone(doc), nil) {
					return
				}
				after = doc.Seq
			}
			if len(docs) > 0 {
				continue
			}
			select {
			case <-ctx.Done():
			case <-changed:
			}
		}
	}
}

func (d *Documents) since(after store.Seq) ([]store.Document, <-chan struct{}, error) {
	d.mu.RLock()
	defer d.mu.RUnlock()
	if d.closed {
		return nil, nil, store.ErrClosed
	}
	i, _ := slices.BinarySearchFunc(d.order, after+1, func(p place, seq store.Seq) int { return cmp.Compare(p.seq, seq) })
	var docs []store.Document
	for ; i < len(d.order) && len(docs) < page; i++ {
		if doc := d.docs[d.order[i].name]; doc.Seq == d.order[i].seq {
			docs = append(docs, doc)
		}
	}
	return docs, d.changed, nil
}

// All returns everything in the table, deletions included, and the last Seq.
func (d *Documents) All() ([]store.Document, store.Seq) {
	d.mu.RLock()
	defer d.mu.RUnlock()
	return slices.Collect(maps.Values(d.docs)), d.last
}

// Bytes is the size of all documents' data.
func (d *Documents) Bytes() int64 {
	d.mu.RLock()
	defer d.mu.RUnlock()
	return d.bytes
}

// Dead returns up to limit documents that were deleted before before.
func (d *Documents) Dead(before int64, limit int) []store.Document {
	d.mu.RLock()
	defer d.mu.RUnlock()
	var dead []store.Document
	for _, doc := range d.docs {
		if doc.Deleted && doc.Updated < before && len(dead) < limit {
			dead = append(dead, doc)
		}
	}
	return dead
}

// Forget drops deletions, unless the document has come back. The caller holds Writing.
func (d *Documents) Forget(dead []store.Document) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, doc := range dead {
		if name := (Name{doc.Kind, doc.ID}); d.docs[name].Seq == doc.Seq {
			delete(d.docs, name)
		}
	}
}

// Close ends every watch with ErrClosed, as it does later calls.
func (d *Documents) Close() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.closed {
		d.closed = true
		close(d.changed)
	}
}

func clone(doc store.Document) store.Document {
	doc.Data = slices.Clone(doc.Data)
	return doc
}

// Copies returns documents that share no bytes with docs.
func Copies(docs []store.Document) []store.Document {
	out := make([]store.Document, len(docs))
	for i, doc := range docs {
		out[i] = clone(doc)
	}
	return out
}
