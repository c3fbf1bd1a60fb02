package proc

import (
	"os"
	"os/exec"
	"runtime"
	"testing"
	"time"
)

func TestUsage(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("there is no /proc")
	}
	before, rss := Usage(os.Getpid())
	if rss < 1<<20 {
		t.Errorf("this process has %d resident bytes", rss)
	}
	for start := time.Now(); time.Since(start) < 50*time.Millisecond; {
	}
	if after, _ := Usage(os.Getpid()); after-before < 0.01 {
		t.Errorf("50 ms of spinning cost %f s", after-before)
	}
	cmd := exec.Command("sleep", "60")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}()
	if got := tree(os.Getpid()); len(got) < 2 {
		t.Errorf("the child %d is not among %v", cmd.Process.Pid, got)
	}
	if cpu, rss := Usage(1 << 30); cpu != 0 || rss != 0 {
		t.Error("a process that is not there costs something")
	}
}
