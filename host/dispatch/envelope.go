package dispatch

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strconv"
)

// smallAnswer is how long a document without an error object may be to be looked at for another form of failure: these are
// short, and most answers are not.
const smallAnswer = 4 << 10

// otherFailure finds a failure in the forms of providers that answer 200 to everything: a code and a message, a list of errors,
// success false (SCN-8, RST-12). A document with any kind of result is none.
func otherFailure(b []byte) (bool, int) {
	if len(b) > smallAnswer || bytes.Contains(b, []byte(`"choices"`)) || bytes.Contains(b, []byte(`"content"`)) {
		return false, 0
	}
	var d map[string]json.RawMessage
	if json.Unmarshal(b, &d) != nil {
		return false, 0
	}
	for _, result := range []string{"result", "results", "output", "candidates", "data", "embedding", "embeddings", "message_id", "usage", "object", "done"} {
		if present(d[result]) {
			return false, 0
		}
	}
	said := present(d["message"]) || present(d["msg"]) || present(d["error_msg"]) || present(d["detail"])
	switch {
	case present(d["errors"]), failedCode(d["error_code"]), nestedError(d["Response"]), said && string(bytes.TrimSpace(d["success"])) == "false":
		return true, http.StatusBadGateway
	case said && failedCode(d["code"]):
		return true, http.StatusBadGateway
	case said && failedStatus(d["status"]) > 0:
		return true, failedStatus(d["status"])
	}
	return false, 0
}

// failedCode says that a code is one of a failure: neither absent nor a word or number for success.
func failedCode(raw json.RawMessage) bool {
	switch string(bytes.Trim(raw, `" `)) {
	case "", "null", "0", "200", "success", "ok", "OK", "Success":
		return false
	}
	return true
}

// failedStatus is a status of an error that a document states as a number, 0 for none.
func failedStatus(raw json.RawMessage) int {
	n, err := strconv.Atoi(string(bytes.Trim(raw, `" `)))
	if err != nil || n < 400 || n > 599 {
		return 0
	}
	return n
}

// nestedError says that a response holds an error object: {"Response":{"Error":{...}}}.
func nestedError(raw json.RawMessage) bool {
	var d struct{ Error json.RawMessage }
	return len(raw) > 0 && json.Unmarshal(raw, &d) == nil && present(d.Error)
}
