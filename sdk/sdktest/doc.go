// Package sdktest proves guests, and gives hosts something to be proved with. It owns the conformance kit of the plugin ABI:
//
//   - Run and Check drive any module, whatever it was written in, through what a host may do to it, in a sandbox of their own
//     with the same fuel and limits as the gateway's (ABI-1 to ABI-8). The command cmd/sdktest is Check on a file.
//   - Evil returns guests that spin, lie, trap, eat memory or refuel themselves: a host loads each of them, or refuses it,
//     and goes on (ABI-8, ABI-13).
//
// The sandbox here is not the gateway's: the kit would otherwise believe of a guest whatever the gateway believes. Only the
// check and metering of modules (host/plugin/fuel), the reading of manifests and the rule language are shared.
package sdktest
