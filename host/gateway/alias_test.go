package gateway_test

import (
	"strings"
	"testing"
)

// OV-10: a header under its older name is the same header; under both names with different values the request is refused.
func TestHeaderAliases(t *testing.T) {
	d := open(t, nil)
	if resp, text := d.send("POST", "/v1/chat/completions", chat, "X-OmniRoute-Strict", "true"); resp.StatusCode != 200 {
		t.Fatalf("%d %s", resp.StatusCode, text)
	}
	if got := d.calls[0].Header.Get("X-Weir-Strict"); got != "true" {
		t.Errorf("X-Weir-Strict is %q", got)
	}
	if resp, _ := d.send("POST", "/v1/chat/completions", chat, "X-OmniRoute-Strict", "true", "X-Weir-Strict", "true"); resp.StatusCode != 200 {
		t.Errorf("the same value twice: %d", resp.StatusCode)
	}
	for _, path := range []string{"/v1/chat/completions", "/v1/messages/count_tokens"} {
		resp, text := d.send("POST", path, chat, "X-OmniRoute-Strict", "true", "X-Weir-Strict", "false")
		if resp.StatusCode != 400 || !strings.Contains(text, "conflicting_headers") {
			t.Errorf("%s: %d %s", path, resp.StatusCode, text)
		}
	}
}
