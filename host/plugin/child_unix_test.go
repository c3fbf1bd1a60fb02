//go:build unix

package plugin

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

// The limits of the process that compiles hold for it (ABI-7 step 4): one that takes more memory dies, and one that computes for
// ever too. Run in a process of its own, since they cannot be taken back.
func TestLimitsOfTheChild(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for behaviour, says := range map[string]string{"eat": "memory", "spin": "signal: "} {
		cmd := exec.Command(self, "compile")
		cmd.Env = append(os.Environ(), childMode+"="+behaviour)
		out, err := cmd.CombinedOutput()
		if err == nil || !strings.Contains(string(out)+err.Error(), says) {
			t.Errorf("%s: %v, %.200s", behaviour, err, out)
		}
	}
}
