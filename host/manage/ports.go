package manage

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"time"

	"github.com/weirgate/weir/host/catalog"
	"github.com/weirgate/weir/host/document"
	"github.com/weirgate/weir/host/errorlog"
	"github.com/weirgate/weir/host/ledger"
	"github.com/weirgate/weir/host/plugin"
	"github.com/weirgate/weir/host/pricing"
	"github.com/weirgate/weir/host/quota"
	"github.com/weirgate/weir/host/record"
	"github.com/weirgate/weir/host/resilience"
	"github.com/weirgate/weir/host/resilience/account"
	"github.com/weirgate/weir/host/resilience/breaker"
	"github.com/weirgate/weir/host/resilience/lockout"
	"github.com/weirgate/weir/rules/operator"
	"github.com/weirgate/weir/store"
)

// Ports are what management asks of its host. All functions are safe for concurrent use. Those under "may be nil" may be.
type Ports struct {
	AdminKey  string // empty: only client keys with a management scope open management
	Listener  Listener
	Inference []Route // described beside management's own (OBS-7)

	Now       func() time.Time
	RequestID func() string
	Random    io.Reader // for ids and keys
	Log       *slog.Logger
	Facts     func() Facts

	// Catalog is the snapshot in force.
	Catalog func() *catalog.Snapshot
	// Check says what would be wrong with the catalogue if it held the objects of saving in place of stored ones with their
	// ids. The entries have Saving set; the faults have paths inside of the object.
	Check func(saving catalog.Input) []document.Fault
	// Change writes all or none and returns when a snapshot that holds them is in force.
	Change      func(ctx context.Context, ws ...store.Write) ([]store.Document, error)
	Documents   store.Documents
	Sealer      catalog.Sealer
	StoreHealth func() store.Health

	States States
	Events Events
	// Order lists the targets and connections of a route as a request would try them, filters of connections applied.
	Order   func(r *catalog.Route, key *catalog.Key, now time.Time) []catalog.Target
	Test    func(ctx context.Context, connectionID string) (TestResult, error)
	Plugins func() []plugin.Status
	// Unquarantine lifts a plugin's quarantine by hand; false: it is in none (PLG-5).
	Unquarantine func(name string) bool
	Shelf        Shelf
	// Replay judges recorded errors with a candidate beside what is in force (PLG-9); a candidate that does not load is a *plugin.Fault.
	Replay func(ctx context.Context, module []byte, last int, provider string) (errorlog.Replay, error)
	Errors Errors
	// Requests is the ledger (OBJ-17), Prices the table in force (OBJ-21), Quota the last snapshot of a connection (OBJ-20).
	Requests Requests
	Prices   func() *pricing.Table
	Quota    func(connectionID string) (quota.Snapshot, bool)
	// Preview says which recorded errors an operator's rules would be about (RUL-30); nil: there is no record.
	Preview func(ctx context.Context, set *operator.Set, last int, provider string) (errorlog.Preview, error)

	Metrics  http.Handler
	Profiles http.Handler
	// Recent sums up the requests of the last minute.
	Recent func(now time.Time) (total, failed int, p50 time.Duration)

	// May be nil:

	Stopping <-chan struct{}                                      // closed when the host stops, so that feeds end
	KeyUsed  func(id string) time.Time                            // when a key was last used; zero: never
	Tested   func(connectionID string) (at time.Time, models int) // the last test of a connection
}

// Facts are what the host knows about itself.
type Facts struct {
	Version       string
	Started       time.Time
	Address       string // http://127.0.0.1:8787
	Demo          bool
	PluginsLoaded bool
	ConfigFile    string // empty: none
	ConfigLoaded  time.Time
	ConfigFault   string // of the file as it is now, when that is not the one in force (CLI-5)
}

