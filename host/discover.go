package host

import (
	"context"
	"log/slog"
	"net/http"
	"time"

	"github.com/weirgate/weir/host/catalog"
	"github.com/weirgate/weir/sdk/wire"
)

// localServers are the model servers that --discover-local looks for, at the addresses that they use by default (CFG-2).
var localServers = []struct{ provider, base string }{
	{"ollama", "http://127.0.0.1:11434/v1"},
	{"lmstudio", "http://127.0.0.1:1234/v1"},
	{"vllm", "http://127.0.0.1:8000/v1"},
}

// discoverLocal asks each local server for its models, all at once and for half a second at most.
func discoverLocal(ctx context.Context, log *slog.Logger) []catalog.ConnectionInput {
	ctx, cancel := context.WithTimeout(ctx, 500*time.Millisecond)
	defer cancel()
	found := make([]bool, len(localServers))
	done := make(chan struct{})
	for i := range localServers {
		go func() {
			found[i] = answersModels(ctx, localServers[i].base)
			done <- struct{}{}
		}()
	}
	for range localServers {
		<-done
	}
	var out []catalog.ConnectionInput
	for i, s := range localServers {
		if found[i] {
			base := s.base
			log.Info("a local model server was found", "provider", s.provider, "address", base)
			out = append(out, catalog.ConnectionInput{ID: "local-" + s.provider, Provider: s.provider, AuthType: wire.AuthLocal, BaseURL: &base})
		}
	}
	return out
}

func answersModels(ctx context.Context, base string) bool {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, base+"/models", nil)
	if err != nil {
		return false
	}
	resp, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		return false
	}
	resp.Body.Close()
	return resp.StatusCode == http.StatusOK
}
