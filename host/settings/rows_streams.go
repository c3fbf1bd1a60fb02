package settings

// streamRows are streamRecovery and streams (STM-30, STM-40, STM-43, STM-65).
func streamRows() []Row {
	const dog = "streamRecovery.throughputWatchdog."
	docs := []Doc{Resilience}
	return []Row{
		{
			Path: "streamRecovery.enabled", Docs: docs, Env: []string{"STREAM_RECOVERY_ENABLED"}, Default: false,
			Meaning: "the opening of a stream is held for 750 ms or 64 KiB, and a cut in it is asked for again on the same account",
			at:      func(v *Values) any { return &v.StreamRecovery.Enabled },
		}, {
			Path: "streamRecovery.continueMidStream", Docs: docs, Env: []string{"STREAM_RECOVERY_MIDSTREAM_ENABLED"}, Default: false,
			Meaning: "a stream of text that is cut is continued by a new request, where a combo says nothing else",
			at:      func(v *Values) any { return &v.StreamRecovery.Continue },
		}, {
			Path: dog + "enabled", Docs: docs, Env: []string{"STREAM_THROUGHPUT_WATCHDOG_ENABLED"}, Default: false,
			Meaning: "a stream that brings hardly any text is ended",
			at:      func(v *Values) any { return &v.StreamRecovery.Throughput.Enabled },
		}, {
			Path: dog + "warmupMs", Docs: docs, Env: []string{"STREAM_THROUGHPUT_WATCHDOG_WARMUP_MS"}, Default: 30_000, Max: 600_000,
			Meaning: "how long a stream is not judged at first",
			at:      func(v *Values) any { return &v.StreamRecovery.Throughput.Warmup },
		}, {
			Path: dog + "windowMs", Docs: docs, Env: []string{"STREAM_THROUGHPUT_WATCHDOG_WINDOW_MS"}, Default: 30_000, Min: 1000, Max: 600_000,
			Meaning: "over how long the rate is measured",
			at:      func(v *Values) any { return &v.StreamRecovery.Throughput.Window },
		}, {
			Path: dog + "minUsefulBytesPerSecond", Docs: docs, Env: []string{"STREAM_THROUGHPUT_WATCHDOG_MIN_BYTES_PER_SECOND"}, Default: 4, Min: 1, Max: 1_000_000,
			Meaning: "bytes of text in a second below which a stream is too slow",
			at:      func(v *Values) any { return &v.StreamRecovery.Throughput.MinRate },
		}, {
			Path: dog + "minUsefulBytes", Docs: docs, Env: []string{"STREAM_THROUGHPUT_WATCHDOG_MIN_USEFUL_BYTES"}, Default: 1, Min: 1, Max: 1_000_000,
			Meaning: "a window with some text, but fewer bytes than this, is not judged",
			at:      func(v *Values) any { return &v.StreamRecovery.Throughput.MinBytes },
		}, {
			Path: "streams.earlyKeepaliveMs", Docs: docs, Default: 15_000, Max: 600_000,
			Meaning: "how long a streaming client hears nothing before it gets 200 and signs of life; 0: never",
			at:      func(v *Values) any { return &v.Streams.EarlyKeepalive },
		}, {
			Path: "streams.maxEventBytes", Docs: docs, Default: 16 << 20, Min: 65_536, Max: 64 << 20,
			Meaning: "largest event of an upstream's stream",
			at:      func(v *Values) any { return &v.Streams.MaxEventBytes },
		}, {
			Path: "streams.holdMaxBytes", Docs: docs, Default: 4 << 20, Min: 65_536, Max: 64 << 20,
			Meaning: "how much of an answer `streamRecovery: hold` keeps back at most; a longer one is let go",
			at:      func(v *Values) any { return &v.Streams.HoldMaxBytes },
		},
	}
}

// streamTimeRows are set by the environment alone (STM-1).
func streamTimeRows() []Row {
	return []Row{
		{
			Env: []string{"STREAM_READINESS_MAX_TIMEOUT_MS"}, Default: 180_000, Min: 1, Max: maxInt,
			Meaning: "how far large prompts and reasoning raise the time to the first useful event",
			at:      func(v *Values) any { return &v.ReadinessMax },
		}, {
			Env: []string{"STREAM_CONTENT_STALL_TIMEOUT_MS"}, Max: maxInt, Default: -1,
			derive:  func(*Values) int64 { return -1 },
			Meaning: "time without a sign of the model while a stream has brought no output; not set: the time to the first useful event; 0: off",
			at:      func(v *Values) any { return &v.ContentStall },
		}, {
			Env: []string{"SSE_HEARTBEAT_INTERVAL_MS"}, Default: 15_000, Max: maxInt,
			Meaning: "time between signs of life to a client whose stream is silent; 0: none",
			at:      func(v *Values) any { return &v.Heartbeat },
		},
	}
}
