package catalog

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weirgate/weir/host/settings"
)

func overridesOf(text string) *item[ConnectionInput] {
	return &item[ConnectionInput]{Entry: Entry[ConnectionInput]{Saving: true, Object: ConnectionInput{
		ProviderSpecificData: map[string]json.RawMessage{"rotationOverrides": json.RawMessage(text)}}}}
}

// CLS-20: what a connection may say, and what is refused.
func TestRotationOverrides(t *testing.T) {
	yes, no := true, false
	it := overridesOf(`{"rotateOn429":false,"error429Threshold":3,"error429WindowSeconds":60,"rotateOn400":true,"rotateOn500":null,"error502Threshold":2,"rateLimitResetSeconds":5,"later":1}`)
	want := map[int]RotationOverride{429: {On: &no, Threshold: 3, Window: time.Minute}, 400: {On: &yes}, 502: {Threshold: 2}}
	if got := rotation(it); !cmp.Equal(got, want) || len(it.faults) > 0 {
		t.Error(cmp.Diff(want, got), it.faults)
	}
	for text, field := range map[string]string{
		`{"rotateOn429":"no"}`: "rotateOn429", `{"error429Threshold":0}`: "error429Threshold", `{"error500Threshold":1001}`: "error500Threshold",
		`{"error502WindowSeconds":86401}`: "error502WindowSeconds", `{"error400Threshold":1.5}`: "error400Threshold",
	} {
		it := overridesOf(text)
		if got := rotation(it); got != nil || len(it.faults) != 1 || !strings.HasPrefix(it.faults[0].Message, field+" must be") {
			t.Errorf("%s: %v %v", text, got, it.faults)
		}
	}
	if it := overridesOf(`[]`); rotation(it) != nil || rateLimitReset(it) != 0 || len(it.faults) != 1 {
		t.Errorf("a list: %v", it.faults)
	}
}

// CLS-20, OV-24: the connection's word beats the process's, field by field, the main switch included.
func TestRotationClass(t *testing.T) {
	v, _, _ := settings.Resolve(func(name string) (string, bool) {
		s, ok := map[string]string{"OMNIROUTE_ROTATION_ENABLED": "false", "WEIR_ROTATE_429_THRESHOLD": "4", "OMNIROUTE_ROTATE_429_WINDOW_SECONDS": "30"}[name]
		return s, ok
	}, nil, nil)
	c := &Connection{}
	if got := c.RotationOn(&v.Rotation, 429); got != (settings.RotationClass{Threshold: 4, Window: 30 * time.Second}) {
		t.Errorf("%+v", got)
	}
	c.Rotation = rotation(overridesOf(`{"rotateOn429":true,"error429WindowSeconds":7}`))
	if got := c.RotationOn(&v.Rotation, 429); got != (settings.RotationClass{On: true, Threshold: 4, Window: 7 * time.Second}) {
		t.Errorf("%+v", got)
	}
	if got := c.RotationOn(&v.Rotation, 503); got != (settings.RotationClass{}) {
		t.Errorf("a status without a class: %+v", got)
	}
}
