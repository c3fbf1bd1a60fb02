package host

import (
	"context"

	"github.com/weirgate/weir/host/catalog"
	"github.com/weirgate/weir/host/dispatch"
	"github.com/weirgate/weir/host/errorlog"
	"github.com/weirgate/weir/host/settings"
	"github.com/weirgate/weir/rules/operator"
)

// newErrorLog makes the record of upstream errors (OBJ-19), in the store when that keeps rows, else in memory.
func (h *Host) newErrorLog() *errorlog.Log {
	return errorlog.New(errorlog.Options{
		Rows: h.rows(), Redact: h.redact.Text, Now: h.o.Now, Log: h.o.Log,
		Settings: func() settings.ErrorRecord { return h.catalog.Current().Settings.ErrorRecord },
	})
}

// preview says which recorded errors an operator's rules and defaults would be about (RUL-30). Nothing is changed or counted.
func (h *Host) preview(ctx context.Context, set *operator.Set, last int, provider string) (errorlog.Preview, error) {
	present := h.plugins.Present()
	defer present.Close()
	judges := func(provider string) dispatch.Judge { return present.Judge(&catalog.Provider{ID: provider}) }
	return h.errors.Preview(ctx, last, provider, h.catalog.Current().Settings.CustomBannedSignals, set, judges)
}

// replay judges recorded errors with a candidate beside the plugins in force (PLG-9). Nothing is changed or counted.
func (h *Host) replay(ctx context.Context, module []byte, last int, provider string) (errorlog.Replay, error) {
	trial, err := h.plugins.Trial(ctx, module)
	if err != nil {
		return errorlog.Replay{}, err
	}
	defer trial.Close()
	present := h.plugins.Present()
	defer present.Close()
	today := func(provider string) dispatch.Judge { return present.Judge(&catalog.Provider{ID: provider}) }
	candidate := func(provider string) dispatch.Judge { return trial.Judge(&catalog.Provider{ID: provider}) }
	s := h.catalog.Current().Settings
	op := errorlog.Operator{BanSignals: s.CustomBannedSignals, Rules: new(operator.Book).Set(s.ProviderErrorRules, s.ProviderErrorDefaults)}
	return h.errors.Replay(ctx, last, provider, op, today, candidate, trial.Failed)
}