// States are the machines' views and the operator's actions on them. What an action changes is journaled by the host.
type States interface {
	Health(connection string, now time.Time) account.Health
	// Peek asks the ladder without any effect (OBJ-25).
	Peek(at resilience.Moment, t catalog.Target) *resilience.Refusal
	// Breakers are those that ever counted a failure, read as of now (API-62); Lockouts the running ones.
	Breakers(now time.Time) []breaker.Status
	Lockouts(now time.Time) []lockout.Lock
	// ResetBreakers closes the breaker of one provider, or all for an empty one, and says how many there were to close.
	ResetBreakers(provider string) int
	// ClearWindows forgets the failures that the opt-in provider cooldown remembers; an empty provider means all.
	ClearWindows(provider string)
	// ClearCooldown ends what is transient on a connection; a terminal state stays (API-43).
	ClearCooldown(connection string) account.Cleared
	// ClearLockouts ends the lockouts that match and their counts; what is empty matches all. Model may be a family (API-32).
	ClearLockouts(provider, connection, model string) int
	// Reset is the operator's reset (COOL-50), lockouts included (OBJ-10); was is the status before.
	Reset(connection string) (was string)
	// Forget drops the state of a deleted connection (OBJ-7).
	Forget(connection string)
}

// Shelf are the plugins and what may be done to them (PLG-10); *plugin.Runtime is one. A change that is refused is a *plugin.Problem.
type Shelf interface {
	Detail(name string) (plugin.Detail, bool)
	Versions(name string) ([]plugin.VersionInfo, bool)
	Check(ctx context.Context, module []byte) plugin.Report
	Put(ctx context.Context, name string, module []byte, o plugin.PutOptions) (plugin.Report, error)
	Remove(ctx context.Context, name string) error
	DropCandidate(ctx context.Context, name string) error
	Promote(ctx context.Context, name string) error
	Rollback(ctx context.Context, name string) error
	SetMode(ctx context.Context, name, mode string) error
	Grant(ctx context.Context, name string, g plugin.Grants) error
}

// Errors is the record of upstream errors (OBJ-19); *errorlog.Log is one.
type Errors interface {
	List(ctx context.Context, f errorlog.Filter, limit, offset int) (records []errorlog.Record, total int, err error)
	Clear(ctx context.Context) (removed int, err error)
	Dropped() int64 // records that were lost since the start
}

// Requests is the ledger (OBJ-17); *ledger.Log is one.
type Requests interface {
	List(ctx context.Context, f ledger.Filter, limit, offset int) (rows []ledger.Row, total int, err error)
	Get(ctx context.Context, requestID string) (row ledger.Row, found bool, err error)
	Dropped() int64 // rows that were lost since the start
}

// Events is the journal as people read it; *record.Recorder is one.
type Events interface {
	Events(ctx context.Context, f record.Filter) (events []store.Event, next store.Seq, err error)
	Subscribe(after store.Seq) (events <-chan store.Event, cancel func())
	Last() store.Seq
}

// check names every port that is missing.
func (p *Ports) check() error {
	var missing []error
	need := func(ok bool, name string) {
		if !ok {
			missing = append(missing, errors.New("manage: the port "+name+" is missing"))
		}
	}
	need(p.Now != nil, "Now")
	need(p.RequestID != nil, "RequestID")
	need(p.Random != nil, "Random")
	need(p.Facts != nil, "Facts")
	need(p.Catalog != nil, "Catalog")
	need(p.Check != nil, "Check")
	need(p.Change != nil, "Change")
	need(p.Documents != nil, "Documents")
	need(p.Sealer != nil, "Sealer")
	need(p.StoreHealth != nil, "StoreHealth")
	need(p.States != nil, "States")
	need(p.Events != nil, "Events")
	need(p.Order != nil, "Order")
	need(p.Test != nil, "Test")
	need(p.Plugins != nil, "Plugins")
	need(p.Unquarantine != nil, "Unquarantine")
	need(p.Shelf != nil, "Shelf")
	need(p.Replay != nil, "Replay")
	need(p.Errors != nil, "Errors")
	need(p.Requests != nil, "Requests")
	need(p.Prices != nil, "Prices")
	need(p.Quota != nil, "Quota")
	need(p.Metrics != nil, "Metrics")
	need(p.Profiles != nil, "Profiles")
	need(p.Recent != nil, "Recent")
	if p.Log == nil {
		p.Log = slog.New(slog.DiscardHandler)
	}
	return errors.Join(missing...)
}
