package sdk

import "github.com/weirgate/weir/sdk/wire"

// The writers of the documents of package wire, by hand: a guest has no encoding/json. A field that wire gains must be
// added here; TestManifestIsComplete compares.

func writeMatch(w *Writer, m wire.Match) {
	w.Object(func() {
		w.texts("providers", m.Providers)
		w.texts("models", m.Models)
		w.texts("endpoints", m.Endpoints)
		w.texts("auth", m.Auth)
		if m.Stream != nil {
			w.Key("stream").Bool(*m.Stream)
		}
	})
}

func writeNeeds(w *Writer, n wire.Needs) {
	has := n.ErrorText != "" || n.ErrorTextBytes != 0 || len(n.Headers)+len(n.RequestFields) > 0
	w.object("needs", has, func() {
		w.text("error_text", n.ErrorText)
		w.int("error_text_bytes", int64(n.ErrorTextBytes))
		w.texts("headers", n.Headers)
		w.texts("request_fields", n.RequestFields)
	})
}

func writeProvider(w *Writer, p wire.Provider) {
	w.Object(func() {
		w.Key("id").Text(p.ID)
		w.text("name", p.Name)
		w.text("category", p.Category)
		w.text("auth", string(p.Auth))
		w.text("base_url", p.BaseURL)
		w.texts("key_env", p.KeyEnv)
		w.object("dialects", len(p.Dialects) > 0, func() {
			for _, e := range sorted(p.Dialects) {
				w.Key(e).Text(string(p.Dialects[e]))
			}
		})
		w.texts("aliases", p.Aliases)
		list(w, "models", p.Models, writeModel)
		if p.PassthroughModels != nil {
			w.Key("passthrough_models").Bool(*p.PassthroughModels)
		}
		w.bool("per_model_quota", p.PerModelQuota)
		w.object("quota_families", len(p.QuotaFamilies) > 0, func() {
			for _, f := range sorted(p.QuotaFamilies) {
				w.texts(f, p.QuotaFamilies[f])
			}
		})
		w.bool("assistant_prefill", p.AssistantPrefill)
		w.texts("translation", p.Translation)
		w.bool("egress_bucketed", p.EgressBucketed)
		if p.Trust429Hints != nil {
			w.Key("trust_429_hints").Bool(*p.Trust429Hints)
		}
		if l := p.Limits; l != nil {
			w.Key("limits").Object(func() {
				w.mapping("header_names", l.HeaderNames)
				w.text("key_scope", l.KeyScope)
				if len(l.DefaultWindow) > 0 {
					w.Key("default_window").Raw(l.DefaultWindow)
				}
				w.int("min_max_wait_ms", l.MinMaxWaitMS)
			})
		}
		w.text("docs", p.Docs)
	})
}

func writeModel(w *Writer, m wire.Model) {
	w.Object(func() {
		w.Key("id").Text(m.ID)
		w.text("name", m.Name)
		w.int("context_window", int64(m.ContextWindow))
		w.int("max_output", int64(m.MaxOutput))
		w.texts("input_modalities", m.InputModalities)
		w.bool("reasoning", m.Reasoning)
		w.int("created", m.Created)
	})
}

func writePlanRow(w *Writer, r wire.PlanRow) {
	w.Object(func() {
		w.Key("match")
		writeMatch(w, r.Match)
		w.Key("plan")
		writePlan(w, &r.Plan)
	})
}

func writePlan(w *Writer, p *wire.Plan) {
	w.Object(func() {
		w.text("method", p.Method)
		w.text("url", p.URL)
		w.mapping("headers", p.Headers)
		w.text("dialect", string(p.Dialect))
		list(w, "body", p.Body, writeEdit)
		w.int("body_max_bytes", p.BodyMaxBytes)
		r := p.Response
		has := r.Mode+r.Events+r.Frames != "" || len(r.StripHeaders) > 0 || r.Stateful
		w.object("response", has, func() {
			w.text("mode", r.Mode)
			w.texts("strip_headers", r.StripHeaders)
			w.bool("native", r.Native)
			w.text("events", r.Events)
			w.bool("stateful", r.Stateful)
			w.text("frames", r.Frames)
		})
		if e := p.Error; e != nil {
			w.Key("error").Object(func() {
				w.texts("text_paths", e.TextPaths)
				w.texts("code_paths", e.CodePaths)
				w.texts("type_paths", e.TypePaths)
				if s := e.InStream; s != nil {
					w.Key("in_stream").Object(func() { w.text("event", s.Event); w.text("path", s.Path) })
				}
			})
		}
		if u := p.Usage; u != nil {
			w.Key("usage").Object(func() { w.text("input_tokens", u.InputTokens); w.text("output_tokens", u.OutputTokens) })
		}
		t := p.Timeouts
		w.object("timeouts", t != wire.PlanTimeouts{}, func() {
			w.int("connect_ms", t.ConnectMS)
			w.int("first_byte_ms", t.FirstByteMS)
			w.int("idle_ms", t.IdleMS)
		})
		w.text("upstream", p.Upstream)
		w.texts("hooks", p.Hooks)
		w.int("ttl_ms", p.TTLMS)
		if len(p.Sign) > 0 {
			w.Key("sign").Raw(p.Sign)
		}
	})
}

func writeEdit(w *Writer, e wire.Edit) {
	w.Object(func() {
		w.Key("op").Text(e.Op)
		w.Key("path").Text(e.Path)
		if len(e.Value) > 0 {
			w.Key("value").Raw(e.Value)
		}
		w.text("to", e.To)
		if e.Min != nil {
			w.Key("min").Float(*e.Min)
		}
		if e.Max != nil {
			w.Key("max").Float(*e.Max)
		}
	})
}

func writePermissions(w *Writer, p wire.Permissions) {
	has := p.HTTP != nil || p.KV != nil || len(p.Secrets) > 0 || p.Terminate != nil || p.Providers != nil
	w.object("permissions", has, func() {
		if x := p.HTTP; x != nil {
			w.Key("http").Object(func() { w.texts("hosts", x.Hosts); w.text("reason", x.Reason) })
		}
		if x := p.KV; x != nil {
			w.Key("kv").Object(func() { w.int("bytes", int64(x.Bytes)); w.text("reason", x.Reason) })
		}
		list(w, "secrets", p.Secrets, func(w *Writer, s wire.SecretPermission) {
			w.Object(func() { w.Key("name").Text(s.Name); w.text("reason", s.Reason) })
		})
		if x := p.Terminate; x != nil {
			w.Key("terminate").Object(func() { w.text("reason", x.Reason) })
		}
		if x := p.Providers; x != nil {
			w.Key("providers").Object(func() { w.texts("ids", x.IDs); w.text("reason", x.Reason) })
		}
	})
}

func writeLimits(w *Writer, l wire.Limits) {
	w.object("limits", l.MemoryMiB != 0 || len(l.Fuel) > 0, func() {
		w.int("memory_mib", int64(l.MemoryMiB))
		w.object("fuel", len(l.Fuel) > 0, func() {
			for _, op := range sorted(l.Fuel) {
				w.Key(op).Int(l.Fuel[op])
			}
		})
	})
}
