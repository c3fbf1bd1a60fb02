package catalog

import (
	"context"
	"errors"
	"fmt"

	"github.com/weirgate/weir/store"
)

// LoadStored reads every document of the catalogue. A document that cannot be read or unsealed becomes a warning of the
// next Build and is left out; only an error of the store itself ends the reading.
func LoadStored(ctx context.Context, docs store.Documents, s Sealer) (*Input, error) {
	in := &Input{Name: "the store"}
	for _, kind := range DocKinds() {
		for doc, err := range docs.List(ctx, kind) {
			if err != nil {
				return nil, fmt.Errorf("list the stored %ss: %w", kind, err)
			}
			in.Add(doc, s)
		}
	}
	return in, nil
}

// Add reads one document into in. Documents of other kinds are ignored.
func (in *Input) Add(doc store.Document, s Sealer) {
	var err error
	switch doc.Kind {
	case DocProvider:
		err = add(&in.Providers, doc, DecodeProvider)
	case DocConnection:
		err = add(&in.Connections, doc, func(d store.Document) (Entry[ConnectionInput], error) { return DecodeConnection(d, s) })
	case DocCombo:
		err = add(&in.Combos, doc, DecodeCombo)
	case DocAlias:
		err = add(&in.Aliases, doc, DecodeAlias)
	case DocKey:
		// A key that cannot be read stays as one that nobody has: without it the gateway could be open (SEC-2).
		var e Entry[KeyInput]
		e, err = DecodeKey(doc)
		in.Keys = append(in.Keys, e)
	case DocSettings:
		in.Settings, err = DecodeSettings(doc)
	case DocProtection:
		var on bool
		if on, err = DecodeProtection(doc); err == nil {
			if in.Protection == nil {
				in.Protection = map[string]bool{}
			}
			in.Protection[doc.ID] = on
		}
	}
	if err != nil {
		in.Unreadable = errors.Join(in.Unreadable, err)
	}
}

func add[T any](list *[]Entry[T], doc store.Document, read func(store.Document) (Entry[T], error)) error {
	e, err := read(doc)
	if err == nil {
		*list = append(*list, e)
	}
	return err
}
