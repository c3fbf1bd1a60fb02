package catalog

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"iter"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weirgate/weir/host/settings"
	"github.com/weirgate/weir/store"
)

// binder is a Sealer that only turns bytes over and remembers the place.
type binder struct{}

func (binder) Seal(kind, id, field string, plain []byte) ([]byte, error) {
	out := []byte(kind + "|" + id + "|" + field + "|")
	for _, c := range plain {
		out = append(out, ^c)
	}
	return out, nil
}

func (binder) Unseal(kind, id, field string, sealed []byte) ([]byte, error) {
	rest, ok := bytes.CutPrefix(sealed, []byte(kind+"|"+id+"|"+field+"|"))
	if !ok {
		return nil, errors.New("the value belongs elsewhere")
	}
	out := bytes.Clone(rest)
	for i := range out {
		out[i] = ^out[i]
	}
	return out, nil
}

// shelf is a list of documents.
type shelf struct {
	store.Documents
	docs []store.Document
}

func (s shelf) List(_ context.Context, kind string) iter.Seq2[store.Document, error] {
	return func(yield func(store.Document, error) bool) {
		for _, d := range s.docs {
			if d.Kind == kind && !yield(d, nil) {
				return
			}
		}
	}
}

func TestConnectionRoundTrip(t *testing.T) {
	on := true
	wait := Millis(20_000)
	c := ConnectionInput{
		ID: "c1", Provider: "openai", Name: "main", IsActive: &on, Models: []string{"a"},
		RateLimitOverrides: &RateLimitOverrides{MaxWait: &wait},
		APIKey:             "sk-secret-1", RefreshToken: "refresh-secret", Secrets: map[string]string{"other": "third-secret"},
		ProviderSpecificData: map[string]json.RawMessage{"cookie": json.RawMessage(`"fourth-secret"`), "n": json.RawMessage(`1.50`)},
	}
	data, err := EncodeConnection(c, 7, binder{})
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(data, []byte("secret")) { // DATA-1, OBJ-6: data like credentials
		t.Errorf("clear text in the document: %s", data)
	}
	doc := store.Document{Kind: DocConnection, ID: "c1", Revision: 3, Data: data, Created: 1000, Updated: 2000}
	e, err := DecodeConnection(doc, binder{})
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(c, e.Object); d != "" || e.CredentialRevision != 7 || e.Meta.Revision != 3 || !e.Meta.Updated.Equal(time.UnixMilli(2000)) {
		t.Error(d, e.CredentialRevision, e.Meta)
	}
	doc.ID = "c2"
	if _, err := DecodeConnection(doc, binder{}); err == nil {
		t.Error("DATA-1: a value was moved to another record")
	}
	changed := c
	changed.APIKey = "new"
	if !c.SameCredentials(&e.Object) || c.SameCredentials(&changed) {
		t.Error("OBJ-9: the change of a key is not seen")
	}
}

func TestKeyIsStoredAsHash(t *testing.T) { // OBJ-14
	data, err := EncodeKey(KeyInput{ID: "k", Key: "weir-0123456789abcdefghij", Scopes: []string{ScopeManage}})
	if err != nil || bytes.Contains(data, []byte("0123456789")) {
		t.Fatalf("%s %v", data, err)
	}
	s := build(t, Sources{Stored: must(t, store.Document{Kind: DocKey, ID: "k", Revision: 1, Data: data})})
	k, ok := s.KeyByText("weir-0123456789abcdefghij")
	if !ok || k.ID != "k" || k.Hint != "…ghij" || !k.HasScope(ScopeManageRead) {
		t.Errorf("%+v %v", k, ok)
	}
	if _, ok := s.KeyByText("weir-0123456789abcdefghiJ"); ok {
		t.Error("another text is taken for the key")
	}
}

func must(t *testing.T, docs ...store.Document) *Input {
	t.Helper()
	in, err := LoadStored(t.Context(), shelf{docs: docs}, binder{})
	if err != nil {
		t.Fatal(err)
	}
	return in
}

func TestLoadStored(t *testing.T) {
	encode := func(b []byte, err error) []byte {
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	url := "https://api.example.com/v1"
	executor := "openai-compatible"
	docs := []store.Document{
		{Kind: DocProvider, ID: "mine", Data: encode(EncodeProvider(ProviderInput{Executor: &executor, BaseURL: &url}))},
		{Kind: DocConnection, ID: "c1", Data: encode(EncodeConnection(ConnectionInput{ID: "c1", Provider: "mine", APIKey: "k"}, 4, binder{}))},
		{Kind: DocCombo, ID: "best", Data: encode(EncodeCombo(ComboInput{Targets: []TargetInput{{Model: "mine/m", Connection: "c1"}}}))},
		{Kind: DocAlias, ID: "x", Data: encode(EncodeAlias(AliasInput{Model: "best"}))},
		{Kind: DocSettings, ID: SettingsID, Data: encode(EncodeSettings(settings.Stored{"autoDisableBannedAccounts": json.RawMessage("true")}))},
		{Kind: DocConnection, ID: "broken", Data: []byte(`{"provider":3}`)},
		{Kind: DocKey, ID: "broken", Data: []byte(`{`)},
		{Kind: "lease", ID: "other", Data: []byte(`{}`)},
	}
	s := build(t, Sources{Stored: must(t, docs...)})
	r, err := s.Resolve("x")
	if err != nil || targets(r) != "mine/m@c1" || !s.Settings.AutoDisableBanned || s.Connection("c1").CredentialRevision != 4 {
		t.Errorf("%+v %v", r, err)
	}
	if p := s.Provider("mine"); !p.Compatible || p.Category != APIKey || p.Dialects["/v1/chat/completions"] != "openai_chat" || p.ManagedBy != ByAPI {
		t.Errorf("%+v", p)
	}
	if !warned(s, "read connection broken") || !warned(s, `key "broken"`) {
		t.Errorf("unreadable documents go unmentioned: %q", s.Warnings)
	}
	if !s.NeedKey() {
		t.Error("SEC-2: a key that cannot be read opens the gateway")
	}
	if strings.Contains(strings.Join(s.Warnings, ""), "sk-") {
		t.Error("a warning holds a secret")
	}
}

// CMB-47: a stored switch of another type is ignored; the rest of the combo stays.
func TestOddWaitIsIgnored(t *testing.T) {
	for text, want := range map[string]*bool{`"no"`: nil, `null`: nil, `0`: nil, `false`: p(false), `true`: p(true)} {
		e, err := DecodeCombo(store.Document{ID: "c", Data: []byte(`{"strategy":"weighted","config":{"comboCooldownWaitEnabled":` + text + `,"maxRetries":3}}`)})
		got := e.Object.Config.CooldownWait
		if err != nil || e.Object.Strategy != "weighted" || *e.Object.Config.MaxRetries != 3 || (got == nil) != (want == nil) || got != nil && *got != *want {
			t.Errorf("%s: %v %+v", text, err, e.Object)
		}
	}
	if _, err := DecodeCombo(store.Document{ID: "c", Data: []byte(`{"strategy":7}`)}); err == nil {
		t.Error("another fault is swallowed")
	}
}
