package dispatch_test

import (
	"testing"

	"github.com/weirgate/weir/host/dispatch"
	"github.com/weirgate/weir/sdk/wire"
)

// RST-12, SCN-8, STM-53: failures under 200 in the forms that providers use, and good answers that resemble them.
func TestLooksFailed(t *testing.T) {
	for body, want := range map[string]int{
		`{"error_code":17,"error_msg":"Open api daily request limit reached"}`:          502,
		`{"code":1001,"msg":"no Authorization","success":false}`:                        502,
		`{"code":20015,"message":"too long","data":null}`:                               502,
		`{"status":"449","msg":"rate limit","body":null}`:                               449,
		`{"Response":{"Error":{"Code":"LimitExceeded"},"RequestId":"0"}}`:               502,
		`{"success":false,"errors":[{"code":5006,"message":"Bad input"}]}`:              502,
		`{"base_resp":{"status_code":1002,"status_msg":"rate"}}`:                        502,
		`{"error":{"code":429,"message":"x"}}`:                                          429,
		`<html></html>`:                                                                 502,
		`{"choices":[{"message":{"content":"{\"error_code\":17}"}}]}`:                   0,
		`{"id":"x","result":"error_code 17","error_code":0}`:                            0,
		`{"object":"list","data":[{"code":"5"}],"message":"m"}`:                         0,
		`{"object":"response","error":null,"output":[{"type":"message"}]}`:              0,
		`{"code":0,"message":"success"}`:                                                0,
		`{"message":"hello","done":true,"code":7}`:                                      0,
		`{"candidates":[],"promptFeedback":{"blockReason":"SAFETY"}}`:                   0,
		`{"choices":[{"message":{"content":"x"}}],"base_resp":{"status_code":0}}`:       0,
		`{"id":"x","type":"message","content":[{"type":"text","text":"an \"error\""}]}`: 0,
	} {
		failed, status := dispatch.LooksFailed(wire.OpenAIChat, []byte(body))
		if failed != (want != 0) || status != want {
			t.Errorf("%s: got %v %d, want %d", body, failed, status, want)
		}
	}
}
