package manage

import (
	"encoding/json"
	"net/http"

	"github.com/weirgate/weir/host/catalog"
	"github.com/weirgate/weir/host/errorlog"
	"github.com/weirgate/weir/host/ledger"
	"github.com/weirgate/weir/host/plugin"
)

// The methods of the table.
const (
	get    = http.MethodGet
	post   = http.MethodPost
	put    = http.MethodPut
	patch  = http.MethodPatch
	remove = http.MethodDelete
)

// endpoints is the table from which routes, access and description come. A path holds at most one variable.
func endpoints() []endpoint {
	paged := []string{"limit", "offset"}
	return []endpoint{
		{method: get, path: "/healthz", needs: open, summary: "The process is up", answer: okAnswer{}, serve: healthz},
		{method: get, path: "/readyz", needs: open, summary: "Requests can be served, or what is missing", answer: readiness{}, serve: readyz},
		{method: get, path: "/metrics", needs: metrics, summary: "Metrics for Prometheus", serve: scrapeMetrics},
		{method: get, path: "/api/monitoring/health", needs: open, summary: "Health; in full with a key", answer: fullHealth{}, serve: monitoringHealth},
		{method: get, path: "/api/openapi.json", needs: read, summary: "This description", serve: describe},
		{method: get, path: "/api/status", needs: read, summary: "What weir status prints", answer: statusAnswer{}, serve: getStatus},

		{method: get, path: "/api/catalog/providers", needs: read, summary: "The catalogue of providers", query: paged, answer: providerList{}, serve: listProviders},
		{method: post, path: "/api/catalog/providers", needs: write, changes: true, summary: "Add a provider, or change fields of a built-in one", status: 201, body: catalog.ProviderInput{}, answer: Provider{}, serve: createProvider},
		{method: get, path: "/api/catalog/providers/{id}", needs: read, summary: "One provider", answer: Provider{}, serve: getProvider},
		{method: put, path: "/api/catalog/providers/{id}", needs: write, changes: true, summary: "Replace the operator's entry of a provider", body: catalog.ProviderInput{}, answer: Provider{}, serve: replaceProvider},
		{method: remove, path: "/api/catalog/providers/{id}", needs: write, changes: true, summary: "Remove the operator's entry of a provider", answer: okAnswer{}, serve: deleteProvider},

		{method: get, path: "/api/providers", needs: read, summary: "Connections", query: append([]string{"provider"}, paged...), answer: connectionList{}, serve: listConnections},
		{method: post, path: "/api/providers", needs: write, changes: true, summary: "Add a connection", status: 201, body: catalog.ConnectionInput{}, answer: connectionAnswer{}, serve: createConnection},
		{method: get, path: "/api/providers/{id}", needs: read, summary: "One connection", query: []string{"explain"}, answer: connectionAnswer{}, serve: getConnection},
		{method: put, path: "/api/providers/{id}", needs: write, changes: true, summary: "Replace a connection; credentials stay when absent", body: catalog.ConnectionInput{}, answer: connectionAnswer{}, serve: replaceConnection},
		{method: patch, path: "/api/providers/{id}", needs: write, changes: true, summary: "Change fields of a connection; null clears", body: catalog.ConnectionInput{}, answer: connectionAnswer{}, serve: patchConnection},
		{method: remove, path: "/api/providers/{id}", needs: write, changes: true, summary: "Delete a connection with its state", answer: okAnswer{}, serve: deleteConnection},
		{method: post, path: "/api/providers/{id}/test", needs: write, summary: "Call the provider once with this connection", answer: TestResult{}, serve: testConnection},
		{method: get, path: "/api/providers/{id}/quota", needs: read, summary: "What is left of a connection's limits, as its provider said last", answer: quotaAnswer{}, serve: getQuota},
		{method: post, path: "/api/providers/{id}/reset", needs: write, summary: "Clear a connection's terminal state, cooldown and errors", answer: resetAnswer{}, serve: resetConnection},

		{method: get, path: "/api/combos", needs: read, summary: "Combos", query: paged, answer: comboList{}, serve: listCombos},
		{method: post, path: "/api/combos", needs: write, changes: true, summary: "Add a combo", status: 201, body: catalog.ComboInput{}, answer: Combo{}, serve: createCombo},
		{method: get, path: "/api/combos/{name}", needs: read, summary: "One combo", answer: Combo{}, serve: getCombo},
		{method: put, path: "/api/combos/{name}", needs: write, changes: true, summary: "Make a combo, or replace it", body: catalog.ComboInput{}, answer: Combo{}, serve: replaceCombo},
		{method: remove, path: "/api/combos/{name}", needs: write, changes: true, summary: "Delete a combo", answer: okAnswer{}, serve: deleteCombo},

		{method: get, path: "/api/models/alias", needs: read, summary: "Aliases of models", answer: aliasList{}, serve: listAliases},
		{method: put, path: "/api/models/alias", needs: write, changes: true, summary: "Make an alias, or point it elsewhere", body: catalog.AliasInput{}, answer: aliasList{}, serve: putAlias},
		{method: remove, path: "/api/models/alias", needs: write, changes: true, summary: "Delete an alias", query: []string{"alias"}, answer: okAnswer{}, serve: deleteAlias},

		{method: get, path: "/api/keys", needs: read, summary: "API keys of clients", query: paged, answer: keyList{}, serve: listKeys},
		{method: post, path: "/api/keys", needs: write, changes: true, summary: "Make a key; its text is in this answer only", status: 201, body: catalog.KeyInput{}, answer: Key{}, serve: createKey},
		{method: get, path: "/api/keys/{id}", needs: read, summary: "One key", answer: Key{}, serve: getKey},
		{method: patch, path: "/api/keys/{id}", needs: write, changes: true, summary: "Change fields of a key; null clears", body: catalog.KeyInput{}, answer: Key{}, serve: patchKey},
		{method: remove, path: "/api/keys/{id}", needs: write, changes: true, summary: "Revoke a key", answer: okAnswer{}, serve: deleteKey},
		{method: post, path: "/api/keys/{id}/regenerate", needs: write, changes: true, summary: "Give a key a new text; the old one ends", answer: Key{}, serve: regenerateKey},

		{method: get, path: "/api/settings", needs: read, summary: "General settings", query: []string{"explain"}, answer: json.RawMessage{}, serve: getSettings},
		{method: patch, path: "/api/settings", needs: write, changes: true, summary: "Change general settings", body: json.RawMessage{}, answer: json.RawMessage{}, serve: patchGeneral},
		{method: get, path: "/api/resilience", needs: read, summary: "Settings of the resilience", query: []string{"explain"}, answer: json.RawMessage{}, serve: getResilience},
		{method: patch, path: "/api/resilience", needs: write, changes: true, summary: "Change settings of the resilience", body: json.RawMessage{}, answer: json.RawMessage{}, serve: patchResilience},
		{method: post, path: "/api/resilience/rules/preview", needs: read, summary: "Which recorded errors an operator's error rules and defaults would be about", query: []string{"last", "provider"}, body: previewBody{}, answer: errorlog.Preview{}, serve: previewRules},
		{method: post, path: "/api/resilience/explain", needs: read, summary: "Where a request would go, and what is left out by which gate", body: explainBody{}, answer: explanation{}, serve: explain},
		{method: post, path: "/api/resilience/reset", needs: write, summary: "Close all breakers, or that of one provider; include clears what stands beside", optional: true, body: resetBody{}, answer: resetDone{}, serve: resetBreakers},
		{method: get, path: "/api/resilience/model-cooldowns", needs: read, summary: "Models that are locked out on a connection, longest first", answer: modelCooldowns{}, serve: listModelCooldowns},
		{method: remove, path: "/api/resilience/model-cooldowns", needs: write, summary: "End the lockouts of a model on one or all connections of a provider, or all lockouts", body: enableBody{}, answer: enabled{}, serve: enableModel},
		{method: get, path: "/api/resilience/cooldowns", needs: read, summary: "Connections with their cooldowns and lockouts", query: []string{"provider"}, answer: cooldownList{}, serve: listCooldowns},
		{method: post, path: "/api/resilience/cooldowns", needs: write, summary: "End cooldowns and lockouts of connections; terminal states stay", body: clearBody{}, answer: clearDone{}, serve: clearCooldowns},
		{method: get, path: "/api/resilience/connections", needs: read, summary: "Connections and breakers beside each other", query: []string{"windowMs", "provider"}, answer: connectionsView{}, serve: viewConnections},
		{method: get, path: "/api/rate-limits", needs: read, summary: "Which connections are protected by rate limits", answer: rateLimitList{}, serve: listRateLimits},
		{method: post, path: "/api/rate-limits", needs: write, changes: true, summary: "Switch the rate-limit protection of a connection", body: protectBody{}, answer: protectDone{}, serve: protect},

		{method: get, path: "/api/events", needs: read, summary: "The journal; as text/event-stream a live feed", query: []string{"after", "kind", "provider", "connectionId", "limit"}, answer: eventList{}, serve: listEvents},
		{method: get, path: "/api/errors", needs: read, summary: "Recorded upstream errors, newest first; as application/jsonl lines that weir classify reads", query: append([]string{"provider", "reason", "since", "until", "format"}, paged...), answer: errorList{}, serve: listErrors},
		{method: remove, path: "/api/errors", needs: write, summary: "Delete all recorded upstream errors", answer: clearedErrors{}, serve: clearErrors},

		{method: get, path: "/api/requests", needs: read, summary: "The ledger: requests, newest first", query: append([]string{"since", "until", "provider", "connectionId", "model", "apiKeyId", "outcome", "reason"}, paged...), answer: requestList{}, serve: listRequests},
		{method: get, path: "/api/requests/{requestId}", needs: read, summary: "One request, with its gates and texts while they are kept", answer: ledger.Row{}, serve: getRequest},
		{method: get, path: "/api/pricing", needs: read, summary: "The prices in force, in the order in which they are asked; USD per million tokens", query: paged, answer: priceList{}, serve: listPrices},

		{method: get, path: "/api/plugins", needs: read, summary: "Plugins", query: paged, answer: pluginList{}, serve: listPlugins},
		{method: post, path: "/api/plugins/check", needs: write, summary: "Do all that comes before a plugin goes live, and nothing more", binary: plugin.MaxFile, also: []int{422}, answer: plugin.Report{}, serve: checkPlugin},
		{method: post, path: "/api/plugins/replay", needs: write, summary: "What a plugin would decide otherwise on recorded errors", query: []string{"last", "provider"}, binary: plugin.MaxFile, answer: errorlog.Replay{}, serve: replayPlugin},
		{method: get, path: "/api/plugins/{name}", needs: read, summary: "One plugin with its manifest, candidate and differences", answer: shownPlugin{}, serve: getPlugin},
		{method: put, path: "/api/plugins/{name}", needs: write, summary: "Add a plugin or a version of one, active or as a candidate in shadow", query: []string{"mode", "signature", "grants", "source"}, headers: []string{signatureHeader}, binary: plugin.MaxFile, also: []int{201, 422}, answer: plugin.Report{}, serve: putPlugin},
		{method: remove, path: "/api/plugins/{name}", needs: write, summary: "Remove a plugin, or its candidate", query: []string{"candidate"}, answer: okAnswer{}, serve: deletePlugin},
		{method: get, path: "/api/plugins/{name}/versions", needs: read, summary: "The versions that are kept of a plugin, newest first", answer: versionList{}, serve: pluginVersions},
		{method: post, path: "/api/plugins/{name}/promote", needs: write, summary: "Make the candidate the active version", answer: shownPlugin{}, serve: promotePlugin},
		{method: post, path: "/api/plugins/{name}/rollback", needs: write, summary: "Go back to the version before the active one", answer: shownPlugin{}, serve: rollbackPlugin},
		{method: post, path: "/api/plugins/{name}/mode", needs: write, summary: "Switch a plugin active, to shadow, or off", body: modeBody{}, answer: shownPlugin{}, serve: setPluginMode},
		{method: post, path: "/api/plugins/{name}/grants", needs: write, summary: "Set what a plugin may do, within what its manifest asks for", body: grants{}, answer: shownPlugin{}, serve: grantPlugin},
		{method: post, path: "/api/plugins/{name}/unquarantine", needs: write, summary: "Lift the quarantine of a plugin", answer: shownPlugin{}, serve: unquarantine},
	}
}
