package settings

// RequestLog is requestLog: what the ledger keeps (OBJ-18).
type RequestLog struct {
	Enabled       bool
	RetentionDays int
	MaxRows       int
	Trace         bool // the gates of the last requests are kept in memory
	Bodies        bool // prompts and answers are kept with the row (OBS-4)
}

// requestRows are the ledger (OBJ-18, DATA-4).
func requestRows() []Row {
	return []Row{
		{
			Path: "requestLog.enabled", Docs: []Doc{General}, Default: true,
			Meaning: "each request is a row of the ledger; without prompts",
			at:      func(v *Values) any { return &v.RequestLog.Enabled },
		}, {
			Path: "requestLog.retentionDays", Docs: []Doc{General}, Default: 7, Min: 1, Max: 3650,
			Meaning: "age at which a row is dropped",
			at:      func(v *Values) any { return &v.RequestLog.RetentionDays },
		}, {
			Path: "requestLog.maxRows", Docs: []Doc{General}, Default: 100_000, Max: 100_000_000,
			Meaning: "rows that are kept at most",
			at:      func(v *Values) any { return &v.RequestLog.MaxRows },
		}, {
			Path: "requestLog.trace", Docs: []Doc{General}, Default: false,
			Meaning: "the gates of the last 1000 requests are kept in memory and shown with the row",
			at:      func(v *Values) any { return &v.RequestLog.Trace },
		}, {
			Path: "requestLog.bodies", Docs: []Doc{General}, Default: false,
			Meaning: "the text of requests and answers is kept with the row, secrets removed; nothing else stores prompts",
			at:      func(v *Values) any { return &v.RequestLog.Bodies },
		},
	}
}
