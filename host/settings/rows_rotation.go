package settings

import (
	"fmt"
	"time"
)

// Rotation says after which errors of an account another one is asked (CLS-20).
type Rotation struct {
	Enabled                    bool
	On400, On429, On500, On502 RotationClass
}

// RotationClass is the switch of one status. The zero value has no say.
type RotationClass struct {
	On        bool
	Threshold int           // at which error within Window the account is rotated, from 1
	Window    time.Duration // up to a day
}

// Of is the class of a status, as the process has it. A status that has none is the zero class.
func (r *Rotation) Of(status int) RotationClass {
	var c RotationClass
	switch status {
	case 400:
		c = r.On400
	case 429:
		c = r.On429
	case 500:
		c = r.On500
	case 502:
		c = r.On502
	}
	c.On = c.On && r.Enabled
	return c
}

// The bounds of a class, also for one connection.
const (
	MaxRotationThreshold = 1000
	MaxRotationWindow    = 24 * time.Hour
)

// rotationRows are set by the environment alone (CLS-20); a connection has its own in providerSpecificData.rotationOverrides.
func rotationRows() []Row {
	rows := []Row{{
		Env: []string{"WEIR_ROTATION_ENABLED"}, Default: true,
		Meaning: "errors of an account may lead to another one; false: those of the statuses below go to the client",
		at:      func(v *Values) any { return &v.Rotation.Enabled },
	}}
	for _, c := range []struct {
		status  int
		on      bool
		meaning string
		at      func(*Values) *RotationClass
	}{
		{429, true, "", func(v *Values) *RotationClass { return &v.Rotation.On429 }},
		{500, true, "", func(v *Values) *RotationClass { return &v.Rotation.On500 }},
		{502, true, "", func(v *Values) *RotationClass { return &v.Rotation.On502 }},
		{400, false, "a 400 that would go to the client leads to another account; those that do anyway are not held back",
			func(v *Values) *RotationClass { return &v.Rotation.On400 }},
	} {
		if c.meaning == "" {
			c.meaning = fmt.Sprintf("a %d leads to another account; false: it goes to the client, and the account stays in use", c.status)
		}
		rows = append(rows, Row{
			Env: []string{fmt.Sprintf("WEIR_ROTATE_ON_%d", c.status)}, Default: c.on, Meaning: c.meaning,
			at: func(v *Values) any { return &c.at(v).On },
		}, Row{
			Env: []string{fmt.Sprintf("WEIR_ROTATE_%d_THRESHOLD", c.status)}, Default: 1, Min: 1, Max: MaxRotationThreshold,
			Meaning: fmt.Sprintf("how many %d of one account within the window it takes; those before go to the client", c.status),
			at:      func(v *Values) any { return &c.at(v).Threshold },
		}, Row{
			Env: []string{fmt.Sprintf("WEIR_ROTATE_%d_WINDOW_SECONDS", c.status)}, Default: 120, Min: 1, Max: int64(MaxRotationWindow / second), Unit: second,
			Meaning: "the window, in seconds",
			at:      func(v *Values) any { return &c.at(v).Window },
		})
	}
	return append(rows, Row{
		Env: []string{"WEIR_TOOL_TRUNCATE"}, Default: true,
		Meaning: "a request with more tools than its provider takes is sent with as many as it takes; false: it is refused",
		at:      func(v *Values) any { return &v.ToolTruncate },
	})
}
