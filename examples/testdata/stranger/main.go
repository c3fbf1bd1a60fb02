// Command stranger is what somebody else writes: a server of its own that has the gateway under /llm/, with a plugin folder and
// an in-memory store. It ends when its input does.
package main

import (
	"context"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"runtime"
	"time"

	"github.com/weirgate/weir/host"
	"github.com/weirgate/weir/store/memory"
)

func main() {
	before := runtime.NumGoroutine()
	ctx := context.Background()
	gw, err := host.New(ctx, host.Options{Listen: host.NoListener, Store: memory.New(memory.Options{}), PluginsDir: os.Args[1], Demo: true})
	if err != nil {
		log.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.Handle("/llm/", http.StripPrefix("/llm", gw.Handler()))
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	srv := &http.Server{Handler: mux}
	go srv.Serve(ln)
	fmt.Println("http://" + ln.Addr().String() + "/llm")
	_, _ = io.Copy(io.Discard, os.Stdin)
	if err := srv.Shutdown(ctx); err != nil {
		log.Fatal(err)
	}
	if err := gw.Stop(ctx); err != nil {
		log.Fatal(err)
	}
	for range 100 { // connections of the server end by themselves, soon
		if runtime.NumGoroutine() <= before {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	fmt.Printf("closed, %d goroutines more than before\n", runtime.NumGoroutine()-before)
}
