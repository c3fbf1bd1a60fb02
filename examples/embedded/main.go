// Command embedded mounts the gateway in another Go program: its own listener, an in-memory store, a plugin folder.
package main

import (
	"context"
	"fmt"
	"log"
	"net"
	"net/http"
	"os"
	"os/signal"
	"time"

	"github.com/weirgate/weir/host"
	"github.com/weirgate/weir/store/memory"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, "127.0.0.1:8080", func(address string) { fmt.Println("ask http://" + address + "/llm/v1/chat/completions") }); err != nil {
		log.Fatal(err)
	}
}

// run serves until ctx ends, then closes the gateway and waits for it.
func run(ctx context.Context, address string, ready func(address string)) error {
	gw, err := host.New(ctx, host.Options{
		Listen: host.NoListener, Store: memory.New(memory.Options{}), PluginsDir: "my-plugins", Demo: true,
	})
	if err != nil {
		return err
	}
	mux := http.NewServeMux()
	mux.Handle("/llm/", http.StripPrefix("/llm", gw.Handler()))
	srv := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	ln, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	if err != nil {
		return err
	}
	go func() { <-ctx.Done(); _ = srv.Shutdown(context.WithoutCancel(ctx)) }()
	ready(ln.Addr().String())
	if err := srv.Serve(ln); err != http.ErrServerClosed {
		return err
	}
	return gw.Stop(context.WithoutCancel(ctx))
}
