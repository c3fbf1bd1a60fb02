package catalog

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/weirgate/weir/host/settings"
)

// RotationOverride is what a connection says of one class of rotationOverrides (CLS-20); nil and 0: as the process has it.
type RotationOverride struct {
	On        *bool
	Threshold int
	Window    time.Duration
}

// rotationStatuses are the statuses that have a class (CLS-20).
var rotationStatuses = [...]int{400, 429, 500, 502}

// RotationOn is the class of a status for errors of c: its own word, field by field, then the process's.
func (c *Connection) RotationOn(r *settings.Rotation, status int) settings.RotationClass {
	class := r.Of(status)
	own, has := c.Rotation[status]
	if !has || class.Threshold == 0 { // a set of settings without rotation has no say
		return class
	}
	set(&class.On, own.On)
	if own.Threshold > 0 {
		class.Threshold = own.Threshold
	}
	if own.Window > 0 {
		class.Window = own.Window
	}
	return class
}

// rotation reads rotateOn429, error429Threshold, error429WindowSeconds and their like. Null unsets a field.
func rotation(it *item[ConnectionInput]) map[int]RotationOverride {
	var given map[string]json.RawMessage
	if json.Unmarshal(it.Object.ProviderSpecificData["rotationOverrides"], &given) != nil {
		return nil // absent, or refused by rateLimitReset
	}
	var all map[int]RotationOverride
	for _, status := range rotationStatuses {
		var own RotationOverride
		rotationField(it, given, fmt.Sprintf("rotateOn%d", status), "true or false", &own.On, func(*bool) bool { return true })
		own.Threshold = rotationNumber(it, given, fmt.Sprintf("error%dThreshold", status), settings.MaxRotationThreshold)
		own.Window = time.Duration(rotationNumber(it, given, fmt.Sprintf("error%dWindowSeconds", status), int(settings.MaxRotationWindow/time.Second))) * time.Second
		if own == (RotationOverride{}) {
			continue
		}
		if all == nil {
			all = map[int]RotationOverride{}
		}
		all[status] = own
	}
	return all
}

func rotationNumber(it *item[ConnectionInput], given map[string]json.RawMessage, name string, most int) int {
	var n *int
	rotationField(it, given, name, fmt.Sprintf("a whole number from 1 to %d", most), &n, func(n *int) bool { return *n >= 1 && *n <= most })
	if n == nil {
		return 0
	}
	return *n
}

func rotationField[T any](it *item[ConnectionInput], given map[string]json.RawMessage, name, says string, field **T, good func(*T) bool) {
	raw, has := given[name]
	if !has {
		return
	}
	if err := json.Unmarshal(raw, field); err != nil || *field != nil && !good(*field) {
		*field = nil
		it.fault("providerSpecificData.rotationOverrides", "%s must be %s; null unsets it", name, says)
	}
}
