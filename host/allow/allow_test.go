package allow

import (
	"net/url"
	"testing"
)

func TestURL(t *testing.T) { // ABI-3, ABI-6, PLG-12
	for _, c := range []struct {
		granted, url string
		want         bool
	}{
		{"api.test", "https://api.test/x", true},
		{"API.test", "https://api.TEST./x", true},
		{"api.test", "https://api.test:443", true},
		{"api.test", "https://api.test:8443", false},
		{"api.test:8443", "https://api.test:8443", true},
		{"api.test:8443", "https://api.test", false},
		{"api.test", "https://evil-api.test", false},
		{"api.test", "https://api.test.evil", false},
		{"*.test", "https://a.b.test", true},
		{"*.test", "https://test", false},
		{"*.test", "https://.test", false},
		{"*.test", "https://eviltest", false},
		{"*.test", "https://a.test:8443", false},
		{"*.test:8443", "https://a.test:8443", true},
		{"*", "https://a.test", false},
		{"", "https://a.test", false},
	} {
		u, err := url.Parse(c.url)
		if err != nil {
			t.Fatal(err)
		}
		if got := URL([]string{"other.test", c.granted}, u); got != c.want {
			t.Errorf("%s for %s: %v", c.granted, c.url, got)
		}
	}
}
