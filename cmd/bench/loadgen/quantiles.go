package main

import (
	"slices"
	"time"

	"github.com/weirgate/weir/cmd/bench/report"
)

func us(d time.Duration) float32 { return float32(d) / 1e3 }

func quantiles(v []float32) report.Quantiles {
	if len(v) == 0 {
		return nil
	}
	slices.Sort(v)
	at := func(q float64) float64 {
		i := int(q*float64(len(v))+0.5) - 1
		return float64(v[min(max(i, 0), len(v)-1)])
	}
	sum := 0.0
	for _, x := range v {
		sum += float64(x)
	}
	return report.Quantiles{"p50": at(.5), "p90": at(.9), "p99": at(.99), "p999": at(.999), "max": float64(v[len(v)-1]), "mean": sum / float64(len(v))}
}
