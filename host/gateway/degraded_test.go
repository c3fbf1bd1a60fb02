package gateway

import (
	"net/http/httptest"
	"testing"

	"github.com/weirgate/weir/host/catalog"
	"github.com/weirgate/weir/host/dialect"
	"github.com/weirgate/weir/host/dispatch"
	"github.com/weirgate/weir/host/settings"
)

// OTH-20, OTH-22: one header says what was not done as asked, in an answer and beside a failure, whether or not routes are told.
func TestDegraded(t *testing.T) {
	for _, c := range []struct{ background, tools, want string }{
		{"", "", ""}, {"background", "", "background"}, {"", "tools; sent=2; of=3", "tools; sent=2; of=3"},
		{"background", "tools; sent=2; of=3", "background, tools; sent=2; of=3"},
	} {
		for _, failed := range []bool{false, true} {
			w := httptest.NewRecorder()
			s := &sink{w: w, c: &dispatch.Call{Catalog: &catalog.Snapshot{Settings: &settings.Values{CompatHeaders: true}}}}
			trail := &dispatch.Trail{Degraded: c.background, FewerTools: c.tools, Committed: !failed}
			if failed {
				trail.Failure = &dialect.Failure{Status: 400, Message: "no"}
				new(Gateway).finish(s, trail)
			} else {
				s.Commit(200, nil, trail)
			}
			if got := w.Header().Get("X-Weir-Degraded"); got != c.want || w.Header().Get("X-Omniroute-Degraded") != c.want {
				t.Errorf("%+v failed=%v: %q", c, failed, got)
			}
		}
	}
}
