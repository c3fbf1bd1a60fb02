package sdk

// Config is the input of Configure: the operator's configuration of this plugin (a Value: Get reads it), and what was
// granted.
type Config struct {
	Value
	granted Value
}

// Granted is what the operator granted, as JSON: http_hosts, kv_bytes, terminate, providers.
func (c *Config) Granted() Value { return c.granted }

func (p *Plugin) configure(w *Writer, input []byte) {
	if p.Configure == nil {
		return
	}
	v := Parse(input)
	if err := p.Configure(&Config{Value: v.Member("config"), granted: v.Member("granted")}); err != nil {
		errorOf(err, InvalidConfig).write(w)
	}
}
