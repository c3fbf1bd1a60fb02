package main

import (
	"os"
	"os/exec"
	"syscall"
	"time"

	"github.com/weirgate/weir/cmd/bench/proc"
	"github.com/weirgate/weir/cmd/bench/report"
)

// coldStart runs a command and tells how long it takes until a request through it is answered; then it ends the command.
// Without an answer within two minutes FirstReply is 0.
func coldStart(o options) (report.Row, error) {
	row := report.Row{Target: o.name, Case: report.ColdStart}
	host, req, _, err := requestTemplate(o)
	if err != nil {
		return row, err
	}
	cmd := exec.Command("sh", "-c", "exec "+o.start)
	cmd.Stderr = os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	begin := time.Now()
	if err := cmd.Start(); err != nil {
		return row, err
	}
	defer end(cmd)
	for time.Since(begin) < 2*time.Minute {
		c := &client{host: host, timeout: 10 * time.Second, stream: o.stream}
		r := c.do(req)
		at := time.Since(begin)
		c.close()
		if r.err != "connect" && row.Listening == 0 {
			row.Listening = millis(at)
		}
		if r.err == "" {
			row.OK, row.FirstReply, row.LastError = 1, millis(at), ""
			row.CPU, row.RSSAfter = proc.Usage(cmd.Process.Pid)
			return row, nil
		}
		row.LastError = r.err
		time.Sleep(2 * time.Millisecond)
	}
	return row, nil
}

func millis(d time.Duration) float64 { return float64(d) / 1e6 }

// end asks the command's process group to stop, and kills it after ten seconds.
func end(cmd *exec.Cmd) {
	_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM)
	t := time.AfterFunc(10*time.Second, func() { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) })
	_ = cmd.Wait() // it was ended by a signal
	t.Stop()
}
