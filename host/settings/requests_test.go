package settings

import (
	"encoding/json"
	"testing"

	"github.com/weirgate/weir/host/document"
)

func TestRequestLog(t *testing.T) {
	none := func(string) (string, bool) { return "", false }
	t.Run("OBJ-18 DATA-4 defaults", func(t *testing.T) {
		v, _, _ := Resolve(none, nil, nil)
		if v.RequestLog != (RequestLog{Enabled: true, RetentionDays: 7, MaxRows: 100_000}) {
			t.Errorf("%+v", v.RequestLog)
		}
	})
	t.Run("OBJ-18 API-15 a patch", func(t *testing.T) {
		v, _, _ := Resolve(none, nil, nil)
		n, _ := document.ParseJSON("", []byte(`{"requestLog":{"enabled":false,"retentionDays":3650,"maxRows":0,"trace":true,"bodies":true}}`))
		stored, faults, err := Patch(v, nil, n, General, nil)
		if err != nil || len(faults) > 0 {
			t.Fatal(faults, err)
		}
		v, _, _ = Resolve(none, stored, nil)
		if v.RequestLog != (RequestLog{RetentionDays: 3650, Trace: true, Bodies: true}) {
			t.Errorf("%+v", v.RequestLog)
		}
	})
	for name, value := range map[string]any{"retentionDays": 0, "maxRows": -1, "trace": "yes", "enabled": 1} {
		t.Run("OBJ-18 refused "+name, func(t *testing.T) {
			v, _, _ := Resolve(none, nil, nil)
			b, _ := json.Marshal(map[string]any{"requestLog": map[string]any{name: value}})
			n, _ := document.ParseJSON("", b)
			if _, faults, _ := Patch(v, nil, n, General, nil); len(faults) != 1 {
				t.Errorf("%s: %v", b, faults)
			}
		})
	}
}
