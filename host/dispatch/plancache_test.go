package dispatch

import (
	"strconv"
	"testing"
	"time"

	"github.com/weirgate/weir/host/upstream"
)

// ABI-3: plans are kept for one snapshot and for their own time, and names that clients make up do not pile up.
func TestPlanCache(t *testing.T) {
	var c planCache
	now := time.Now()
	k := planKey{model: "m"}
	c.put(1, k, &upstream.Prepared{TTL: time.Minute}, now)
	if c.get(k, now) == nil || c.get(planKey{model: "n"}, now) != nil || c.get(k, now.Add(2*time.Minute)) != nil {
		t.Error("not kept, or for too long")
	}
	c.put(2, planKey{model: "n"}, &upstream.Prepared{}, now)
	c.put(1, planKey{model: "old"}, &upstream.Prepared{}, now) // of a request that still runs
	if c.get(k, now) != nil || c.get(planKey{model: "old"}, now) != nil || c.get(planKey{model: "n"}, now) == nil {
		t.Error("plans of an older snapshot stay")
	}
	for i := range 3 * maxPlans {
		c.put(2, planKey{model: strconv.Itoa(i)}, &upstream.Prepared{}, now)
	}
	if len(c.entries) > maxPlans {
		t.Error(len(c.entries))
	}
}
