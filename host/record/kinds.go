package record

// The kinds of events (OBJ-22). Gates apply the first ones; the others are for people only.
const (
	KindCooldown          = "connection.cooldown"
	KindError             = "connection.error"
	KindCleared           = "connection.cleared"
	KindTerminal          = "connection.terminal"
	KindProbe             = "connection.probe"
	KindRejected          = "rejected.counted"
	KindLockoutSet        = "lockout.set"
	KindLockoutDecayed    = "lockout.decayed"
	KindLockoutCleared    = "lockout.cleared"
	KindBreakerCounted    = "breaker.counted"
	KindBreakerChanged    = "breaker.changed"
	KindAffinityPinned    = "affinity.pinned"
	KindLeaseChanged      = "lease.changed"
	KindPluginLoaded      = "plugin.loaded"
	KindPluginRejected    = "plugin.rejected"
	KindPluginRemoved     = "plugin.removed"
	KindPluginQuarantined = "plugin.quarantined"
	KindPluginRestored    = "plugin.restored"
	KindConfigReloaded    = "config.reloaded"
	KindConfigRejected    = "config.rejected"
	KindSettingsChanged   = "settings.changed"
	KindStoreDegraded     = "store.degraded"
)

// use is what replay does with a kind.
type use int

const (
	unknown use = iota
	applied
	forPeople
)

// useOf says what replay does with events of a kind.
func useOf(kind string) use {
	switch kind {
	case KindCooldown, KindError, KindCleared, KindTerminal, KindProbe, KindRejected,
		KindLockoutSet, KindLockoutDecayed, KindLockoutCleared, KindBreakerCounted, KindBreakerChanged,
		KindAffinityPinned, KindLeaseChanged:
		return applied
	case KindPluginLoaded, KindPluginRejected, KindPluginRemoved, KindPluginQuarantined, KindPluginRestored,
		KindConfigReloaded, KindConfigRejected, KindSettingsChanged, KindStoreDegraded:
		return forPeople
	}
	return unknown
}
