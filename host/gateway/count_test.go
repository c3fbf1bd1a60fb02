package gateway_test

import (
	"encoding/json"
	"strings"
	"testing"
)

// INF-52: each dialect counts in its own shape; an estimate says that it is one, and inline images are not counted as text.
func TestCount(t *testing.T) {
	d := open(t, nil)
	image := strings.Repeat("iVBORw0KGgo", 10_000)
	for _, c := range []struct{ path, body, field string }{
		{"/v1/messages/count_tokens?beta=true", `{"model":"acme/large","messages":[{"role":"user","content":"hello there"}]}`, "input_tokens"},
		{"/v1/responses/input_tokens", `{"model":"acme/large","input":"hello there"}`, "input_tokens"},
		{"/v1beta/models/acme/large:countTokens", `{"contents":[{"parts":[{"inlineData":{"data":"` + image + `"}}]}]}`, "totalTokens"},
	} {
		for _, exact := range []int64{0, 77} {
			d.counts = exact
			resp, text := d.send("POST", c.path, c.body)
			var got map[string]any
			if err := json.Unmarshal([]byte(text), &got); err != nil || resp.StatusCode != 200 {
				t.Fatalf("%s: %d %s", c.path, resp.StatusCode, text)
			}
			n, _ := got[c.field].(float64)
			if exact > 0 && (n != 77 || resp.Header.Get("X-Weir-Estimated") != "") || exact == 0 && (n < 1 || n > 100 || resp.Header.Get("X-Weir-Estimated") != "true") {
				t.Errorf("%s: %v, estimated %q", c.path, got, resp.Header.Get("X-Weir-Estimated"))
			}
		}
	}
	if len(d.calls) != 0 {
		t.Error("counting generated")
	}
	if resp, _ := d.send("POST", "/v1/messages/count_tokens", `{"model":"no-such","messages":[]}`); resp.StatusCode != 404 {
		t.Errorf("an unknown model: %d", resp.StatusCode)
	}
}
