package plugin

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weirgate/weir/host/catalog"
	"github.com/weirgate/weir/sdk/wire"
)

func TestGrantsAreNeverWider(t *testing.T) { // PLG-12, ABI-2
	asks := wire.Permissions{
		HTTP: &wire.HTTPPermission{Hosts: []string{"a.test", "b.test"}}, KV: &wire.KVPermission{Bytes: 100},
		Secrets: []wire.SecretPermission{{Name: "key"}, {Name: "other"}},
	}
	given := Grants{
		HTTPHosts: []string{"a.test", "c.test"}, HTTPPrivate: []string{"a.test", "b.test", "c.test"}, KVBytes: 200,
		Secrets: Secrets{"key": catalog.NewSecret("v"), "more": catalog.NewSecret("w")}, Terminate: true, Providers: []string{"openai"},
	}
	got := given.within(asks)
	if got.Secrets["key"].Reveal() != "v" || len(got.Secrets) != 1 {
		t.Errorf("secrets %v", got.Secrets)
	}
	if d := cmp.Diff([]any{[]string{"a.test"}, []string{"a.test"}, 100, false, 0},
		[]any{got.HTTPHosts, got.HTTPPrivate, got.KVBytes, got.Terminate, len(got.Providers)}); d != "" {
		t.Error(d)
	}
	if len(given.Secrets) != 2 {
		t.Error("the operator's grant was changed")
	}
	if all := asked(asks); len(all.Secrets) != 2 || all.Secrets["key"].Set() || len(all.HTTPPrivate) != 0 {
		t.Errorf("a built-in plugin is granted %+v", all)
	}
	if none := (Grants{}).within(asks); len(none.Secrets)+len(none.HTTPHosts)+none.KVBytes != 0 {
		t.Errorf("granted without a word: %+v", none)
	}
}

func TestSecretsAreNamesOnly(t *testing.T) { // PLG-12, DATA-1, SCN-18
	g := Grants{Secrets: Secrets{"b": catalog.NewSecret("s3cret-value"), "a": {}}}
	b, err := json.Marshal(g)
	if err != nil || string(b) != `{"secrets":["a","b"]}` {
		t.Errorf("%s, %v", b, err)
	}
	var text strings.Builder
	slog.New(slog.NewTextHandler(&text, nil)).Info("x", "grants", g, "secrets", g.Secrets)
	fmt.Fprintf(&text, "%v %+v %#v %s", g, g, g, g.Secrets)
	if strings.Contains(text.String(), "s3cret") {
		t.Errorf("printed: %s", text.String())
	}
	var back Grants
	if err := json.Unmarshal(b, &back); err != nil || len(back.Secrets) != 2 || back.Secrets["b"].Set() {
		t.Errorf("%v, %v", back, err)
	}
	if none, _ := json.Marshal(Grants{}); string(none) != "{}" {
		t.Errorf("%s", none)
	}
}

// What configure tells a guest names secrets and holds no value.
func TestGuestIsToldNames(t *testing.T) { // ABI-7, PLG-12
	w := newWorld(t, Ports{}, Grants{Secrets: Secrets{"key": catalog.NewSecret("s3cret-value")}}, forwarder{function: "now_ms"})
	if told := string(w.v.guest.settings); strings.Contains(told, "s3cret") || !strings.Contains(told, `"secrets":["key"]`) {
		t.Errorf("the guest is told %s", told)
	}
}
