//go:build unix

package plugin

import (
	"os"
	"os/exec"
	"testing"
)

// The limits of the process that compiles hold for it (ABI-7 step 4): one that takes more memory dies, and one that computes for
// ever too. Run in a process of its own, since they cannot be taken back.
func TestLimitsOfTheChild(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, behaviour := range []string{"eat", "spin"} { // both end well where nothing stops them
		cmd := exec.Command(self, "compile")
		cmd.Env = append(os.Environ(), childMode+"="+behaviour)
		if out, err := cmd.CombinedOutput(); err == nil {
			t.Errorf("%s: it ended by itself: %.200s", behaviour, out)
		}
	}
}
