// Package gemini owns the dialect of Google's generateContent: reading and writing its requests, answers and streams (INF-21, TR-2 to
// TR-6). It knows the neutral form and no other dialect. The model and whether to stream are in the path of a request, not in its
// body; who calls ReadRequest adds them.
package gemini

import "github.com/weirgate/weir/host/translate/neutral"

// Codec is the dialect. Its functions are safe for concurrent use.
func Codec() neutral.Codec {
	return neutral.Codec{
		ReadRequest: ReadRequest, WriteRequest: WriteRequest,
		ReadAnswer: ReadAnswer, WriteAnswer: WriteAnswer,
		NewReader: func() neutral.StreamReader { return NewReader() },
		NewWriter: func(t neutral.Told) neutral.StreamWriter { return NewWriter(t) },
	}
}
